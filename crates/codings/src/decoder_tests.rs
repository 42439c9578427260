//! Decoders against the encoders of others, whatever the pieces; and content that is damaged.

use super::*;
use proptest::prelude::*;
use std::io::Write as _;

/// How content is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Gzip,
    /// Two members.
    Members,
    Zlib,
    /// RFC 1951 alone.
    Raw,
    Brotli,
    Zstd,
    /// Two frames.
    Frames,
}

const ALL: [How; 7] = [
    How::Gzip,
    How::Members,
    How::Zlib,
    How::Raw,
    How::Brotli,
    How::Zstd,
    How::Frames,
];

impl How {
    const fn coding(self) -> Coding {
        match self {
            Self::Gzip | Self::Members => Coding::Gzip,
            Self::Zlib | Self::Raw => Coding::Deflate,
            Self::Brotli => Coding::Brotli,
            Self::Zstd | Self::Frames => Coding::Zstd,
        }
    }

    fn encode(self, content: &[u8]) -> Vec<u8> {
        let level = flate2::Compression::fast();
        let whole = |encoded: std::io::Result<Vec<u8>>| encoded.expect("memory is enough");
        let halves = || content.split_at(content.len() / 2);
        match self {
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(content).expect("memory is enough");
                whole(encoder.finish())
            }
            Self::Members => {
                let (first, second) = halves();
                [Self::Gzip.encode(first), Self::Gzip.encode(second)].concat()
            }
            Self::Zlib => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(content).expect("memory is enough");
                whole(encoder.finish())
            }
            Self::Raw => {
                let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), level);
                encoder.write_all(content).expect("memory is enough");
                whole(encoder.finish())
            }
            Self::Brotli => {
                let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 3, 18);
                encoder.write_all(content).expect("memory is enough");
                encoder.into_inner()
            }
            Self::Zstd => whole(zstd::encode_all(content, 1)),
            Self::Frames => {
                let (first, second) = halves();
                [Self::Zstd.encode(first), Self::Zstd.encode(second)].concat()
            }
        }
    }
}

/// What comes out if `coded` is offered in pieces of these sizes, with so much room; `None` if it
/// is refused.
fn decode(coding: Coding, coded: &[u8], sizes: &[usize], room: usize) -> Option<Vec<u8>> {
    let gauge = MemoryGauge::default();
    decode_gauged((coding, &gauge), coded, sizes, room)
}

/// The same; what `gauge` shows is that of the most memory.
fn decode_gauged(
    (coding, gauge): (Coding, &MemoryGauge),
    coded: &[u8],
    sizes: &[usize],
    room: usize,
) -> Option<Vec<u8>> {
    let own = MemoryGauge::default();
    let mut decoder = Decoder::new(coding, own.clone()).expect("memory is enough");
    let (mut held, mut at, mut all) = (Vec::new(), 0, Vec::new());
    for turn in 0.. {
        let size = sizes[turn % sizes.len()].min(coded.len() - at);
        held.extend_from_slice(&coded[at..at + size]);
        at += size;
        loop {
            let mut out = Vec::new();
            let mut piece = Piece::new(&held, at == coded.len(), &mut out, room);
            let progress = decoder.transform(&mut piece);
            gauge.set(gauge.bytes().max(own.bytes()));
            let taken = piece.taken();
            held.drain(..taken);
            all.extend_from_slice(&out);
            match progress {
                Progress::Done => return Some(all),
                Progress::Fail => return None,
                Progress::Continue if taken == 0 && out.is_empty() => break,
                Progress::Continue => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(at < coded.len(), "it neither ends nor fails");
        assert!(held.len() < 2 + size, "{} bytes are left", held.len());
    }
    None
}

proptest! {
    #[test]
    fn content_is_what_was_encoded_whatever_the_pieces(
        how in 0..ALL.len(),
        words in prop::collection::vec(0_u8..40, 0..6000),
        sizes in prop::collection::vec(1_usize..700, 1..6),
        room in 1_usize..3000,
    ) {
        let coded = ALL[how].encode(&words);
        prop_assert!(decode(ALL[how].coding(), &coded, &sizes, room) == Some(words));
    }

    #[test]
    fn content_that_is_not_coded_so_ends_whatever_it_is(
        how in 0..ALL.len(),
        bytes in prop::collection::vec(any::<u8>(), 0..3000),
        flips in prop::collection::vec((any::<usize>(), any::<u8>()), 0..4),
        is_coded in any::<bool>(),
    ) {
        let mut coded = if is_coded { ALL[how].encode(&bytes) } else { bytes };
        for (at, flip) in flips {
            let length = coded.len().max(1);
            if let Some(byte) = coded.get_mut(at % length) {
                *byte ^= flip;
            }
        }
        let _ = decode(ALL[how].coding(), &coded, &[97], 1000);
    }
}

#[test]
fn content_that_was_cut_anywhere_is_refused() {
    let content = b"the quick brown fox jumps over the lazy dog, and over the fox".repeat(20);
    for how in ALL {
        let coded = how.encode(&content);
        let whole_first = match how {
            How::Members => How::Gzip.encode(&content[..content.len() / 2]).len(),
            How::Frames => How::Zstd.encode(&content[..content.len() / 2]).len(),
            _ => 0,
        };
        for end in 1..coded.len() {
            let decoded = decode(how.coding(), &coded[..end], &[coded.len()], 4096);
            // between two members, or behind the first byte of what may be one
            let is_whole = whole_first > 0
                && (end == whole_first || how == How::Members && end == whole_first + 1);
            assert_eq!(decoded.is_some(), is_whole, "{how:?} cut at {end}");
        }
        assert_eq!(
            decode(how.coding(), &[], &[1], 10),
            Some(Vec::new()),
            "{how:?}"
        );
    }
}

#[test]
fn bytes_behind_the_end_are_ignored_except_behind_zstd_frames() {
    for how in ALL {
        let coded = [how.encode(b"content"), b"\0garbage".to_vec()].concat();
        for size in [1, coded.len()] {
            let decoded = decode(how.coding(), &coded, &[size], 4096);
            let expected = (how.coding() != Coding::Zstd).then(|| b"content".to_vec());
            assert_eq!(decoded, expected, "{how:?}");
        }
    }
}

#[test]
fn content_whose_check_is_wrong_is_refused() {
    for how in [How::Gzip, How::Members, How::Zlib] {
        let mut coded = how.encode(b"content");
        let last = coded.len() - 1;
        coded[last] ^= 1;
        assert_eq!(decode(how.coding(), &coded, &[5], 4096), None, "{how:?}");
    }
}

#[test]
fn content_that_grows_more_than_a_hundredfold_is_refused_beyond_a_mebibyte() {
    for how in [How::Gzip, How::Zlib, How::Raw, How::Brotli, How::Zstd] {
        let small = how.encode(&vec![0; 1_000_000]);
        assert!(small.len() < 10_000, "{how:?}: {}", small.len());
        let decoded = decode(how.coding(), &small, &[300], 64 * 1024);
        assert_eq!(
            decoded.map(|content| content.len()),
            Some(1_000_000),
            "{how:?}"
        );
        let large = how.encode(&vec![0; 30_000_000]);
        assert_eq!(
            decode(how.coding(), &large, &[300], 64 * 1024),
            None,
            "{how:?}"
        );
    }
}

#[test]
fn window_larger_than_rfc_9659_has_it_is_refused() {
    let encode = |window_log| {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("memory is enough");
        encoder.window_log(window_log).expect("a window");
        encoder.write_all(b"content").expect("memory is enough");
        encoder.finish().expect("memory is enough")
    };
    assert!(decode(Coding::Zstd, &encode(23), &[10], 100).is_some());
    assert!(decode(Coding::Zstd, &encode(24), &[10], 100).is_none());
}

#[test]
fn gauge_shows_the_window_that_content_needs_and_the_codes() {
    const MIB: usize = 1024 * 1024;
    // not to be made smaller, so that it fills the window
    let mut state = 1_u32;
    let bytes = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    });
    let content: Vec<u8> = bytes.take(20 * MIB).collect();
    let brotli = |window_bits| {
        let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 0, window_bits);
        encoder.write_all(&content).expect("memory is enough");
        encoder.into_inner()
    };
    let zstd = |window_bits| {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("memory is enough");
        encoder.window_log(window_bits).expect("a window");
        encoder.write_all(&content).expect("memory is enough");
        encoder.finish().expect("memory is enough")
    };
    for (coding, coded, window_bytes) in [
        (Coding::Brotli, brotli(24), 16 * MIB),
        (Coding::Brotli, brotli(18), MIB / 4),
        (Coding::Zstd, zstd(23), 8 * MIB),
        (Coding::Zstd, zstd(18), MIB / 4),
        (Coding::Gzip, How::Gzip.encode(&content), 32 * 1024),
    ] {
        let gauge = MemoryGauge::default();
        let decoded = decode_gauged((coding, &gauge), &coded, &[65_536], 65_536);
        assert!(decoded.is_some_and(|decoded| decoded == content));
        let bytes = gauge.bytes();
        assert!(bytes >= window_bytes, "{coding:?}: {bytes}");
        assert!(bytes <= window_bytes * 2 + MIB, "{coding:?}: {bytes}");
    }
}
