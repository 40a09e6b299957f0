//! The first pass over a trace, which finds the address range of each volume and the granules with
//! accesses.

use super::slice::{Slice, SliceDecision};
use super::volumes::{VolumeLayout, VolumeSelection};
use crate::record::{RecordReader, TraceResult};
use hybridsim_engine::{Op, Request};
use rustc_hash::FxHashSet;

/// Per volume, the end of the last sector accessed in the slice; 0 for volumes without accesses.
///
/// # Errors
/// The reader's.
pub fn volume_ends(
    reader: &mut dyn RecordReader,
    slice: Slice,
    selection: &VolumeSelection,
) -> TraceResult<Vec<u64>> {
    let mut ends = Vec::new();
    each_request(reader, slice, selection, |request| {
        let volume = usize::from(request.volume);
        if volume >= ends.len() {
            ends.resize(volume + 1, 0);
        }
        ends[volume] = ends[volume].max(request.end().0);
        true
    })?;
    Ok(ends)
}

/// The granules of `granule` sectors with accesses, in order of address; `None` if there are more
/// than `max`. Requests that cannot be laid out are left to the replay, which reports them.
///
/// # Errors
/// The reader's.
pub fn granules(
    reader: &mut dyn RecordReader,
    slice: Slice,
    (selection, layout): (&VolumeSelection, &VolumeLayout),
    granule: u64,
    max: u64,
) -> TraceResult<Option<Vec<u64>>> {
    let mut found = FxHashSet::default();
    let mut fits = true;
    each_request(reader, slice, selection, |request| {
        let Ok(start) = layout.locate(request, selection) else { return true };
        if request.sectors > 0 {
            let last = start.saturating_add(u64::from(request.sectors) - 1) / granule;
            for granule in start / granule..=last {
                found.insert(granule);
                fits = found.len() as u64 <= max;
                if !fits {
                    break;
                }
            }
        }
        fits
    })?;
    let mut list: Vec<u64> = found.into_iter().collect();
    list.sort_unstable();
    Ok(fits.then_some(list))
}

/// Calls `act` for the requests with data of the slice, until it returns `false`.
fn each_request(
    reader: &mut dyn RecordReader,
    mut slice: Slice,
    selection: &VolumeSelection,
    mut act: impl FnMut(&Request) -> bool,
) -> TraceResult<()> {
    let mut number = 0;
    while let Some(record) = reader.next()? {
        number += 1;
        match slice.decide(number, &record) {
            SliceDecision::Stop => break,
            SliceDecision::Skip => continue,
            SliceDecision::Keep => {}
        }
        let request = &record.request;
        if request.op != Op::Flush && selection.contains(request.volume) && !act(request) {
            break;
        }
    }
    Ok(())
}
