//! Fetches that go on without a reader: at the pace of their budget, until a reader comes; and
//! clients that are there though they look gone.

use crate::support::{OriginConnection, Representation, Running, ScriptedOrigin, span};
use std::thread::JoinHandle;
use weir_measure::{Aborted, Metric};
use weir_policy::fetch::AbortKind;
use weir_proxy::config::ByteSize;

const RATE: u64 = 128 * 1024;

fn proxy(origin: &ScriptedOrigin) -> Running {
    Running::gateway_with(origin.address(), |config| {
        config.fetch.abort = AbortKind::Finish;
        config.fetch.half_closed = span("1ms");
        config.fetch.background_rate = ByteSize::from_bytes(RATE);
    })
}

/// A fetch of `what` whose only reader has left before the first byte of content.
fn orphan(proxy: &Running, origin: &ScriptedOrigin, what: &Representation) -> OriginConnection {
    let mut client = proxy.client();
    client.send(what.get(""));
    let (hop, _) = origin.answer(what.head());
    client.read_head();
    client.into_peer().reset();
    proxy.wait_for(Metric::FetchesAbandoned(Aborted::GoOnAlways), 1);
    hop
}

/// Sends all of the content, as fast as it is taken.
fn pour(mut hop: OriginConnection, what: &Representation) -> JoinHandle<OriginConnection> {
    let content = what.bytes(0, what.length);
    std::thread::spawn(move || {
        hop.send(content);
        hop
    })
}

#[test]
fn background_fetch_keeps_to_its_rate_budget() {
    let origin = ScriptedOrigin::new();
    let proxy = proxy(&origin);
    let what = Representation::new("/", 5 * RATE + 1);
    let hop = orphan(&proxy, &origin, &what);
    let poured = pour(hop, &what);
    for seconds in 1..=4 {
        proxy.wait_for(Metric::BodyBytesFromNextHops, seconds * RATE);
        proxy.clock.advance_ms(1000);
    }
    proxy.wait_for(Metric::BodyBytesFromNextHops, 5 * RATE);
    assert_eq!(proxy.count(Metric::FetchesUnderWay), 1);
    proxy.clock.advance_ms(1000);
    proxy.wait_for(Metric::FetchesUnderWay, 0);
    let response = proxy.client().ask(what.get(""));
    assert_eq!(response.verdict(), "hit");
    what.check_whole(&response);
    poured.join().expect("no panic");
}

#[test]
fn background_budget_is_spent_only_on_received_bytes() {
    let origin = ScriptedOrigin::new();
    let proxy = proxy(&origin);
    let what = Representation::new("/", RATE);
    let mut hop = orphan(&proxy, &origin, &what);
    // each of these is a turn of its own, and the clock stands still
    let step = RATE / 16;
    for turn in 0..16 {
        hop.send(what.bytes(turn * step, (turn + 1) * step));
        proxy.wait_for(Metric::BodyBytesFromNextHops, (turn + 1) * step);
    }
    proxy.wait_for(Metric::FetchesUnderWay, 0);
    what.check_whole(&proxy.client().ask(what.get("")));
}

#[test]
fn new_reader_frees_a_background_fetch_from_its_budget() {
    let origin = ScriptedOrigin::new();
    let proxy = proxy(&origin);
    let what = Representation::new("/", 20 * RATE);
    let hop = orphan(&proxy, &origin, &what);
    let poured = pour(hop, &what);
    proxy.wait_for(Metric::BodyBytesFromNextHops, RATE);
    // it has a reader again
    let response = proxy.client().ask(what.get(""));
    assert_eq!(response.verdict(), "hit;detail=delayed");
    what.check_whole(&response);
    origin.expect_untouched();
    drop(poured.join().expect("no panic"));
}

#[test]
fn abort_policy_is_applied_at_each_disconnect_of_the_last_reader() {
    let origin = ScriptedOrigin::new();
    let proxy = proxy(&origin);
    let what = Representation::new("/", 20 * RATE);
    let mut hop = orphan(&proxy, &origin, &what);
    hop.send(what.bytes(0, 1000));
    for times in 2..5 {
        let mut client = proxy.client();
        client.send(what.get(""));
        client.read_head();
        what.check(0, &client.read_exactly(1000));
        client.into_peer().reset();
        // judged anew each time
        proxy.wait_for(Metric::FetchesAbandoned(Aborted::GoOnAlways), times);
    }
    proxy.reload(|config| config.fetch.abort = AbortKind::Stop);
    let mut client = proxy.client();
    client.send(what.get(""));
    client.read_head();
    // the rules are those it began with
    client.into_peer().reset();
    proxy.wait_for(Metric::FetchesAbandoned(Aborted::GoOnAlways), 5);
}

#[test]
fn background_fetch_truncated_by_the_next_hop_keeps_received_content() {
    let origin = ScriptedOrigin::new();
    let proxy = proxy(&origin);
    let what = Representation::new("/", RATE);
    let mut hop = orphan(&proxy, &origin, &what);
    hop.send(what.bytes(0, 1000));
    proxy.wait_for(Metric::BodyBytesFromNextHops, 1000);
    drop(hop);
    proxy.wait_for(Metric::PartsStored, 1);
    let inside = proxy.client().ask(what.get_range("10-999"));
    assert_eq!(inside.verdict(), "hit");
    what.check_part(&inside, 10, 1000);
    origin.expect_untouched();
}

#[test]
fn half_closed_client_that_keeps_reading_gets_its_response() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway_with(origin.address(), |config| {
        config.fetch.abort = AbortKind::Stop;
        config.fetch.half_closed = span("1h");
    });
    for (tag, framing) in [(true, true), (false, true), (true, false)] {
        let path = format!("/{tag}/{framing}");
        let mut what = Representation::new(&path, 2_000_000);
        if !tag {
            what = what.tagged(None);
        }
        let mut client = proxy.client();
        client.send(what.get(""));
        client.finish();
        let mut hop = origin.accept();
        hop.read_head();
        // what is silent is not the client
        let head = if framing {
            what.head()
        } else {
            what.chunked_head()
        };
        hop.send(&head);
        let mut message = Vec::new();
        if framing {
            message.extend(what.bytes(0, what.length));
        } else {
            message.extend(what.chunk(0, 1000));
            message.extend(what.chunk(1000, what.length));
            message.extend(b"0\r\n\r\n");
        }
        let (first, rest) = message.split_at(50_000);
        hop.send(first);
        proxy.wait_for(Metric::FetchesUnderWay, 1);
        let response = hop.send_while(rest, || client.read_response());
        assert_eq!(response.status(), 200);
        what.check(0, &response.body);
        assert_eq!(response.body.len() as u64, what.length);
        client.expect_end();
        proxy.wait_for(Metric::FetchesUnderWay, 0);
    }
    assert_eq!(proxy.count(Metric::ClientAborts), 0);
}

#[test]
fn fetch_for_a_half_closed_client_is_aborted_at_its_time_limit() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway_with(origin.address(), |config| {
        config.fetch.abort = AbortKind::Stop;
        config.fetch.half_closed = span("50ms");
    });
    let what = Representation::new("/", 1000);
    let mut client = proxy.client();
    client.send(what.get(""));
    let (mut hop, _) = origin.answer(what.head());
    client.read_head();
    client.finish();
    hop.expect_end();
    // it has read to the end of what there was
    client.expect_end();
    proxy.wait_for(Metric::ClientAborts, 1);
}
