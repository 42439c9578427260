//! Captures that the tests write themselves, packet by packet, and what the importer makes of them.

#![expect(
    clippy::unwrap_used,
    reason = "what the tests build themselves is there; where it is not, the test fails"
)]

mod bounds;
mod conversation;
mod ends;
mod files;
mod formats;
mod http;
mod invariants;
mod loss;
mod proxied;
mod random;
mod tshark;

use weir_trace::Row;
use weir_trace::import::Settings;
use weir_trace::import::pcap::{Capture, Counts};

use conversation::Conversation;
use files::{ETHERNET, Writer, packets};
use invariants::OPEN;

/// The rows of a capture that is in order, and what was counted.
fn import(file: &[u8]) -> (Vec<Row>, Counts) {
    let mut capture = Capture::new(file, &Settings::new(&OPEN));
    let rows: Vec<Row> = capture.by_ref().map(Result::unwrap).collect();
    (rows, capture.counts())
}

/// The same of conversations, whose packets are in order of time.
fn import_conversations(conversations: &[&Conversation]) -> (Vec<Row>, Counts) {
    let mut segments: Vec<_> = conversations
        .iter()
        .flat_map(|conversation| conversation.segments.clone())
        .collect();
    segments.sort_by_key(|segment| segment.time_us);
    import(&Writer { is_big: false }.classic(1, false, &packets(&segments, ETHERNET)))
}

/// The same of one conversation, in the order in which its segments stand there.
fn import_conversation(conversation: &Conversation) -> (Vec<Row>, Counts) {
    import(&Writer { is_big: false }.classic(1, false, &packets(&conversation.segments, ETHERNET)))
}

const GET: &str = "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
const CONTENT: &str = "0123456789";
