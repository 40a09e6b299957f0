//! A hash of the sources for the program, which distinguishes results of different code.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let root = Path::new("..").join("..");
    let mut files = vec![root.join("Cargo.lock")];
    for name in crates() {
        let folder = Path::new("..").join(name);
        let (manifest, sources) = (folder.join("Cargo.toml"), folder.join("src"));
        println!("cargo:rerun-if-changed={}", manifest.display());
        println!("cargo:rerun-if-changed={}", sources.display());
        gather(&sources, &mut files);
    }
    println!("cargo:rerun-if-changed=build.rs");
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

/// This crate and its neighbours that it is built from, by their manifests: their code decides a
/// result.
pub fn crates() -> Vec<String> {
    let mut found = vec!["simulation".to_owned()];
    let mut at = 0;
    while let Some(name) = found.get(at) {
        let manifest = Path::new("..").join(name).join("Cargo.toml");
        let manifest = fs::read_to_string(manifest).unwrap_or_default();
        let dependencies = manifest.split("\n[").find(|table| table.starts_with("dependencies]"));
        for line in dependencies.unwrap_or_default().lines() {
            let name = line.strip_prefix("hybridsim-").and_then(|rest| rest.split('.').next());
            let name = name.filter(|name| Path::new("..").join(name).is_dir());
            found.extend(name.map(str::to_owned).filter(|name| !found.contains(name)));
        }
        at += 1;
    }
    found
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
