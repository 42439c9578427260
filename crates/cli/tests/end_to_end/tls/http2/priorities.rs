//! Responses in the order of their urgency (RFC 9218).

use super::Clear;
use super::frames::{DATA, END_STREAM, Frame, Frames, INITIAL_WINDOW_SIZE, WINDOW_UPDATE, get};
use crate::support::content;

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
