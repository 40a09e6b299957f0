//! A first pass over a trace: how far each volume reaches.

use super::slice::{Slice, Verdict};
use super::volumes::Selection;
use crate::record::{RecordReader, TraceError};
use hybridsim_engine::Op;

/// What a first pass found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Per volume, the end of its last sector used; 0 where a volume was not touched.
    pub ends: Vec<u64>,
}

impl Survey {
    /// Reads the chosen part of a trace to its end.
    ///
    /// # Errors
    /// What the reader says.
    pub fn of(
        reader: &mut dyn RecordReader,
        mut slice: Slice,
        selection: &Selection,
    ) -> Result<Self, TraceError> {
        let mut survey = Self::default();
        let mut number = 0;
        while let Some(record) = reader.next()? {
            number += 1;
            match slice.judge(number, &record) {
                Verdict::Stop => break,
                Verdict::Skip => continue,
                Verdict::Keep => {}
            }
            let request = &record.request;
            if request.op == Op::Flush || !selection.contains(request.volume) {
                continue;
            }
            let volume = usize::from(request.volume);
            if volume >= survey.ends.len() {
                survey.ends.resize(volume + 1, 0);
            }
            survey.ends[volume] = survey.ends[volume].max(request.end().0);
        }
        Ok(survey)
    }
}
