//! Encoders that are pushed: bytes in, bytes out.

use super::accepted::Coding;
use flate2::write::GzEncoder;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use weir_extend::{Piece, Progress, Transform};
use zstd::zstd_safe::CParameter;

/// Bytes that are encoded at a call, as a call must be short.
const STEP_BYTES: usize = 16 * 1024;

/// Content becomes no smaller than by this factor: decoders that guard against bombs, such as those
/// of this program for its modules (a hundred), would fail on what is coded here.
const SHRINK_MAX: u64 = 64;

/// Bytes at the beginning that may become smaller than that.
const SHRINK_FREE_BYTES: u64 = 256 * 1024;

/// Bytes of content that would become smaller which are encoded at a call, each with an end of its
/// block. `zstd` has blocks of 4 bytes for these.
const DENSE_STEP_BYTES: usize = 256;

/// log2 of the most content that an encoder looks back on. It bounds the memory of an encoder:
/// brotli took 7.5 MiB with 2^19 and 22 MiB with 2^22, for 4 to 30 % smaller results.
const WINDOW_BITS_MAX: u32 = 19;

/// log2 of the least content that `brotli` and `zstd` look back on.
const WINDOW_BITS_MIN: u32 = 10;

/// Bytes in which `brotli` hands on what it has made.
const BROTLI_BUFFER_BYTES: usize = 4 * 1024;

/// An encoder of one content.
enum Encoder {
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Gzip(GzEncoder<Vec<u8>>),
}

impl Encoder {
    fn new(coding: Coding, level: u32, length: Option<u64>) -> io::Result<Self> {
        let window_bits = window_bits(length);
        Ok(match coding {
            Coding::Brotli => {
                let encoder = brotli::CompressorWriter::new(
                    Vec::new(),
                    BROTLI_BUFFER_BYTES,
                    level,
                    window_bits,
                );
                Self::Brotli(Box::new(encoder))
            }
            Coding::Zstd => {
                let level = i32::try_from(level).unwrap_or(zstd::DEFAULT_COMPRESSION_LEVEL);
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), level)?;
                encoder.set_parameter(CParameter::WindowLog(window_bits))?;
                Self::Zstd(encoder)
            }
            Coding::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), flate2::Compression::new(level))),
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Brotli(encoder) => encoder.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
            Self::Gzip(encoder) => encoder.write_all(bytes),
        }
    }

    /// Has the receiver able to read all that was written.
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Brotli(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
            Self::Gzip(encoder) => encoder.flush(),
        }
    }

    /// What was made since the last call.
    fn take(&mut self) -> Vec<u8> {
        std::mem::take(match self {
            Self::Brotli(encoder) => encoder.get_mut(),
            Self::Zstd(encoder) => encoder.get_mut(),
            Self::Gzip(encoder) => encoder.get_mut(),
        })
    }

    /// The end of the content: the rest of what is made of it.
    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Brotli(encoder) => Ok(encoder.into_inner()),
            Self::Zstd(encoder) => encoder.finish(),
            Self::Gzip(encoder) => encoder.finish(),
        }
    }
}

fn window_bits(length: Option<u64>) -> u32 {
    let bits = length.map_or(WINDOW_BITS_MAX, |length| u64::BITS - length.leading_zeros());
    bits.clamp(WINDOW_BITS_MIN, WINDOW_BITS_MAX)
}

/// Content on its way through an encoder.
pub(super) struct Encoding {
    /// `None` once the content has ended.
    encoder: Option<Encoder>,
    output: Vec<u8>,
    /// Bytes of the output that were passed on.
    passed: usize,
    /// Whether the next hop may pause within the content: what has come is passed on then.
    may_pause: bool,
    /// Whether the encoder has content that the receiver cannot read yet.
    is_held: bool,
    taken_bytes: u64,
    made_bytes: u64,
    _stream: Stream,
}

impl Encoding {
    /// Content of so many bytes, if that is known, to be coded. A next hop that knows the length
    /// has the content, and does not pause within it.
    pub(super) fn new(
        coding: Coding,
        level: u32,
        length: Option<u64>,
        stream: Stream,
    ) -> io::Result<Self> {
        Ok(Self {
            encoder: Some(Encoder::new(coding, level, length)?),
            output: Vec::new(),
            passed: 0,
            may_pause: length.is_none(),
            is_held: false,
            taken_bytes: 0,
            made_bytes: 0,
            _stream: stream,
        })
    }

    /// Puts out what is there; whether that was all.
    fn pass(&mut self, piece: &mut Piece<'_>) -> bool {
        self.passed += piece.put(&self.output[self.passed..]);
        let is_all = self.passed == self.output.len();
        if is_all {
            self.output = Vec::new();
            self.passed = 0;
        }
        is_all
    }

    /// Whether less was made of the content so far than decoders expect.
    const fn is_dense(&self) -> bool {
        let free = self.made_bytes.saturating_mul(SHRINK_MAX);
        self.taken_bytes > free.saturating_add(SHRINK_FREE_BYTES)
    }

    /// Encodes a step of the content, or its end.
    fn step(&mut self, piece: &mut Piece<'_>) -> io::Result<()> {
        let input = piece.input();
        let is_dense = self.is_dense();
        let step = if is_dense {
            DENSE_STEP_BYTES
        } else {
            STEP_BYTES
        };
        let count = input.len().min(step);
        if count == 0 && piece.is_last() {
            self.output = self
                .encoder
                .take()
                .map_or(Ok(Vec::new()), Encoder::finish)?;
            return Ok(());
        }
        let Some(encoder) = &mut self.encoder else {
            return Ok(());
        };
        if count > 0 {
            encoder.write(&input[..count])?;
            piece.take(count);
            self.taken_bytes += count as u64;
            self.is_held = true;
        }
        let pauses = self.may_pause && piece.input().is_empty() && !piece.is_last();
        if self.is_held && (pauses || is_dense) {
            encoder.flush()?;
            self.is_held = false;
        }
        self.output = encoder.take();
        self.made_bytes += self.output.len() as u64;
        Ok(())
    }
}

impl Transform for Encoding {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        if !self.pass(piece) {
            return Progress::Continue;
        }
        if self.encoder.is_some() && self.step(piece).is_err() {
            return Progress::Fail;
        }
        if self.pass(piece) && self.encoder.is_none() {
            return Progress::Done;
        }
        Progress::Continue
    }
}

/// A place among the contents that are encoded at once.
pub(super) struct Stream(Arc<AtomicUsize>);

impl Stream {
    /// One of at most `most`, of which `taken` counts those that are taken.
    pub(super) fn take(taken: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let more = |count| (count < most).then_some(count + 1);
        taken.fetch_update(Relaxed, Relaxed, more).ok()?;
        Some(Self(Arc::clone(taken)))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn decode(coding: Coding, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        match coding {
            Coding::Brotli => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut content),
            Coding::Zstd => zstd::stream::read::Decoder::new(bytes)?.read_to_end(&mut content),
            Coding::Gzip => flate2::read::GzDecoder::new(bytes).read_to_end(&mut content),
        }?;
        Ok(content)
    }

    fn encoding(coding: Coding, length: Option<u64>) -> Encoding {
        let stream = Stream::take(&Arc::default(), 1).expect("there is one");
        Encoding::new(coding, 5, length, stream).expect("an encoder")
    }

    /// What content becomes that comes in pieces of so many bytes, with so much room at a call.
    fn encode(coding: Coding, content: &[u8], size: usize, room: usize) -> Vec<u8> {
        let mut encoding = encoding(coding, None);
        let (mut rest, mut out) = (content, Vec::new());
        loop {
            let count = rest.len().min(size);
            let mut piece = Piece::new(&rest[..count], count == rest.len(), &mut out, room);
            let progress = encoding.transform(&mut piece);
            let taken = piece.taken();
            rest = &rest[taken..];
            match progress {
                Progress::Done => return out,
                Progress::Continue => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Text of which some repeats and some does not.
    fn text(bytes: usize) -> Vec<u8> {
        let words = (0_u32..).map(|n| format!("<p>{} of {n}</p>\n", n.wrapping_mul(2_654_435_761)));
        words.flat_map(String::into_bytes).take(bytes).collect()
    }

    #[test]
    fn encoded_content_is_the_content_whatever_the_pieces_and_the_room() {
        for coding in Coding::ALL {
            for (bytes, sizes) in [
                (0, &[1][..]),
                (1, &[1]),
                (700, &[1, 7, 1000]),
                (200_000, &[999, 16_384, 65_536, 1 << 20]),
            ] {
                let content = text(bytes);
                for size in sizes {
                    for room in [1, 100, 65_536] {
                        let out = encode(coding, &content, *size, room);
                        let back = decode(coding, &out).expect("what was encoded");
                        assert!(back == content, "{coding:?} {bytes} {size} {room}");
                    }
                }
            }
        }
    }

    #[test]
    fn content_of_many_bytes_gets_smaller() {
        for coding in Coding::ALL {
            let out = encode(coding, &text(200_000), 65_536, 65_536);
            assert!(out.len() < 70_000, "{coding:?}: {}", out.len());
        }
    }

    /// What decoders of this program accept: a hundredfold beyond a mebibyte.
    #[test]
    fn content_that_repeats_is_no_bomb_to_decoders() {
        for unit in ["x", "The quick brown fox jumps over the lazy dog.\n"] {
            let content = unit.repeat((8 << 20) / unit.len()).into_bytes();
            for coding in Coding::ALL {
                let out = encode(coding, &content, 65_536, 65_536);
                let grown = content.len() - (1 << 20);
                assert!(grown <= out.len() * 100, "{coding:?}: {}", out.len());
                let back = decode(coding, &out).expect("what was encoded");
                assert!(back == content, "{coding:?}");
            }
        }
    }

    /// Otherwise a client waits for content that the next hop has sent long ago.
    #[test]
    fn content_before_a_pause_of_the_next_hop_can_be_read() {
        for coding in Coding::ALL {
            let mut encoding = encoding(coding, None);
            let (mut out, mut sent) = (Vec::new(), Vec::new());
            for part in [&b"first, "[..], b"", b"second", b" and third"] {
                sent.extend_from_slice(part);
                let mut rest = part;
                // until it takes and puts nothing more
                loop {
                    let before = out.len();
                    let mut piece = Piece::new(rest, false, &mut out, 65_536);
                    assert_eq!(encoding.transform(&mut piece), Progress::Continue);
                    let taken = piece.taken();
                    rest = &rest[taken..];
                    if taken == 0 && out.len() == before {
                        break;
                    }
                }
                let mut read = vec![0; sent.len()];
                let mut decoder: Box<dyn io::Read> = match coding {
                    Coding::Brotli => Box::new(brotli::Decompressor::new(&*out, 4096)),
                    Coding::Zstd => {
                        Box::new(zstd::stream::read::Decoder::new(&*out).expect("zstd"))
                    }
                    Coding::Gzip => Box::new(flate2::read::GzDecoder::new(&*out)),
                };
                decoder.read_exact(&mut read).expect("all that was sent");
                assert_eq!(read, sent, "{coding:?}");
            }
        }
    }

    #[test]
    fn content_of_known_length_is_not_cut_up_by_pauses() {
        for coding in Coding::ALL {
            let mut encoding = encoding(coding, Some(100_000));
            let content = text(100_000);
            let mut out = Vec::new();
            for part in content[..5_000].chunks(1000) {
                let mut piece = Piece::new(part, false, &mut out, 65_536);
                assert_eq!(encoding.transform(&mut piece), Progress::Continue);
                assert_eq!(piece.taken(), part.len());
            }
            assert!(out.len() < 100, "{coding:?}: {}", out.len());
        }
    }

    #[test]
    fn no_more_contents_are_encoded_at_once_than_there_are_streams() {
        let taken = Arc::default();
        let first = Stream::take(&taken, 2).expect("one");
        let _second = Stream::take(&taken, 2).expect("two");
        assert!(Stream::take(&taken, 2).is_none());
        drop(first);
        assert!(Stream::take(&taken, 2).is_some());
    }

    #[test]
    fn window_is_no_larger_than_the_content_or_the_limit() {
        for (length, bits) in [
            (Some(0), 10),
            (Some(1023), 10),
            (Some(1024), 11),
            (Some(100_000), 17),
            (Some(1 << 30), 19),
            (None, 19),
        ] {
            assert_eq!(window_bits(length), bits, "{length:?}");
        }
    }
}
