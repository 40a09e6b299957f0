//! The native format, `.hst`.

use super::{RecordWriter, WriterEntry};
use crate::native::NativeWriter;
use crate::record::Record;
use crate::trace;
use std::io::{self, Write};

struct Native(NativeWriter<Box<dyn Write>>);

impl RecordWriter for Native {
    fn name_volumes(&mut self, names: &[String]) {
        self.0.name_volumes(names);
    }

    fn write(&mut self, record: &Record) -> io::Result<bool> {
        self.0.write(record).map(|()| true)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.0.finish().map(|_| ())
    }
}

pub(super) const ENTRY: WriterEntry = WriterEntry {
    description: trace::native::ENTRY.description,
    extension: "hst",
    loses: &[],
    create: |out, header| Ok(Box::new(Native(NativeWriter::new(out, header)?))),
};
