//! The C libraries.

use super::{XZ_MEMORY_BYTES_MAX, ZSTD_WINDOW_LOG_MAX};
use std::io::{self, BufRead, Read};
pub use zstd::Encoder;
pub use zstd::bulk::{Compressor, Decompressor};
pub use zstd::zstd_safe::compress_bound;

/// Decompresses all Zstandard frames of `input`.
///
/// # Errors
/// Fails when the decoder cannot be set up.
pub fn zstd_reader<'a>(input: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut decoder = zstd::Decoder::with_buffer(input)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
    Ok(Box::new(decoder))
}

/// Decompresses all xz streams of `input`.
///
/// # Errors
/// Fails when the decoder cannot be set up.
pub fn xz_reader<'a>(input: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let flags = liblzma::stream::CONCATENATED;
    let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_BYTES_MAX, flags)?;
    Ok(Box::new(liblzma::bufread::XzDecoder::new_stream(input, stream)))
}
