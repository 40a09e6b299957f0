//! Zstandard and xz: the C libraries, or decoders in Rust where there is no C compiler.
//!
//! WebAssembly has no C library to build them with, so that target has [`pure`](self) decoders with
//! the same interface. Everything else in the workspace uses this crate and needs no condition.

#[cfg(not(target_family = "wasm"))]
mod native;
#[cfg(any(target_family = "wasm", test))]
mod pure;

#[cfg(not(target_family = "wasm"))]
pub use native::{Compressor, Decompressor, Encoder, compress_bound, xz_reader, zstd_reader};
#[cfg(target_family = "wasm")]
pub use pure::{Compressor, Decompressor, Encoder, compress_bound, xz_reader, zstd_reader};

/// Memory that an xz stream may ask for.
const XZ_MEMORY_BYTES_MAX: u64 = 256 << 20;
/// A frame may ask for a window of gigabytes; 2^27 bytes is what `zstd -d` allows too.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;
