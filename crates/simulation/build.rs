//! A hash of the sources for the program, which distinguishes results of different code.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let root = Path::new("..").join("..");
    let mut files = vec![root.join("Cargo.lock")];
    for folder in crates().into_iter().filter(|folder| folder.exists()) {
        println!("cargo:rerun-if-changed={}", folder.display());
        gather(&folder, &mut files);
    }
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=Cargo.toml");
    println!("cargo:rerun-if-changed={}", files[0].display());
    files.sort();
    let mut hash = FNV_OFFSET;
    for file in &files {
        // A crate built by itself lacks its neighbours; then the version has to do.
        hash = mix(hash, file.to_string_lossy().as_bytes());
        hash = mix(hash, &fs::read(file).unwrap_or_default());
    }
    println!("cargo:rustc-env=HYBRIDSIM_SOURCES={hash:016x}");
}

/// Sources of this crate and of those it is built from, by its manifest: they decide a result.
fn crates() -> Vec<PathBuf> {
    let manifest = fs::read_to_string("Cargo.toml").unwrap_or_default();
    let dependencies = manifest.split("\n[").find(|table| table.starts_with("dependencies]"));
    let lines = dependencies.unwrap_or_default().lines();
    let names = lines.filter_map(|line| line.strip_prefix("hybridsim-")?.split('.').next());
    names.chain(["simulation"]).map(|name| Path::new("..").join(name).join("src")).collect()
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            gather(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// FNV-1a: collisions are not a security issue, and a build script has no other hash.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

fn mix(hash: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = bytes.iter().fold(hash, step);
    step(hash, &0xff)
}
