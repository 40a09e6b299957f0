//! The walk of one request in ARCHITECTURE.md names files and functions that exist.

use std::fs;
use std::path::Path;

#[test]
fn the_walk_of_a_read_names_existing_functions() {
    const FILES_MAX: usize = 30;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the page");
    let (_, walk) = page.split_once("## One read of").expect("the section");
    let (walk, _) = walk.split_once("\n## ").expect("a section follows");
    let quoted = |cell: &str| -> Vec<String> {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let mut files = 0;
    for row in walk.lines().filter(|line| line.starts_with("| ") && line.contains(".rs`")) {
        let cells: Vec<&str> = row.split('|').collect();
        let (path, functions) = (quoted(cells[2]).remove(0), quoted(cells[3]));
        let code = fs::read_to_string(root.join(&path)).unwrap_or_else(|e| panic!("{path}: {e}"));
        assert!(!functions.is_empty(), "{path} names no function");
        for function in functions {
            let is_there =
                ["(", "<"].iter().any(|end| code.contains(&format!("fn {function}{end}")));
            assert!(is_there, "{path} has no function {function}");
        }
        files += 1;
    }
    assert!((10..=FILES_MAX).contains(&files), "the walk has {files} files");
}
