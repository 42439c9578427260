//! The invariants of the fuzz targets over random inputs, so that they are kept where no fuzzer
//! runs.

mod invariants;

use proptest::prelude::*;
use weir_wire::{BodyLength, HeadLimits};

/// Pieces that heads are made of, good and bad, so that random joins come close to the grammar.
const HEAD_PIECES: &[&str] = &[
    "GET / HTTP/1.1\r\n",
    "HTTP/1.1 200 OK\r\n",
    "POST http://e/ HTTP/1.0\r\n",
    "HTTP/1.0 304 \r\n",
    "HTTP/1.1 200\r\n",
    "GET",
    " ",
    "/",
    "/\u{e9}",
    "HTTP/1.1",
    "HTTP/2.0",
    "HTTP/1.",
    "200",
    "Host: e\r\n",
    "Content-Length: 5\r\n",
    "A:\r\n",
    "A: b",
    "A : b\r\n",
    "A: b\n",
    "HTTP/1.1 200 OK\n",
    "HTTP/1.7 204 \r\n",
    "Content-Length: 5, 5\r\n",
    "Content-Length: 6\r\n",
    "Content-Length\t: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: ,chunked,\r\n",
    "\n\n",
    "A",
    ":",
    "b",
    "\r\n",
    "\r\n\r\n",
    "\r",
    "\n",
    "\t",
    "\0",
    "\x7f",
    "\u{ff}",
];

/// Pieces that chunked content is made of, good and bad.
const CHUNK_PIECES: &[&str] = &[
    "0\r\n",
    "0\r\n\r\n",
    "1\r\nx\r\n",
    "5\r\nhello\r\n",
    "a\r\n",
    "0000000000000001",
    "00000000000000000005\r\nhello\r\n",
    "5 \r\nhello\r\n",
    "1 ; a = b \r\nx\r\n",
    "fffffffffffffff",
    "5",
    "0",
    "x",
    ";",
    ";a",
    ";a=b",
    ";a=\"b\\\"\"",
    "=",
    "\"",
    "\\",
    "A: b\r\n",
    "Host: e\r\n",
    "A",
    ": ",
    " ",
    "\r\n",
    "\r",
    "\n",
    "\0",
    "-",
    "\u{ff}",
];

/// Random joins of `pieces`, with a random byte here and there.
fn joined(pieces: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        12 => prop::sample::select(pieces).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

/// A start line as it should be, then random fields.
fn nearly_good(start: &'static str) -> impl Strategy<Value = Vec<u8>> {
    joined(HEAD_PIECES).prop_map(move |rest| [start.as_bytes(), &rest, b"\r\n\r\n"].concat())
}

/// Limits that random inputs reach.
fn limits() -> impl Strategy<Value = HeadLimits> {
    let bytes_max = prop_oneof![3 => Just(65_536), 1 => 0..100_usize];
    let fields_max = prop_oneof![3 => Just(128), 1 => 0..4_usize];
    (bytes_max, fields_max).prop_map(|(bytes_max, fields_max)| HeadLimits {
        bytes_max,
        fields_max,
    })
}

fn length() -> impl Strategy<Value = BodyLength> {
    prop_oneof![
        Just(BodyLength::None),
        (0..40_u64).prop_map(BodyLength::Exact),
        any::<u64>().prop_map(BodyLength::Exact),
        Just(BodyLength::UntilClose),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn request_head_is_parsed_alike_however_the_input_is_split(text in joined(HEAD_PIECES), limits in limits()) {
        invariants::request_head(&text, &limits);
    }

    #[test]
    fn nearly_valid_request_head_is_parsed_alike_however_the_input_is_split(
        text in nearly_good("GET /a?b HTTP/1.1\r\nHost: e\r\n"),
        limits in limits(),
    ) {
        invariants::request_head(&text, &limits);
    }

    #[test]
    fn response_head_is_parsed_alike_however_the_input_is_split(text in joined(HEAD_PIECES), limits in limits()) {
        invariants::response_head(&text, &limits);
        invariants::lenient_response_head(&text, &limits);
    }

    #[test]
    fn nearly_valid_response_head_is_parsed_alike_however_the_input_is_split(
        text in nearly_good("HTTP/1.1 200 OK\r\nServer: e\r\n"),
        limits in limits(),
    ) {
        invariants::response_head(&text, &limits);
        invariants::lenient_response_head(&text, &limits);
    }

    #[test]
    fn chunked_content_is_decoded_alike_however_the_input_is_split(text in joined(CHUNK_PIECES), limits in limits()) {
        invariants::body(&text, BodyLength::Chunked, limits);
    }

    #[test]
    fn nearly_valid_chunked_content_is_decoded_alike_however_split(
        sizes in prop::collection::vec(1..20_usize, 0..5),
        tail in joined(CHUNK_PIECES),
        limits in limits(),
    ) {
        let mut text = Vec::new();
        for size in sizes {
            text.extend_from_slice(format!("{size:x}\r\n{}\r\n", "x".repeat(size)).as_bytes());
        }
        text.extend_from_slice(&tail);
        invariants::body(&text, BodyLength::Chunked, limits);
    }

    #[test]
    fn unchunked_content_is_decoded_alike_however_the_input_is_split(
        text in prop::collection::vec(any::<u8>(), 0..60),
        length in length(),
    ) {
        invariants::body(&text, length, HeadLimits::default());
    }
}
