//! Traces in memory instead of files, for programs without a file system, such as a web page.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::rc::Rc;

thread_local! {
    static TRACES: RefCell<BTreeMap<OsString, Rc<[u8]>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Makes `bytes` what this thread reads as the trace of every path that ends in `name`, instead of
/// a file.
pub fn put(name: &str, bytes: Vec<u8>) {
    TRACES.with_borrow_mut(|traces| traces.insert(name.into(), bytes.into()));
}

/// Whether the trace at `path` is in memory.
pub fn has(path: &Path) -> bool {
    get(path).is_some()
}

pub(super) fn get(path: &Path) -> Option<Rc<[u8]>> {
    let name = path.file_name()?;
    TRACES.with_borrow(|traces| traces.get(name).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordReader;
    use crate::trace::{OpenOptions, open};

    #[test]
    fn a_trace_in_memory_is_read_instead_of_a_file() {
        let path = Path::new("../no-such-folder/page.csv");
        assert!(!has(path) && open(path, &OpenOptions::default()).is_err());
        put("page.csv", b"1,1,8,0,70000\n1,1,8,0,80000\n".to_vec());
        let mut trace = open(path, &OpenOptions::default()).expect("it is in memory");
        assert_eq!(trace.next().expect("a record").map(|it| it.request.sectors), Some(8));
        assert!(trace.progress().is_some_and(|share| share > 0.0));
        put("page.csv", Vec::new());
        let error = open(path, &OpenOptions::default()).err().expect("it is empty");
        assert!(error.to_string().contains("the file is empty"), "{error}");
    }
}
