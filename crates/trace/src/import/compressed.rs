//! Compressed sources are read as they are: gzip (RFC 1952) and zstd (RFC 8878), both by code
//! without `unsafe` of ours and without C.
//!
//! Several members or frames after each other are one stream, as the standards say; that is how
//! logs that were rotated are joined. A checksum that does not fit is an error at the end of its
//! member: the rows before it were given out by then.

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

/// How a source is compressed, as its first bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// It is not.
    None,
    /// gzip.
    Gzip,
    /// zstd; a window of at most 128 MiB.
    Zstd,
    /// Another that is known, by its name, and is not read here.
    Unread(&'static str),
}

/// Bytes by which the compression of a source is recognised.
pub(crate) const MAGIC_BYTES: usize = 6;

/// Bytes that are uncompressed at a time.
const BUFFER_BYTES: usize = 128 * 1024;

impl Compression {
    /// By the first [`MAGIC_BYTES`] bytes.
    pub(crate) fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            // a skippable frame, which pzstd begins with
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Self::Unread("bzip2"),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Unread("xz"),
            [0x04, 0x22, 0x4d, 0x18, ..] => Self::Unread("lz4"),
            [b'P', b'K', 3, 4, ..] => Self::Unread("zip"),
            _ => Self::None,
        }
    }

    /// What `source` is when it is uncompressed.
    pub(crate) fn reader<'a>(self, source: impl BufRead + 'a) -> Box<dyn BufRead + 'a> {
        match self {
            Self::None | Self::Unread(_) => Box::new(source),
            Self::Gzip => {
                let members = MultiGzDecoder::new(source);
                Box::new(BufReader::with_capacity(BUFFER_BYTES, members))
            }
            Self::Zstd => {
                let frames = Frames::new(source);
                Box::new(BufReader::with_capacity(BUFFER_BYTES, frames))
            }
        }
    }
}

/// The frames of a zstd stream, one behind the other.
struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
    is_in_frame: bool,
}

impl<R: BufRead> Frames<R> {
    fn new(source: R) -> Self {
        Self {
            source,
            decoder: FrameDecoder::new(),
            is_in_frame: false,
        }
    }

    /// Goes to the next frame that has content; false at the end.
    fn begin(&mut self) -> io::Result<bool> {
        while !at_end(&mut self.source)? {
            match self.decoder.init(&mut self.source) {
                Ok(()) => {
                    self.is_in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let skipped = io::copy(&mut (&mut self.source).take(length), &mut io::sink())?;
                    if skipped < length {
                        return Err(cut_off());
                    }
                }
                Err(error) => return Err(read_error(&error)),
            }
        }
        Ok(false)
    }

    /// Ends the frame: its content must be what its checksum says.
    fn end(&mut self) -> io::Result<()> {
        self.is_in_frame = false;
        let said = self.decoder.get_checksum_from_data();
        if said.is_some() && said != self.decoder.get_calculated_checksum() {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "the checksum of a zstd frame is not that of its content",
            ));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.is_in_frame && !self.begin()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder
                    .decode_blocks(&mut self.source, one)
                    .map_err(|error| read_error(&error))?;
            }
            match self.decoder.read(out)? {
                0 => self.end()?,
                count => return Ok(count),
            }
        }
    }
}

fn at_end(source: &mut impl BufRead) -> io::Result<bool> {
    loop {
        match source.fill_buf() {
            Ok(piece) => return Ok(piece.is_empty()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn cut_off() -> io::Error {
    io::Error::new(
        ErrorKind::UnexpectedEof,
        "the end comes within a zstd frame",
    )
}

/// The decoder wraps what the source said; the end of the source is an error of its own, not that
/// it is no zstd.
fn read_error(error: &FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        if let Some(io) = inner.downcast_ref::<io::Error>()
            && io.kind() == ErrorKind::UnexpectedEof
        {
            return cut_off();
        }
        cause = inner.source();
    }
    io::Error::new(
        ErrorKind::InvalidData,
        format!("the zstd stream is damaged: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(content).unwrap();
        out.finish().unwrap()
    }

    fn zstd(content: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(content, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn read(input: &[u8], capacity: usize) -> io::Result<Vec<u8>> {
        let source = BufReader::with_capacity(capacity, input);
        let mut out = Vec::new();
        Compression::of(input)
            .reader(source)
            .read_to_end(&mut out)
            .map(|_| out)
    }

    fn content() -> Vec<u8> {
        (0..40_000_u32)
            .flat_map(|n| n.to_string().into_bytes())
            .collect()
    }

    #[test]
    fn gzip_and_zstd_content_is_decompressed_exactly() {
        let content = content();
        let skippable = b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc";
        for compressed in [
            gzip(&content),
            zstd(&content),
            [&skippable[..], &zstd(&content), skippable].concat(),
        ] {
            for capacity in [1, 4096] {
                assert!(read(&compressed, capacity).unwrap() == content);
            }
        }
    }

    #[test]
    fn concatenated_members_are_all_decompressed() {
        let content = content();
        let (first, second) = content.split_at(1234);
        for joined in [
            [gzip(first), gzip(second)].concat(),
            [zstd(first), zstd(second)].concat(),
        ] {
            assert!(read(&joined, 64).unwrap() == content);
        }
    }

    #[test]
    fn truncated_stream_gives_unexpected_eof() {
        for whole in [gzip(&content()), zstd(&content())] {
            for length in [MAGIC_BYTES, whole.len() / 2, whole.len() - 1] {
                let error = read(&whole[..length], 4096).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{length} {error}");
            }
        }
    }

    #[test]
    fn stream_with_a_corrupt_checksum_is_an_error() {
        for mut whole in [gzip(&content()), zstd(&content())] {
            let last = whole.len() - 1;
            whole[last] ^= 1;
            let error = read(&whole, 4096).unwrap_err();
            assert_ne!(error.kind(), ErrorKind::UnexpectedEof, "{error}");
        }
    }
}
