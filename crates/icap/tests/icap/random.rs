//! The invariants of the fuzz target over random inputs, so that they are kept where no fuzzer
//! runs.

use proptest::prelude::*;

use crate::invariants;

/// Pieces that messages are made of, good and bad, so that random joins come close to the grammar.
const PIECES: &[&str] = &[
    "ICAP/1.0 100 Continue\r\n\r\n",
    "ICAP/1.0 204 No\r\n\r\n",
    "ICAP/1.0 204 No\r\nEncapsulated: null-body=0\r\n\r\n",
    "ICAP/1.0 200 OK\r\n",
    "ICAP/1.0 404 No\r\n\r\n",
    "ICAP/1.0 206 Part\r\n",
    "ISTag: \"a\"\r\n",
    "Host: e\r\n",
    "Encapsulated: res-hdr=0, res-body=19\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    "Encapsulated: res-hdr=0, null-body=19\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    "Encapsulated: req-hdr=0, req-body=18\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    "Encapsulated: req-hdr=0, null-body=18\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    "Encapsulated: req-hdr=0, res-hdr=18, res-body=37\r\n\r\nGET / HTTP/1.1\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    "Encapsulated: null-body=0\r\n\r\n",
    "Encapsulated: opt-body=0\r\n\r\n",
    "Encapsulated: res-hdr=0, res-body=1\r\n\r\n",
    "OPTIONS icap://e/s ICAP/1.0\r\nHost: e\r\n\r\n",
    "REQMOD icap://e/s ICAP/1.0\r\nHost: e\r\n",
    "RESPMOD icap://e/s ICAP/1.0\r\nHost: e\r\n",
    "RESPMOD icap://e/s ICAP/1.0\r\nHost: e\r\nPreview: 5\r\n",
    "Preview: 0\r\n",
    "Preview: 9\r\n",
    "Allow: 204\r\n",
    "Connection: close\r\n",
    "Content-Length: 0\r\n",
    "5\r\nhello\r\n",
    "1\r\nx\r\n",
    "ffffffffffffffff\r\n",
    "0\r\n\r\n",
    "0\r\nA: b\r\n\r\n",
    "0; ieof\r\n\r\n",
    "0;a\r\n\r\n",
    "A: b\r\n",
    "A : b\r\n",
    "A: b\n",
    "\r\n",
    "\n",
    "\r",
    " ",
    "\0",
    "5",
    "0",
];

fn text() -> impl Strategy<Value = Vec<u8>> {
    let piece = proptest::sample::select(PIECES);
    proptest::collection::vec(piece, 1..8).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn answer_reads_the_same_in_pieces(choice: u8, text in text()) {
        invariants::answer(choice, &text);
    }

    #[test]
    fn requests_read_the_same_in_pieces(choice: u8, text in text()) {
        invariants::requests(choice, &text);
    }
}
