//! Any way of sending the same conversation, and any bytes at all.

use proptest::prelude::*;
use weir_trace::Row;

use crate::conversation::{Conversation, Segment, Side};
use crate::files::{Clock, ETHERNET, Writer, packets};
use crate::{import, invariants};

/// One turn: a side and its bytes.
type Turn = (Side, Vec<u8>);

/// A conversation with everything in it that frames content.
fn turns() -> Vec<Turn> {
    let client = |text: &str| (Side::Client, text.as_bytes().to_vec());
    let server = |text: &str| (Side::Server, text.as_bytes().to_vec());
    let long = format!(
        "HTTP/1.1 200 OK\r\nVary: Accept\r\nContent-Length: 3000\r\n\r\n{}",
        "y".repeat(3000)
    );
    vec![
        client("GET /1 HTTP/1.1\r\nHost: a\r\nAccept: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n"),
        server(&long),
        server(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n",
        ),
        client("POST /3 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"),
        server("HTTP/1.1 100 Continue\r\n\r\n"),
        client("hello"),
        server("HTTP/1.1 303 See Other\r\nSet-Cookie: a\r\nContent-Length: 0\r\n\r\n"),
        client("HEAD /4 HTTP/1.1\r\nHost: a\r\n\r\n"),
        server("HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n"),
        client("GET /5 HTTP/1.1\nHost: a\n\n"),
        server("HTTP/1.0 200 OK\r\n\r\nuntil the end"),
    ]
}

/// The conversation in segments of these lengths, over and over, and then closed.
fn sent(lengths: &[usize]) -> Conversation {
    let mut conversation = Conversation::open();
    let mut lengths = lengths.iter().cycle();
    for (side, text) in turns() {
        let mut rest = &text[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at((*lengths.next().unwrap()).min(rest.len()));
            conversation.send(side, now);
            rest = later;
        }
        conversation.send(side.other(), b"");
    }
    conversation.close();
    conversation
}

/// The same segments, some twice and each up to `window` places from its own. The handshake stays
/// where it is: no side sends before it.
fn stirred(conversation: &Conversation, window: usize, choices: &[u8]) -> Vec<Segment> {
    let mut choices = choices.iter().copied().cycle().map(usize::from);
    let mut choose = |below: usize| choices.next().unwrap() % below;
    let (handshake, rest) = conversation.segments.split_at(3);
    let mut placed: Vec<(usize, Segment)> = Vec::new();
    for (at, segment) in rest.iter().enumerate() {
        for _ in 0..=choose(7) / 6 {
            placed.push((2 * at + 2 * choose(window + 1), segment.clone()));
        }
    }
    placed.sort_by_key(|(at, _)| *at);
    let stirred = placed.into_iter().map(|(_, segment)| segment);
    let mut all: Vec<Segment> = handshake.iter().cloned().chain(stirred).collect();
    // a monitor's clock goes on whatever comes
    for (at, segment) in all.iter_mut().enumerate() {
        segment.time_us = conversation.segments[0].time_us + 1000 * i64::try_from(at).unwrap();
    }
    all
}

/// What of the rows does not depend on when each segment came.
fn timeless(file: &[u8]) -> Vec<Row> {
    let (mut rows, counts) = import(file);
    assert_eq!(
        (counts.holes, counts.foreign, counts.orphans),
        (0, 0, 0),
        "{counts:?}"
    );
    for row in &mut rows {
        row.arrival_us = 0;
        row.request_us = None;
        row.response_us = None;
        row.first_byte_us = row.first_byte_us.map(|_| 0);
        row.last_byte_us = row.last_byte_us.map(|_| 0);
    }
    rows
}

fn file(segments: &[Segment]) -> Vec<u8> {
    Writer { is_big: false }.classic(1, false, &packets(segments, ETHERNET))
}

#[test]
fn conversation_gives_a_row_for_each_transaction() {
    let rows = timeless(&file(&sent(&[1460]).segments));
    let said: Vec<_> = rows
        .iter()
        .map(|row| (row.status, row.received_bytes, row.request_content_bytes))
        .collect();
    let expected = [
        (Some(200), Some(3000), Some(0)),
        (Some(200), Some(8), Some(0)),
        (Some(303), Some(0), Some(5)),
        (Some(200), Some(0), Some(0)),
        (Some(200), Some(13), Some(0)),
    ];
    assert_eq!(said, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn segmentation_reordering_and_duplication_do_not_change_the_rows(
        lengths in prop::collection::vec(1_usize..700, 1..8),
        window in 0_usize..20,
        choices in prop::collection::vec(any::<u8>(), 1..60),
    ) {
        let expected = timeless(&file(&sent(&[1460]).segments));
        let stirred = stirred(&sent(&lengths), window, &choices);
        prop_assert_eq!(timeless(&file(&stirred)), expected);
    }

    #[test]
    fn damaged_capture_file_is_read_with_all_invariants_holding(
        is_blocks in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        end in any::<prop::sample::Index>(),
    ) {
        let packets = packets(&sent(&[300]).segments, ETHERNET);
        let writer = Writer { is_big: false };
        let mut file = if is_blocks {
            writer.blocks(1, Clock::USUAL, &packets)
        } else {
            writer.classic(1, false, &packets)
        };
        for (place, byte) in changes {
            let at = place.index(file.len());
            file[at] = byte;
        }
        file.truncate(end.index(file.len() * 4).max(24).min(file.len()));
        invariants::capture(&file);
    }

    #[test]
    fn arbitrary_packets_are_read_with_all_invariants_holding(
        link in prop::sample::select(vec![1_u16, 9, 51, 101, 104, 113, 204, 276, 0, 7]),
        contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 0..20),
    ) {
        let packets: Vec<_> = contents
            .into_iter()
            .map(|bytes| crate::files::Packet { time_us: 0, wire_bytes: bytes.len(), bytes })
            .collect();
        invariants::capture(&Writer { is_big: true }.classic(link, true, &packets));
        let first = packets.first().map_or(&[][..], |packet| &packet.bytes);
        invariants::capture(first);
    }

    #[test]
    fn arbitrary_streams_are_read_with_all_invariants_holding(
        said in prop::collection::vec((any::<bool>(), prop::sample::select(PIECES.to_vec()), 0_u32..40, 0_u8..30), 0..60),
    ) {
        let mut conversation = Conversation::open();
        for (is_client, piece, lost, flags) in said {
            let side = if is_client { Side::Client } else { Side::Server };
            if lost > 30 {
                conversation.lose(side, lost);
            }
            conversation.push(side, piece.as_bytes(), |segment| {
                segment.is_fin = flags == 1;
                segment.is_rst = flags == 2;
                segment.is_syn = flags == 3;
            });
        }
        invariants::capture(&file(&conversation.segments));
    }
}

/// What streams are made of: heads, parts of heads, and content that contradicts them.
const PIECES: [&str; 18] = [
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\n",
    "HEAD / HTTP/1.0\r\n\r\n",
    "GET /9\r\n",
    "CONNECT a:1 HTTP/1.1\r\n\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 101 Yes\r\n\r\n",
    "HTTP/1.0 200 OK\n\n",
    "5\r\n01234\r\n",
    "0\r\n\r\n",
    "0123456789",
    "\r\n",
    "",
];
