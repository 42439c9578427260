//! A client that leaves before there is a response head: the request is given up, unless another
//! else waits for it.

use crate::support::{OriginConnection, RawClient, Representation, Running, ScriptedOrigin, span};
use weir_measure::Metric;
use weir_policy::fetch::AbortKind;

fn proxy(origin: &ScriptedOrigin) -> Running {
    Running::gateway_with(origin.address(), |config| {
        config.fetch.half_closed = span("1ms");
    })
}

/// A client that has asked for `what`, and the connection on which the next hop is asked.
fn asked(
    proxy: &Running,
    origin: &ScriptedOrigin,
    what: &Representation,
    fields: &str,
) -> (RawClient, OriginConnection) {
    let mut client = proxy.client();
    client.send(what.get(fields));
    let mut hop = origin.accept();
    hop.read_head();
    (client, hop)
}

fn leave(client: RawClient, by_reset: bool) {
    if by_reset {
        client.into_peer().reset();
    } else {
        drop(client);
    }
}

#[test]
fn request_is_aborted_when_its_only_client_disconnects() {
    let origin = ScriptedOrigin::new();
    let proxy = proxy(&origin);
    let kinds = ["", "Range: bytes=5-\r\n", "Authorization: Basic eDp5\r\n"];
    let mut left = 0;
    for fields in kinds {
        for by_reset in [true, false] {
            let what = Representation::new("/", 1000);
            let (client, mut hop) = asked(&proxy, &origin, &what, fields);
            leave(client, by_reset);
            hop.expect_end();
            left += 1;
            proxy.wait_for(Metric::ClientAborts, left);
        }
    }
    proxy.wait_for(Metric::NextHopsOpen, 0);
    proxy.wait_for(Metric::RequestsInFlight, 0);
}

#[test]
fn validation_is_aborted_when_its_only_client_disconnects() {
    let origin = ScriptedOrigin::new();
    let proxy = proxy(&origin);
    let what = Representation::new("/", 1000);
    let mut client = proxy.client();
    client.send(what.get(""));
    origin.answer(what.whole());
    client.read_response();
    proxy.clock.advance_ms(4_000_000);
    let (client, mut hop) = asked(&proxy, &origin, &what, "");
    leave(client, true);
    hop.expect_end();
}

#[test]
fn finish_policy_completes_a_request_whose_client_disconnected() {
    let origin = ScriptedOrigin::new();
    let proxy = proxy(&origin);
    proxy.reload(|config| config.fetch.abort = AbortKind::Finish);
    let what = Representation::new("/", 1000);
    let (client, mut hop) = asked(&proxy, &origin, &what, "");
    leave(client, true);
    hop.send(what.whole());
    proxy.wait_for(Metric::StoreEntries, 1);
    assert_eq!(proxy.client().ask(what.get("")).verdict(), "hit");
}

#[test]
fn request_continues_for_a_follower_after_its_leader_disconnects() {
    let origin = ScriptedOrigin::new();
    let proxy = proxy(&origin);
    for by_reset in [true, false] {
        let what = Representation::new(&format!("/{by_reset}"), 200_000);
        let (leader, mut hop) = asked(&proxy, &origin, &what, "");
        let mut follower = proxy.client();
        follower.send(what.get(""));
        proxy.wait_for(Metric::RequestsInFlight, 2);
        leave(leader, by_reset);
        proxy.wait_for(Metric::RequestsInFlight, 2);
        let response = hop.send_while(&what.whole(), || follower.read_response());
        assert_eq!(response.verdict(), "fwd=uri-miss;collapsed");
        what.check_whole(&response);
        proxy.wait_for(Metric::RequestsInFlight, 0);
    }
}

#[test]
fn request_is_aborted_when_leader_and_all_followers_disconnect() {
    let origin = ScriptedOrigin::new();
    let proxy = proxy(&origin);
    for by_reset in [true, false] {
        let what = Representation::new("/", 1000);
        let (leader, mut hop) = asked(&proxy, &origin, &what, "");
        let followers = [2, 3].map(|waiting| {
            let mut follower = proxy.client();
            follower.send(what.get(""));
            proxy.wait_for(Metric::RequestsInFlight, waiting);
            follower
        });
        leave(leader, by_reset);
        for (follower, waiting) in followers.into_iter().zip([2, 0]) {
            leave(follower, by_reset);
            proxy.wait_for(Metric::RequestsInFlight, waiting);
        }
        hop.expect_end();
    }
    proxy.wait_for(Metric::ClientAborts, 6);
}

#[test]
fn missing_range_fetch_is_aborted_when_its_reader_disconnects() {
    let origin = ScriptedOrigin::new();
    let proxy = proxy(&origin);
    let what = Representation::new("/", 2_000_000);
    // two parts, with a gap between and behind them
    for (from, to) in [(0, 1000), (900_000, 901_000)] {
        let mut client = proxy.client();
        client.send(what.get_range(&format!("{from}-{}", to - 1)));
        let (hop, _) = origin.answer(what.part(from, to));
        what.check_part(&client.read_response(), from, to);
        drop(hop);
    }
    proxy.wait_for(Metric::PartsStored, 2);
    let mut client = proxy.client();
    client.send(what.get(""));
    let mut first = origin.accept();
    let asked = first.read_head();
    assert_eq!(asked.field("range"), Some("bytes=1000-899999"));
    first.send_while(&what.part(1000, 900_000), || {
        client.read_head();
        client.read_exactly(890_000);
    });
    // on its way to the second gap
    let mut second = origin.accept();
    let asked = second.read_head();
    assert_eq!(asked.field("range"), Some("bytes=901000-1999999"));
    client.into_peer().reset();
    second.expect_end();
    proxy.wait_for(Metric::FetchesUnderWay, 0);
    // what came is kept
    let inside = proxy.client().ask(what.get_range("0-900999"));
    assert_eq!(inside.verdict(), "hit");
    what.check_part(&inside, 0, 901_000);
}
