//! Any bytes, and pieces of valid sources in any order, for every importer.

mod import_invariants;

use import_invariants::check;
use proptest::prelude::*;
use std::io::Write;
use weir_trace::import::Format;

/// Those that read logs and lists; captures have their own.
const FORMATS: [Format; 5] = [
    Format::Squid,
    Format::Common,
    Format::Har,
    Format::OracleGeneral,
    Format::Webcachesim,
];

/// What valid sources are made of, so that chance gets past the first check.
const PIECES: [&str; 30] = [
    "{\"log\":{",
    "\"entries\":[",
    "{\"startedDateTime\":\"2015-12-20T13:43:36.694Z\",",
    "\"request\":{\"method\":\"GET\",\"url\":\"http://a/\"}",
    "}",
    "]",
    ",",
    "\"response\":{\"status\":200}",
    "null",
    "\\\"",
    "\"",
    "\n",
    "\r\n",
    " ",
    "-",
    "a - - [17/May/2015:10:05:03 +0000] ",
    "\"GET / HTTP/1.1\"",
    " 200 12",
    " \"\\x22\" \"x\"",
    "1286536308.779 180 ",
    "192.168.0.224 TCP_MISS/200 411 GET ",
    "http://a/b?c#d",
    " - DIRECT/1.2.3.4",
    " text/html",
    "9999999999999999999",
    "-1",
    "[",
    "\u{feff}",
    "1 2 3\n",
    "\\",
];

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(content).expect("memory takes it");
    out.finish().expect("memory takes it")
}

fn zstd(content: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(content, ruzstd::encoding::CompressionLevel::Fastest)
}

proptest! {
    // each case reads its input up to 32 times
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_imported_or_reported_without_a_panic(input in proptest::collection::vec(any::<u8>(), 0..600)) {
        check(&input, None);
        for format in FORMATS {
            check(&input, Some(format));
        }
    }

    #[test]
    fn pieces_of_valid_sources_are_imported_or_reported_without_a_panic(
        pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..40),
        cut in 0_usize..200,
    ) {
        let input = pieces.concat();
        check(input.as_bytes(), None);
        for format in FORMATS {
            check(input.as_bytes(), Some(format));
            for compressed in [gzip(input.as_bytes()), zstd(input.as_bytes())] {
                check(&compressed[..compressed.len().saturating_sub(cut)], Some(format));
            }
        }
    }

    #[test]
    fn corrupt_compressed_input_is_imported_or_reported_without_a_panic(
        lines in 1_usize..5000,
        at in any::<proptest::sample::Index>(),
        flip in 1_u8..=255,
    ) {
        let content = b"109 26 1\n".repeat(lines);
        for mut compressed in [gzip(&content), zstd(&content)] {
            let at = at.index(compressed.len());
            compressed[at] ^= flip;
            check(&compressed, Some(Format::Webcachesim));
        }
    }
}

/// Found by the test above, where pieces and the whole differed.
#[test]
fn corruption_that_shows_before_or_after_the_first_row_is_reported() {
    let content = b"109 26 1\n".repeat(1879);
    for mut compressed in [gzip(&content), zstd(&content)] {
        let at = (compressed.len() as u128 * 1_246_401_626_601_996_731) >> 64;
        compressed[usize::try_from(at).expect("within")] ^= 95;
        check(&compressed, Some(Format::Webcachesim));
    }
}
