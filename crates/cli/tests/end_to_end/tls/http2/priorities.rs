//! Responses in the order of their urgency (RFC 9218), and the field in one cache for all.

use super::Clear;
use super::frames::{
    DATA, END_STREAM, Frame, Frames, HEADERS, INITIAL_WINDOW_SIZE, RST_STREAM, WINDOW_UPDATE, get,
};
use crate::support::{Metrics, content};

/// Bytes of each response: much more than the kernel holds for a client that does not read, and
/// little enough that both are stored.
const BYTES: usize = 6 << 20;

/// What may be ahead of a response in the kernel's buffers of both sides, and in the proxy.
const AHEAD_BYTES: usize = BYTES / 2;

/// Two large responses on one connection, the second requested once the first has begun, each with
/// the value of its `priority`; how much each had got when the first of them was whole.
fn both(first: &str, second: &str) -> (usize, usize) {
    let clear = Clear::start();
    let contents = [content(5, BYTES), content(6, BYTES)];
    // stored, so that neither waits for the next hop
    for (path, content) in ["stored/one", "stored/two"].iter().zip(&contents) {
        clear.nginx.file(path, content);
        let url = clear.weir.url(&format!("/{path}"));
        let fetch = || Clear::curl().args(["-H", "Host: a.test"]).fetch(&url);
        fetch().reply().expect(200);
        assert!(fetch().reply().is_hit());
    }
    // windows that stop neither
    let windows = [(INITIAL_WINDOW_SIZE, (1 << 31) - 1)];
    let mut client = Frames::with_settings(clear.weir.address(), &windows).with_small_buffer();
    client.send(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes());
    let asked = |path, priority| [&get(path)[..], &[("priority", priority)]].concat();
    client.request(1, &asked("/stored/one", first));
    let begun = client.until(DATA);
    client.request(3, &asked("/stored/two", second));
    // nothing is read before it is taken: a busy machine could bring all of the first meanwhile
    let is_taken = |now: &Metrics| now.count("weir_requests_in_flight") == 2;
    clear.weir.until("both are under way", is_taken);
    let mut got = [begun.payload, Vec::new()];
    let mut when_first_ended = None;
    let mut open = 2;
    while open > 0 {
        let Frame {
            kind,
            flags,
            stream,
            payload,
        } = client.next().expect("a frame");
        if kind != DATA {
            continue;
        }
        got[usize::from(stream == 3)].extend(payload);
        if flags & END_STREAM != 0 {
            open -= 1;
            when_first_ended.get_or_insert((got[0].len(), got[1].len()));
        }
    }
    assert!(got == contents, "every byte is right");
    when_first_ended.expect("one has ended")
}

#[test]
fn more_urgent_response_overtakes_the_one_that_began_before_it() {
    let (less, more) = both("u=6", "u=1");
    assert_eq!(more, BYTES);
    assert!(less < AHEAD_BYTES, "{less}");
}

#[test]
fn less_urgent_response_waits_and_comes_whole() {
    let (more, less) = both("u=0, i", "u=7");
    assert_eq!(more, BYTES);
    assert!(less < BYTES / 2, "{less}");
}

#[test]
fn equally_urgent_responses_share_the_connection() {
    let (first, second) = both("u=4", "u=4, i");
    let ended = first.max(second);
    assert_eq!(ended, BYTES);
    assert!(first.min(second) > BYTES / 4, "{first} {second}");
}

/// The window of a connection at first, bytes (RFC 9113 §6.9.2).
const FIRST_WINDOW: usize = 65_535;

/// A client whose connection has used up its window for a response of which it found `less`
/// urgent, and has then asked for the same with these priorities, on streams 3, 5 and so on. The
/// windows of its streams are so wide.
fn behind_a_used_window(clear: &Clear, stream_window: u32, less: &str, more: &[&str]) -> Frames {
    let url = clear.weir.url("/stored/large");
    clear.nginx.file("stored/large", &content(5, BYTES));
    let fetch = || Clear::curl().args(["-H", "Host: a.test"]).fetch(&url);
    fetch().reply().expect(200);
    let windows = [(INITIAL_WINDOW_SIZE, stream_window)];
    let mut client = Frames::with_settings(clear.weir.address(), &windows);
    let asked = |priority| [&get("/stored/large")[..], &[("priority", priority)]].concat();
    client.request(1, &asked(less));
    assert_eq!(taken(&mut client, FIRST_WINDOW), [(1, FIRST_WINDOW)]);
    for (stream, priority) in (3..).step_by(2).zip(more) {
        client.request(stream, &asked(priority));
        // a head is sent whatever the window is, and behind it its content waits
        assert_eq!(client.until(HEADERS).stream, stream);
    }
    let are_taken = |now: &Metrics| now.count("weir_requests_in_flight") == more.len() as u64 + 1;
    clear.weir.until("all are under way", are_taken);
    client
}

/// Opens the window of the connection.
fn open(client: &mut Frames, bytes: usize) {
    let bytes = u32::try_from(bytes).expect("a window");
    client.send(WINDOW_UPDATE, 0, 0, &bytes.to_be_bytes());
}

/// The streams of the next `bytes` of content in the order in which they come, with the bytes of
/// each turn.
fn taken(client: &mut Frames, bytes: usize) -> Vec<(u32, usize)> {
    let mut turns: Vec<(u32, usize)> = Vec::new();
    let mut left = bytes;
    while left > 0 {
        let frame = client.until(DATA);
        assert_eq!(frame.kind, DATA, "the connection is open");
        let count = frame.payload.len();
        left = left
            .checked_sub(count)
            .expect("no more than the windows permit");
        match turns.last_mut() {
            Some((stream, bytes)) if *stream == frame.stream => *bytes += count,
            _ => turns.push((frame.stream, count)),
        }
    }
    turns
}

#[test]
fn window_of_a_connection_is_for_the_more_urgent_response() {
    // of one step at most some bytes are left that are too few for a frame
    for step in [200_000, 66_000, 33_000] {
        let clear = Clear::start();
        let less = ["u=1", "u=6", "u=6", "u=7"];
        let client = &mut behind_a_used_window(&clear, (1 << 31) - 1, "u=6", &less);
        for _ in 0..1_000_000 / step {
            open(client, step);
            assert_eq!(taken(client, step), [(3, step)]);
        }
        client.send(RST_STREAM, 0, 3, &8_u32.to_be_bytes());
        open(client, 100_000);
        let others = taken(client, 100_000);
        assert!(others.iter().all(|(stream, _)| [1, 5, 7].contains(stream)));
    }
}

#[test]
fn window_of_a_connection_is_shared_by_equally_urgent_responses() {
    for (count, step) in [(2, 16_384), (2, 20_000), (3, 100_000), (4, 16_384)] {
        let clear = Clear::start();
        let equal = vec!["u=2"; count];
        let client = &mut behind_a_used_window(&clear, (1 << 31) - 1, "u=5", &equal);
        let mut bytes = [0; 16];
        let rounds = 3_000_000 / step;
        for _ in 0..rounds {
            open(client, step);
            for (stream, count) in taken(client, step) {
                bytes[stream as usize] += count;
            }
        }
        assert_eq!(bytes[1], 0);
        let fair = rounds * step / count;
        for stream in 1..=count {
            assert!(bytes[2 * stream + 1] > fair / 2, "{step}: {bytes:?}");
        }
    }
}

#[test]
fn what_is_too_little_for_a_frame_is_sent_though_others_are_more_urgent() {
    let clear = Clear::start();
    let client = &mut behind_a_used_window(&clear, (1 << 31) - 1, "u=6", &[]);
    let urgent = [&get("/stored/large")[..], &[("priority", "u=1")]].concat();
    for stream in [3, 5, 7, 9, 11] {
        open(client, 100);
        // the first response may have it, and wait for more for some milliseconds
        client.request(stream, &urgent);
        let first = taken(client, 100);
        assert!([1, stream].contains(&first[0].0) && first.len() == 1);
        client.send(RST_STREAM, 0, stream, &8_u32.to_be_bytes());
    }
}

#[test]
fn urgent_response_whose_own_window_is_closed_leaves_that_of_the_connection_to_others() {
    let clear = Clear::start();
    let client = &mut behind_a_used_window(&clear, 100_000, "u=6", &["u=1"]);
    open(client, 1_000_000);
    // all that both have of their own
    let rest = 100_000 - FIRST_WINDOW;
    assert_eq!(taken(client, 100_000 + rest), [(3, 100_000), (1, rest)]);
    client.send(WINDOW_UPDATE, 0, 1, &50_000_u32.to_be_bytes());
    assert_eq!(taken(client, 50_000), [(1, 50_000)]);
    client.send(WINDOW_UPDATE, 0, 3, &50_000_u32.to_be_bytes());
    assert_eq!(taken(client, 50_000), [(3, 50_000)]);
}

#[test]
fn reset_of_an_urgent_response_leaves_the_window_of_the_connection_to_others() {
    let clear = Clear::start();
    let client = &mut behind_a_used_window(&clear, (1 << 31) - 1, "u=6", &["u=1"]);
    open(client, 100_000);
    assert_eq!(taken(client, 100_000), [(3, 100_000)]);
    client.send(RST_STREAM, 0, 3, &8_u32.to_be_bytes());
    open(client, 100_000);
    assert_eq!(taken(client, 100_000), [(1, 100_000)]);
}

/// The content of a response to a client that says this priority, if it says one.
fn fetch(clear: &Clear, path: &str, priority: Option<&str>) -> String {
    let curl = Clear::curl().args(["-H", "Host: a.test"]);
    let curl = match priority {
        Some(priority) => curl.field(&format!("Priority: {priority}")),
        None => curl,
    };
    let reply = curl.fetch(&clear.weir.url(path)).reply();
    reply.expect(200).text()
}

const BOTH_KINDS_OF_NEXT_HOPS: [fn() -> Clear; 2] = [Clear::start, Clear::on_both_sides];

#[test]
fn priority_is_in_no_key() {
    for start in BOTH_KINDS_OF_NEXT_HOPS {
        let clear = start();
        let stored = fetch(&clear, "/priority", Some("u=1"));
        assert!(stored.starts_with("u=1|"), "{stored}");
        for priority in [
            None,
            Some("u=7, i"),
            Some("u=1"),
            Some("not a structured field;"),
        ] {
            assert_eq!(fetch(&clear, "/priority", priority), stored, "{priority:?}");
        }
        assert_eq!(clear.weir.metrics().count("weir_store_entries"), 1);
    }
}

#[test]
fn response_that_varies_by_priority_is_for_that_priority() {
    for start in BOTH_KINDS_OF_NEXT_HOPS {
        let clear = start();
        let priorities = [Some("u=1"), Some("u=7"), None];
        let each = priorities.map(|priority| fetch(&clear, "/varies", priority));
        for (content, begins) in each.iter().zip(["u=1|", "u=7|", "|"]) {
            assert!(content.starts_with(begins), "{content}");
        }
        let again = priorities.map(|priority| fetch(&clear, "/varies", priority));
        assert_eq!(again, each);
    }
}

#[test]
fn priority_of_a_client_is_sent_on_in_its_own_request_alone() {
    for start in BOTH_KINDS_OF_NEXT_HOPS {
        let clear = start();
        for (priority, expected) in [
            (Some("u=1"), "u=1|"),
            (None, "|"),
            (Some("u=7, i"), "u=7, i|"),
            (None, "|"),
        ] {
            assert_eq!(fetch(&clear, "/priority-told", priority), expected);
        }
    }
}
