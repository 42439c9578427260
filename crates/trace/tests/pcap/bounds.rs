//! What is given up when there is more than may be held.

use weir_trace::AbortedBy;
use weir_trace::import::pcap::limits::{CONNECTIONS_MAX, ROWS_HELD_MAX};

use crate::conversation::{Conversation, START_US, Side};
use crate::{CONTENT, GET, OK, import_conversations};

#[test]
fn idle_connections_are_given_up_first_at_the_connection_limit() {
    // the oldest has a request, the second is younger and busy; then as many come as may be
    // followed, and one more
    let mut old = Conversation::open();
    old.ask(GET);
    let mut busy = Conversation::between("192.0.2.8:50000", "198.51.100.1:80", 5, 6);
    busy.later(1_000_000).ask(GET);
    let mut scan = Conversation::joined("192.0.2.9:1", "198.51.100.1:80", 7, 8);
    scan.wait(2_000_000);
    for number in 0..=CONNECTIONS_MAX - 2 {
        scan.push(Side::Client, b"", |segment| {
            segment.is_syn = true;
            segment.acknowledgement = None;
            let [_, high, middle, low] = u32::try_from(number).unwrap().to_be_bytes();
            segment.from = ([10, high, middle, low], 1024).into();
        });
        if number == CONNECTIONS_MAX / 2 {
            busy.now_us = scan.now_us;
            busy.send(Side::Server, OK.as_bytes());
        }
    }
    busy.now_us = scan.now_us;
    busy.send(Side::Server, CONTENT.as_bytes()).close();
    let (rows, counts) = import_conversations(&[&old, &busy, &scan]);
    assert_eq!(counts.given_up, CONNECTIONS_MAX as u64 / 16);
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].arrival_us, rows[0].aborted_by), (START_US, None));
    assert_eq!(rows[1].aborted_by, Some(AbortedBy::Neither));
}

#[test]
fn rows_held_for_a_long_download_are_limited_and_late_rows_counted() {
    let mut long = Conversation::open();
    long.ask(GET).answer(OK);
    let mut short = Conversation::between("192.0.2.8:50000", "198.51.100.1:80", 5, 6);
    short.later(1_000_000);
    for _ in 0..ROWS_HELD_MAX + 5 {
        short.send(Side::Client, GET.as_bytes());
        short.send(Side::Server, format!("{OK}{CONTENT}").as_bytes());
    }
    long.now_us = short.now_us;
    long.answer(CONTENT);
    let (rows, counts) = import_conversations(&[&long, &short]);
    assert_eq!((rows.len(), counts.late), (ROWS_HELD_MAX + 6, 1));
    // those that had to leave stand before it
    assert_eq!(rows[5].arrival_us, START_US);
    // with room for it, it is the first
    let cut = short.segments.len() - 10;
    short.segments.truncate(cut);
    let (rows, counts) = import_conversations(&[&long, &short]);
    assert_eq!((rows[0].arrival_us, counts.late), (START_US, 0));
}
