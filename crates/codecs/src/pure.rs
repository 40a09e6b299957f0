//! Decoders and an encoder in Rust, with the interface of the C libraries.

use super::{XZ_MEMORY_BYTES_MAX, ZSTD_WINDOW_LOG_MAX};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::{self, BufRead, Read, Write};

/// Decompresses all Zstandard frames of `input`.
///
/// # Errors
/// None; the C library has some.
pub fn zstd_reader<'a>(input: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(1 << ZSTD_WINDOW_LOG_MAX);
    Ok(Box::new(ZstdReader { input, decoder, in_frame: false }))
}

/// Decompresses all xz streams of `input`.
///
/// # Errors
/// None; the C library has some.
pub fn xz_reader<'a>(input: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let kib = u32::try_from(XZ_MEMORY_BYTES_MAX >> 10).unwrap_or(u32::MAX);
    Ok(Box::new(lzma_rust2::XzReader::new_mem_limit(input, true, kib)))
}

struct ZstdReader<R> {
    input: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> ZstdReader<R> {
    /// Reads the header of the next frame; returns `false` at the end of the input.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.input) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = (&mut self.input).take(u64::from(length));
                    io::copy(&mut skipped, &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }

    fn checksum_matches(&self) -> bool {
        let given = self.decoder.get_checksum_from_data();
        given.is_none() || given == self.decoder.get_calculated_checksum()
    }
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame && !self.next_frame()? {
                return Ok(0);
            }
            self.in_frame = true;
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let some = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.input, some).map_err(io::Error::other)?;
            }
            let count = self.decoder.read(buffer)?;
            if count > 0 {
                return Ok(count);
            }
            if !self.checksum_matches() {
                return Err(io::Error::other("the checksum of a frame does not match"));
            }
            self.in_frame = false;
        }
    }
}

/// Decompresses frames held in memory.
pub struct Decompressor<'a> {
    decoder: FrameDecoder,
    lifetime: std::marker::PhantomData<&'a ()>,
}

impl Decompressor<'_> {
    /// A decompressor.
    ///
    /// # Errors
    /// None; the C library has some.
    pub fn new() -> io::Result<Self> {
        Ok(Self { decoder: FrameDecoder::new(), lifetime: std::marker::PhantomData })
    }

    /// Decompresses `from` into the empty `to`, up to its capacity, and returns the length.
    ///
    /// # Errors
    /// Damaged data, or more than there is room for.
    pub fn decompress_to_buffer(&mut self, from: &[u8], to: &mut Vec<u8>) -> io::Result<usize> {
        self.decoder.decode_all_to_vec(from, to).map_err(io::Error::other)?;
        Ok(to.len())
    }
}

/// Compresses to frames held in memory.
pub struct Compressor<'a>(std::marker::PhantomData<&'a ()>);

impl Compressor<'_> {
    /// A compressor; it has one level.
    ///
    /// # Errors
    /// None; the C library has some.
    pub fn new(_level: i32) -> io::Result<Self> {
        Ok(Self(std::marker::PhantomData))
    }

    /// Compresses `from` into the empty `to` and returns the length.
    ///
    /// # Errors
    /// None; the C library has some.
    pub fn compress_to_buffer(&mut self, from: &[u8], to: &mut Vec<u8>) -> io::Result<usize> {
        *to = compress_to_vec(from, CompressionLevel::Fastest);
        Ok(to.len())
    }
}

/// Compresses to a writer as one frame, which is written at the end.
pub struct Encoder<W> {
    to: W,
    content: Vec<u8>,
}

impl<W: Write> Encoder<W> {
    /// An encoder; it has one level.
    ///
    /// # Errors
    /// None; the C library has some.
    pub fn new(to: W, _level: i32) -> io::Result<Self> {
        Ok(Self { to, content: Vec::new() })
    }

    /// Writes the frame.
    ///
    /// # Errors
    /// Fails when it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.write_all(&compress_to_vec(&self.content[..], CompressionLevel::Fastest))?;
        Ok(self.to)
    }
}

impl<W> Write for Encoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.content.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The maximum length of `length` bytes once compressed, as the C library has it.
pub const fn compress_bound(length: usize) -> usize {
    let margin = if length < 128 << 10 { ((128 << 10) - length) >> 11 } else { 0 };
    length + (length >> 8) + margin
}

#[cfg(test)]
mod tests {
    use super::super::native;
    use super::*;

    fn text() -> Vec<u8> {
        (0..40_000u32).flat_map(|n| format!("{} {n}\n", n * n % 977).into_bytes()).collect()
    }

    fn unpacked(reader: io::Result<Box<dyn Read + '_>>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        reader?.read_to_end(&mut bytes).map(|_| bytes)
    }

    #[test]
    fn zstandard_frames_are_read_like_by_the_c_library() {
        let mut encoder = native::Encoder::new(Vec::new(), 3).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(&text()).unwrap();
        let frame = encoder.finish().unwrap();
        let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let stream = [&frame[..], &skipped, &frame].concat();
        assert_eq!(unpacked(zstd_reader(&stream[..])).unwrap(), [text(), text()].concat());
        let cut = &stream[..stream.len() - 9];
        assert!(unpacked(zstd_reader(cut)).is_err());
        let mut damaged = frame;
        *damaged.last_mut().unwrap() ^= 1;
        assert!(unpacked(zstd_reader(&damaged[..])).is_err());
    }

    #[test]
    fn xz_streams_are_read_like_by_the_c_library() {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 3);
        encoder.write_all(&text()).unwrap();
        let stream = encoder.finish().unwrap().repeat(2);
        assert_eq!(unpacked(xz_reader(&stream[..])).unwrap(), [text(), text()].concat());
        assert!(unpacked(xz_reader(&stream[..stream.len() - 40])).is_err());
    }

    #[test]
    fn what_one_compresses_the_other_reads() {
        let mut packed = Vec::new();
        Compressor::new(3).unwrap().compress_to_buffer(&text(), &mut packed).unwrap();
        let mut all = Vec::with_capacity(text().len());
        native::Decompressor::new().unwrap().decompress_to_buffer(&packed, &mut all).unwrap();
        assert_eq!(all, text());
        let mut encoder = Encoder::new(Vec::new(), 1).unwrap();
        encoder.write_all(&text()).unwrap();
        let streamed = encoder.finish().unwrap();
        assert_eq!(unpacked(native::zstd_reader(&streamed[..])).unwrap(), text());
        packed.clear();
        packed.reserve(native::compress_bound(text().len()));
        native::Compressor::new(3).unwrap().compress_to_buffer(&text(), &mut packed).unwrap();
        let mut all = Vec::with_capacity(text().len());
        let length = Decompressor::new().unwrap().decompress_to_buffer(&packed, &mut all).unwrap();
        assert_eq!((length, all), (text().len(), text()));
        let mut small = Vec::with_capacity(10);
        assert!(Decompressor::new().unwrap().decompress_to_buffer(&packed, &mut small).is_err());
    }

    #[test]
    fn the_bound_is_that_of_the_c_library() {
        for length in [0, 1, 1000, 128 << 10, (128 << 10) + 1, 1 << 24] {
            assert_eq!(compress_bound(length), native::compress_bound(length));
        }
    }
}
