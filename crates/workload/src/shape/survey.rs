//! The first pass over a trace, which finds the address range of each volume.

use super::slice::{Slice, SliceDecision};
use super::volumes::VolumeSelection;
use crate::record::{RecordReader, TraceError};
use hybridsim_engine::Op;

/// Per volume, the end of the last sector accessed in the slice; 0 for volumes without accesses.
///
/// # Errors
/// The reader's.
pub fn volume_ends(
    reader: &mut dyn RecordReader,
    mut slice: Slice,
    selection: &VolumeSelection,
) -> Result<Vec<u64>, TraceError> {
    let mut ends = Vec::new();
    let mut number = 0;
    while let Some(record) = reader.next()? {
        number += 1;
        match slice.decide(number, &record) {
            SliceDecision::Stop => break,
            SliceDecision::Skip => continue,
            SliceDecision::Keep => {}
        }
        let request = &record.request;
        if request.op == Op::Flush || !selection.contains(request.volume) {
            continue;
        }
        let volume = usize::from(request.volume);
        if volume >= ends.len() {
            ends.resize(volume + 1, 0);
        }
        ends[volume] = ends[volume].max(request.end().0);
    }
    Ok(ends)
}
