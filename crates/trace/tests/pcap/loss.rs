//! What the network and the monitor do to segments.

use weir_trace::import::pcap::Counts;
use weir_trace::{AbortedBy, Row};

use crate::conversation::{CLIENT, Conversation, SERVER, Segment, Side};
use crate::{CONTENT, GET, OK, import_conversation, import_conversations};

/// Two transactions; the second is `/b`.
fn two() -> Conversation {
    let mut conversation = Conversation::open();
    conversation
        .ask(GET)
        .answer(OK)
        .answer(&CONTENT[..5])
        .answer(&CONTENT[5..]);
    conversation
        .ask("GET /b HTTP/1.1\r\nHost: a.example\r\n\r\n")
        .answer(&format!("{OK}{CONTENT}"))
        .close();
    conversation
}

/// `two` after `change`: status, content and the side that ended it, of both.
fn check(
    change: impl FnOnce(&mut Vec<Segment>),
    expected: &[(Option<u16>, Option<u64>)],
) -> (Vec<Row>, Counts) {
    let mut conversation = two();
    change(&mut conversation.segments);
    let (rows, counts) = import_conversation(&conversation);
    let said: Vec<_> = rows
        .iter()
        .map(|row| (row.status, row.received_bytes))
        .collect();
    assert_eq!(said, expected, "{counts:?}");
    (rows, counts)
}

const BOTH: [(Option<u16>, Option<u64>); 2] = [(Some(200), Some(10)), (Some(200), Some(10))];

/// Where in `two` the segment with this data is.
fn place(segments: &[Segment], data: &str) -> usize {
    segments
        .iter()
        .position(|segment| segment.data == data.as_bytes())
        .unwrap()
}

#[test]
fn content_lost_by_the_monitor_is_counted_as_received() {
    let lose = |segments: &mut Vec<Segment>| {
        segments.remove(place(segments, &CONTENT[..5]));
    };
    let (rows, counts) = check(lose, &BOTH);
    assert_eq!((counts.holes, counts.missing_bytes), (1, 5));
    assert!(
        rows.iter()
            .all(|row| row.aborted_by == Some(AbortedBy::Neither))
    );
}

#[test]
fn lost_header_section_costs_only_its_own_transaction() {
    // the response's: the request has no answer, and the next pair is found again
    let (rows, counts) = check(
        |segments| {
            segments.remove(place(segments, OK));
        },
        &[(None, None), (Some(200), Some(10))],
    );
    assert_eq!(rows[1].target_text.as_deref(), Some("http://a.example/b"));
    assert_eq!(
        (counts.holes, counts.unanswered, counts.skipped_bytes),
        (1, 1, 10)
    );
    // the request's: the response belongs to no request, and the next pair is found again
    let (rows, counts) = check(
        |segments| {
            segments.remove(place(segments, GET));
        },
        &[(Some(200), Some(10))],
    );
    assert_eq!(rows[0].target_text.as_deref(), Some("http://a.example/b"));
    assert_eq!((counts.holes, counts.orphans), (1, 1));
    // it is not the first of its connection
    assert_eq!(
        (
            rows[0].connection_sequence,
            rows[0].setup_us,
            rows[0].request_us
        ),
        (None, None, Some(0))
    );
}

#[test]
fn response_is_not_matched_to_a_request_before_a_lost_one() {
    // three requests; the second request and the first response are not there
    let mut conversation = Conversation::open();
    for path in ["a", "b", "c"] {
        conversation.ask(&format!("GET /{path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        conversation.answer(&format!(
            "HTTP/1.1 200 OK\r\nETag: \"{path}\"\r\nContent-Length: 1\r\n\r\n{path}"
        ));
    }
    conversation.close();
    let data = |conversation: &Conversation, start: &str| {
        conversation
            .segments
            .iter()
            .position(|segment| segment.data.starts_with(start.as_bytes()))
            .unwrap()
    };
    conversation.segments.remove(data(&conversation, "GET /b"));
    conversation
        .segments
        .remove(data(&conversation, "HTTP/1.1"));
    let (rows, counts) = import_conversation(&conversation);
    let said: Vec<_> = rows
        .iter()
        .map(|row| (row.target_text.clone().unwrap(), row.status))
        .collect();
    assert_eq!(
        said,
        [
            ("http://x/a".to_owned(), None),
            ("http://x/c".to_owned(), Some(200))
        ],
        "{counts:?}"
    );
    assert_eq!(rows[1].etag, Some(crate::invariants::OPEN.etag(b"c")));
}

#[test]
fn missing_range_in_chunked_content_leaves_the_next_response_readable() {
    let mut conversation = Conversation::open();
    conversation
        .ask(GET)
        .answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n");
    // within a chunk: nothing is lost
    conversation.lose(Side::Server, 100).answer("\r\n5\r\n");
    conversation
        .answer("01234\r\n0\r\n\r\n")
        .ask(GET)
        .answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n");
    // beyond its end: what is content and what is not cannot be told
    conversation
        .lose(Side::Server, 200)
        .answer("01234")
        .ask(GET)
        .answer(&format!("{OK}{CONTENT}"))
        .close();
    let (rows, counts) = import_conversation(&conversation);
    let said: Vec<_> = rows
        .iter()
        .map(|row| (row.status, row.received_bytes, row.aborted_by))
        .collect();
    let neither = Some(AbortedBy::Neither);
    assert_eq!(
        said,
        [
            (Some(200), Some(105), neither),
            (Some(200), None, None),
            (Some(200), Some(10), neither)
        ]
    );
    assert_eq!(
        (counts.framing_lost, counts.holes, counts.missing_bytes),
        (1, 2, 300)
    );
}

#[test]
fn reordered_or_duplicate_segment_does_not_change_the_transactions() {
    let (expected, _) = check(|_| {}, &BOTH);
    let late = |segments: &mut Vec<Segment>| {
        let at = place(segments, OK);
        segments.swap(at, at + 2);
    };
    let (rows, counts) = check(late, &BOTH);
    assert_eq!(counts.holes, 0);
    assert_eq!(rows[0].target, expected[0].target);
    let twice = |segments: &mut Vec<Segment>| {
        let at = place(segments, OK);
        segments.insert(at + 3, segments[at].clone());
        segments.insert(1, segments[0].clone());
        segments.insert(3, segments[2].clone());
    };
    let (rows, counts) = check(twice, &BOTH);
    assert_eq!(rows, expected);
    assert_eq!((counts.again, counts.connections), (1, 1));
}

#[test]
fn overlapping_segments_are_counted_once() {
    let overlap = |segments: &mut Vec<Segment>| {
        let at = place(segments, &CONTENT[5..]);
        // sent again with what was sent before, differently: the first copy counts
        segments[at].data = b"xxx56789".to_vec();
        segments[at].sequence = segments[at].sequence.wrapping_sub(3);
        let mut ahead = segments[at].clone();
        ahead.data = b"8".to_vec();
        ahead.sequence = ahead.sequence.wrapping_add(6);
        segments.insert(at, ahead);
    };
    let (_, counts) = check(overlap, &BOTH);
    assert_eq!((counts.holes, counts.again), (0, 0));
}

#[test]
fn stream_continues_when_sequence_numbers_wrap() {
    for before in [0, 1, 5, 36, 37, 60] {
        let mut conversation =
            Conversation::between(CLIENT, SERVER, u32::MAX - before, u32::MAX - before);
        for _ in 0..3 {
            conversation
                .ask(GET)
                .answer(OK)
                .answer(&CONTENT[..5])
                .answer(&CONTENT[5..]);
        }
        conversation.close();
        let (rows, counts) = import_conversation(&conversation);
        assert_eq!(rows.len(), 3, "{before} before the wrap");
        assert!(rows.iter().all(|row| row.received_bytes == Some(10)));
        assert_eq!((counts.holes, counts.foreign, counts.again), (0, 0, 0));
    }
}

#[test]
fn keep_alive_probe_is_not_content() {
    let probe = |segments: &mut Vec<Segment>| {
        let at = place(segments, &CONTENT[..5]) + 1;
        let mut probe = segments[at - 1].clone();
        // one byte before what is next, with and without a byte of rubbish (RFC 9293 §3.8.4)
        probe.sequence = probe.sequence.wrapping_add(4);
        probe.data = b"?".to_vec();
        segments.insert(at, probe.clone());
        probe.data.clear();
        segments.insert(at, probe);
    };
    let (_, counts) = check(probe, &BOTH);
    assert_eq!((counts.again, counts.holes), (1, 0));
}

#[test]
fn connection_joined_midway_has_rows_without_sequence_or_set_up_time() {
    let mut conversation = Conversation::joined(CLIENT, SERVER, 77, 88);
    conversation
        .send(Side::Server, b"the end of something")
        .send(Side::Client, b"")
        .ask(GET);
    conversation
        .answer(&format!("{OK}{CONTENT}"))
        .ask(GET)
        .answer(&format!("{OK}{CONTENT}"))
        .close();
    let (rows, counts) = import_conversation(&conversation);
    assert_eq!(rows.len(), 2);
    assert!(
        rows.iter()
            .all(|row| row.connection_sequence.is_none() && row.setup_us.is_none())
    );
    assert!(rows.iter().all(|row| row.received_bytes == Some(10)));
    assert_eq!((counts.joined, counts.connections), (1, 0));
    assert_eq!(rows[0].request_us, Some(0));
    // joined at a response: it belongs to no request
    let mut conversation = Conversation::joined(CLIENT, SERVER, 77, 88);
    conversation
        .answer(&format!("{OK}{CONTENT}"))
        .ask(GET)
        .answer(&format!("{OK}{CONTENT}"))
        .close();
    let (rows, counts) = import_conversation(&conversation);
    assert_eq!((rows.len(), counts.orphans, counts.responses), (1, 1, 1));
    assert_eq!(rows[0].received_bytes, Some(10));
}

#[test]
fn incomplete_handshake_begins_a_connection_without_set_up_time() {
    let (expected, _) = check(|_| {}, &BOTH);
    // only the SYN-ACK, and only the SYN
    let (rows, _) = check(|segments| drop(segments.remove(0)), &BOTH);
    assert_eq!(rows[0].connection_sequence, Some(1));
    assert_eq!(rows[0].setup_us, None);
    let (rows, _) = check(|segments| drop(segments.remove(1)), &BOTH);
    assert_eq!(rows[0].connection_sequence, Some(1));
    assert_eq!(
        (rows[0].setup_us, rows[0].arrival_us),
        (None, expected[0].arrival_us)
    );
}

#[test]
fn one_captured_direction_gives_unanswered_requests_or_orphan_responses() {
    let (rows, counts) = check(
        |segments| segments.retain(|segment| segment.from == CLIENT.parse().unwrap()),
        &[(None, Some(0)), (None, Some(0))],
    );
    assert_eq!(counts.unanswered, 2);
    assert!(
        rows.iter()
            .all(|row| row.aborted_by == Some(AbortedBy::Client))
    );
    let (_, counts) = check(
        |segments| segments.retain(|segment| segment.from == SERVER.parse().unwrap()),
        &[],
    );
    assert_eq!(counts.orphans, 2);
}

#[test]
fn reused_address_and_port_pair_is_a_new_connection() {
    let mut first = two();
    // the second begins before the first was closed
    first.segments.truncate(12);
    let mut again = Conversation::between(CLIENT, SERVER, 3_000_000_000, 70);
    again
        .later(2_000_000)
        .ask(GET)
        .answer(&format!("{OK}{CONTENT}"));
    // a segment of the first comes late
    let mut late = first.segments[3].clone();
    late.time_us = again.now_us;
    again.segments.push(late);
    again.now_us += 1000;
    again.close();
    let (rows, counts) = import_conversations(&[&first, &again]);
    assert_eq!(counts.connections, 2);
    let said: Vec<_> = rows
        .iter()
        .map(|row| (row.connection, row.connection_sequence, row.aborted_by))
        .collect();
    let neither = Some(AbortedBy::Neither);
    assert_eq!(
        said,
        [
            (Some(1), Some(1), neither),
            (Some(1), Some(2), None),
            (Some(2), Some(1), neither)
        ]
    );
    assert_eq!(counts.foreign, 1);
}

#[test]
fn bytes_behind_a_missing_range_are_held_up_to_a_limit() {
    // no acknowledgement, and megabytes come: the hole is given up when more is held than may be
    let mut conversation = Conversation::open();
    conversation.ask(GET).send(
        Side::Server,
        b"HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n",
    );
    conversation.lose(Side::Server, 1000);
    for _ in 0..2_999 {
        conversation.send(Side::Server, &[b'x'; 1000]);
    }
    let (rows, counts) = import_conversation(&conversation);
    assert_eq!(rows[0].received_bytes, Some(3_000_000));
    assert_eq!((rows[0].aborted_by, counts.holes), (None, 1));
    // less than that is dropped at the end: it is not known to be received
    conversation.segments.truncate(500);
    let (rows, counts) = import_conversation(&conversation);
    assert_eq!((rows[0].received_bytes, counts.holes), (Some(0), 0));
    assert_eq!(counts.unacknowledged_bytes, 494_000);
}

/// A SYN-ACK of the server with this sequence number, after the segment at `after`.
fn syn_ack(segments: &mut Vec<Segment>, after: usize, sequence: u32) {
    let mut second = segments[1].clone();
    assert!(second.is_syn && second.acknowledgement.is_some());
    second.sequence = sequence;
    second.time_us = segments[after].time_us + 500;
    segments.insert(after + 1, second);
}

#[test]
fn second_syn_ack_the_client_does_not_acknowledge_is_ignored() {
    let (whole, _) = check(|_| {}, &BOTH);
    for after in 1..8 {
        let forge = |segments: &mut Vec<Segment>| syn_ack(segments, after, 77_000_000);
        let (rows, counts) = check(forge, &BOTH);
        assert_eq!(rows, whole, "after segment {after}");
        assert_eq!(counts.connections, 1);
    }
}

#[test]
fn second_syn_ack_the_client_acknowledges_replaces_the_first() {
    let forge = |segments: &mut Vec<Segment>| {
        // the first one is forged: what follows is of the server that answers second
        let mut forged = segments[1].clone();
        forged.sequence = 77_000_000;
        forged.time_us -= 500;
        segments.insert(1, forged);
    };
    let (rows, counts) = check(forge, &BOTH);
    assert_eq!(counts.connections, 1);
    assert_eq!(rows[0].setup_us, Some(1000), "by the SYN-ACK that counts");
}
