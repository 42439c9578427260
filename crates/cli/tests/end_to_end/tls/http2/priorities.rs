//! Responses in the order of their urgency (RFC 9218), and the field in one cache for all.

use super::Clear;
use super::frames::{DATA, END_STREAM, Frame, Frames, INITIAL_WINDOW_SIZE, WINDOW_UPDATE, get};
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
