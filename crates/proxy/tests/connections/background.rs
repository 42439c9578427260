//! Requests that no client waits for, a validation in the background and a fetch of what is
//! missing, reach the next hop as one with a client does: another one of the route if the first
//! cannot be had, and once more after the idle race.

use crate::support::{OriginConnection, Representation, Running, ScriptedOrigin};
use weir_measure::Metric;

const NOT_MODIFIED: &str = "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n";
const STALE: &str = "Cache-Control: max-age=1, stale-while-revalidate=600\r\n";
const CLOSE: &str = "Connection: close\r\n";

/// A gateway with a route to both; they are asked in turns, beginning with the first.
fn before_two(first: &ScriptedOrigin, second: &ScriptedOrigin) -> Running {
    let second = second.address();
    Running::gateway_with(first.address(), |config| {
        let hop = format!("http://{second}").parse().expect("a next hop");
        config.routes[0].next_hops.push(hop);
    })
}

/// `what` is stored, and stale from now on.
fn store_stale(
    proxy: &Running,
    origin: &ScriptedOrigin,
    what: &Representation,
) -> OriginConnection {
    let mut client = proxy.client();
    client.send(what.get(""));
    let (hop, _) = origin.answer(what.whole());
    what.check_whole(&client.read_response());
    proxy.wait_for(Metric::RequestsInFlight, 0);
    proxy.clock.advance_ms(2000);
    hop
}

/// A hit that is stale, and has it validated.
fn hit(proxy: &Running, what: &Representation) {
    let response = proxy.client().ask(what.get(""));
    assert_eq!(response.verdict(), "hit;detail=stale-while-revalidate");
    what.check_whole(&response);
}

#[test]
fn background_validation_falls_back_to_another_next_hop_of_the_route() {
    let (first, second) = (ScriptedOrigin::new(), ScriptedOrigin::new());
    let proxy = before_two(&first, &second);
    let what = Representation::new("/a", 1000).with_fields(&format!("{STALE}{CLOSE}"));
    drop(store_stale(&proxy, &first, &what));
    // it refuses from now on, and its turn is next
    drop(second);
    hit(&proxy, &what);
    let (_hop, asked) = first.answer(NOT_MODIFIED);
    assert_eq!(asked.field("if-none-match"), what.tag.as_deref());
    proxy.wait_for(Metric::Freshened, 1);
    assert_eq!(proxy.count(Metric::NextHopErrors), 0);
}

#[test]
fn missing_range_is_fetched_from_another_next_hop_of_the_route() {
    let (first, second) = (ScriptedOrigin::new(), ScriptedOrigin::new());
    let proxy = before_two(&first, &second);
    let what = Representation::new("/a", 600_000);
    let mut client = proxy.client();
    client.send(what.get_range("200000-299999"));
    first.answer(what.part(200_000, 300_000));
    what.check_part(&client.read_response(), 200_000, 300_000);
    proxy.wait_for(Metric::RequestsInFlight, 0);
    proxy.wait_for(Metric::FetchesUnderWay, 0);
    let mut client = proxy.client();
    client.send(what.get(""));
    let mut hop = second.accept();
    assert_eq!(hop.read_head().field("range"), Some("bytes=0-199999"));
    drop(first);
    let front = hop.send_while(&what.part(0, 200_000), || {
        assert_eq!(client.read_head().length(), Some(600_000));
        client.read_exactly(300_000)
    });
    what.check(0, &front);
    let mut hop = second.accept();
    assert_eq!(hop.read_head().field("range"), Some("bytes=300000-599999"));
    let part = what.part(300_000, 600_000);
    let rest = hop.send_while(&part, || client.read_exactly(300_000));
    what.check(300_000, &rest);
}

#[test]
fn background_validation_is_retried_after_the_idle_race() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway(&origin);
    let what = Representation::new("/a", 1000).with_fields(STALE);
    let mut hop = store_stale(&proxy, &origin, &what);
    hit(&proxy, &what);
    hop.read_head();
    drop(hop);
    let (_hop, asked) = origin.answer(NOT_MODIFIED);
    assert_eq!(asked.field("if-none-match"), what.tag.as_deref());
    proxy.wait_for(Metric::Freshened, 1);
    assert_eq!(proxy.count(Metric::Retries), 1);
}

#[test]
fn failed_background_validation_is_counted_and_keeps_the_response() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway(&origin);
    let what = Representation::new("/a", 1000).with_fields(&format!("{STALE}{CLOSE}"));
    drop(store_stale(&proxy, &origin, &what));
    hit(&proxy, &what);
    drop(origin.answer(""));
    proxy.wait_for(Metric::NextHopErrors, 1);
    drop(origin);
    // what is stored is as good as before
    hit(&proxy, &what);
}
