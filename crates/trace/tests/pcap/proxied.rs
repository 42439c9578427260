//! Captures of both sides of a proxy.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use weir_trace::Row;
use weir_trace::import::{Import, Settings, open};

use crate::conversation::{Conversation, Segment};
use crate::files::{ETHERNET, Writer, packets};
use crate::invariants::OPEN;
use crate::{CONTENT, GET, OK};

const PROXY: &str = "198.51.100.9:3128";

/// The rows of the clients of a proxy at `proxy`, and the rest.
fn import(source: impl std::io::Read, proxy: &str) -> (Vec<Row>, Box<dyn Import>) {
    let mut bytes = Vec::new();
    let mut source = source;
    source.read_to_end(&mut bytes).unwrap();
    let settings = Settings {
        proxy: Some(proxy.parse().unwrap()),
        ..Settings::new(&OPEN)
    };
    let mut rows = open(std::io::Cursor::new(bytes), None, settings)
        .unwrap()
        .rows;
    let found = rows.by_ref().map(Result::unwrap).collect();
    (found, rows)
}

fn count(counts: impl IntoIterator<Item = (&'static str, u64)>, name: &str) -> u64 {
    let counts: BTreeMap<&str, u64> = counts.into_iter().collect();
    counts.get(name).copied().unwrap_or(0)
}

fn import_conversations(conversations: &[&Conversation]) -> (Vec<Row>, Box<dyn Import>) {
    let mut segments: Vec<Segment> = conversations
        .iter()
        .flat_map(|conversation| conversation.segments.clone())
        .collect();
    segments.sort_by_key(|segment| segment.time_us);
    let file = Writer { is_big: false }.classic(1, false, &packets(&segments, ETHERNET));
    import(&file[..], PROXY)
}

/// A client that asks the proxy for `/a` after `later_us`, and has it all 100 ms after that.
fn client(port: u16, later_us: i64) -> Conversation {
    let mut conversation = Conversation::between(&format!("192.0.2.7:{port}"), PROXY, 1000, 2000);
    conversation.later(later_us).ask(GET).wait(100_000);
    conversation.answer(&format!("{OK}{CONTENT}")).close();
    conversation
}

/// The proxy asks the origin for the same; the origin takes 20 ms.
fn next_hop(port: u16, later_us: i64) -> Conversation {
    let mut conversation =
        Conversation::between(&format!("198.51.100.9:{port}"), "203.0.113.1:80", 5, 6);
    conversation.later(later_us).ask(GET).wait(20_000);
    conversation.answer(&format!("{OK}{CONTENT}")).close();
    conversation
}

#[test]
fn next_hop_request_is_matched_to_the_client_request_that_caused_it() {
    // two miss one after the other, a third is answered without asking; the proxy asks once more
    // for itself
    let conversations = [
        client(50_000, 0),
        client(50_001, 10_000),
        client(50_002, 500_000),
    ];
    let asked = [
        next_hop(40_000, 20_000),
        next_hop(40_001, 30_000),
        next_hop(40_002, 800_000),
    ];
    let all: Vec<&Conversation> = conversations.iter().chain(&asked).collect();
    let (rows, import) = import_conversations(&all);
    assert_eq!(rows.len(), 3);
    let said = |row: &Row| {
        let times = (row.next_hop_setup_us, row.next_hop_response_us);
        (times, row.next_hop_bytes, row.is_persistent_server)
    };
    for row in &rows[..2] {
        // the answer begins one segment, and what the origin took, after the request
        assert_eq!(
            said(row),
            ((Some(1000), Some(22_000)), Some(10), Some(true))
        );
    }
    assert_ne!(rows[0].next_hop_connection, rows[1].next_hop_connection);
    assert_eq!(said(&rows[2]), ((None, None), Some(0), None));
    assert_eq!(rows[2].next_hop_connection, None);
    assert_eq!(count(import.met(), "requests-forwarded"), 2);
    assert_eq!(count(import.dropped().iter(), "next-hop-without-client"), 1);
}

#[test]
fn next_hop_request_for_another_target_or_after_the_end_is_unmatched() {
    let (asks, ends) = (client(50_000, 0), next_hop(40_000, 150_000));
    let (rows, import) = import_conversations(&[&asks, &ends]);
    assert_eq!((rows.len(), rows[0].next_hop_connection), (1, None));
    assert_eq!(count(import.met(), "requests-forwarded"), 0);

    let mut other = Conversation::between("198.51.100.9:40000", "203.0.113.1:80", 5, 6);
    other
        .later(20_000)
        .ask("GET /b HTTP/1.1\r\nHost: a.example\r\n\r\n");
    other.answer(&format!("{OK}{CONTENT}")).close();
    let (rows, import) = import_conversations(&[&asks, &other]);
    assert_eq!((rows.len(), rows[0].next_hop_connection), (1, None));
    assert_eq!(count(import.dropped().iter(), "next-hop-without-client"), 1);
}

#[test]
fn real_capture_shows_the_requests_forwarded_in_the_squid_log() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/tests/squid/data");
    let capture = File::open(data.join("devcap.pcap.gz")).unwrap();
    let (rows, capture) = import(capture, "127.0.0.1:41328");
    let log = File::open(data.join("devcap.access.log.gz")).unwrap();
    let log = open(log, None, Settings::new(&OPEN)).unwrap().rows;
    let logged: Vec<Row> = log.map(Result::unwrap).collect();
    assert_eq!((rows.len(), logged.len()), (150, 150));
    assert_eq!(count(capture.met(), "requests-forwarded"), 142);
    assert_eq!(
        count(capture.dropped().iter(), "next-hop-without-client"),
        0
    );
    // by target, in order: how often the origin was asked, and how often not. The log has no
    // queries
    let by_target = |rows: &[Row]| {
        let mut asked: BTreeMap<String, Vec<bool>> = BTreeMap::new();
        for row in rows {
            let text = row.target_text.as_deref().unwrap();
            let target = text.split('?').next().unwrap().to_owned();
            asked
                .entry(target)
                .or_default()
                .push(row.next_hop_bytes != Some(0) || row.next_hop_connection.is_some());
        }
        asked.values_mut().for_each(|asked| asked.sort_unstable());
        asked
    };
    assert_eq!(by_target(&rows), by_target(&logged));
}
