//! A busy connection or a new one: which is waited for, and how the wait ends.
//!
//! How long a set-up takes is under control here: it includes asking the name server, which answers
//! when the test lets it, and the clock is moved meanwhile.

use crate::support::{NameServer, OriginConnection, RawClient, Running, ScriptedOrigin, span};
use std::net::Ipv4Addr;
use std::time::Instant;
use weir_measure::{Metric, OpenReason, Supply, WaitEnd, WaitReason};
use weir_proxy::config::{DnsServer, WhenBusy};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A forward proxy, an origin with a name, and one connection to it.
struct Scene {
    proxy: Running,
    names: NameServer,
    origin: ScriptedOrigin,
    get: String,
}

impl Scene {
    /// Where a set-up takes `set_up_ms`, and an exchange 1 ms.
    fn new(rule: WhenBusy, set_up_ms: u64) -> (Self, RawClient, OriginConnection) {
        let names = NameServer::new(Ipv4Addr::LOCALHOST);
        let origin = ScriptedOrigin::new();
        let proxy = Running::forward_with(|config| {
            config.access.allow_destinations = vec![crate::support::localhost()];
            config.dns.servers = vec![DnsServer(names.address())];
            config.dns.ttl_min = span("0s");
            config.dns.negative_ttl = span("0s");
            config.limits.next_hop_wait = span("20s");
            config.limits.next_hop_busy = rule;
        });
        let host = format!("a.example:{}", origin.address().port());
        let scene = Self {
            proxy,
            names,
            origin,
            get: format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        };
        let mut client = scene.proxy.client();
        let hold = scene.names.hold();
        client.send(&scene.get);
        scene.wait_for_question(0);
        scene.proxy.clock.advance_ms(set_up_ms);
        drop(hold);
        let mut hop = scene.origin.accept();
        hop.read_head();
        scene.proxy.clock.advance_ms(1);
        hop.send(OK);
        assert_eq!(client.read_response().text(), "ok");
        scene.wait_for_idle(1);
        (scene, client, hop)
    }

    /// Waits until the name server was asked more often than so.
    fn wait_for_question(&self, before: usize) {
        let began = Instant::now();
        while self.names.asked() <= before {
            assert!(began.elapsed() < crate::support::PATIENCE, "nobody asks");
            std::thread::yield_now();
        }
    }

    /// Waits until so many connections are idle, without a request to the proxy.
    fn wait_for_idle(&self, count: u64) {
        self.proxy.wait_for(Metric::ConnectionCacheIdle, count);
    }

    /// A client whose request waits for this reason.
    fn waiting(&self, why: WaitReason) -> RawClient {
        self.waiting_for("/", why)
    }

    fn waiting_for(&self, path: &str, why: WaitReason) -> RawClient {
        let before = self.begun(why);
        let mut client = self.proxy.client();
        client.send(self.get.replacen("/ HTTP", &format!("{path} HTTP"), 1));
        self.proxy
            .wait_for(Metric::ConnectionWaits(why), before + 1);
        client
    }

    fn begun(&self, why: WaitReason) -> u64 {
        self.proxy.count(Metric::ConnectionWaits(why))
    }

    fn ended(&self, end: WaitEnd) -> u64 {
        self.proxy.count(Metric::ConnectionWaitEnds(end))
    }

    fn opened(&self, why: OpenReason) -> u64 {
        self.proxy.count(Metric::NextHopOpens(why))
    }
}

#[test]
fn request_waits_where_a_busy_connection_is_sooner_than_a_new_one() {
    let (scene, mut first, mut hop) = Scene::new(WhenBusy::WaitIfSooner, 20_000);
    first.send(&scene.get);
    hop.read_head();
    let mut second = scene.waiting(WaitReason::Sooner);
    let mut third = scene.waiting(WaitReason::Sooner);
    scene.origin.expect_untouched();
    // in the order of coming, with other requests meanwhile
    hop.send(OK);
    assert_eq!(first.read_response().text(), "ok");
    hop.answer(OK);
    assert_eq!(second.read_response().text(), "ok");
    hop.answer(OK);
    assert_eq!(third.read_response().text(), "ok");
    scene.origin.expect_untouched();
    assert_eq!(scene.ended(WaitEnd::Returned), 2);
    assert_eq!(
        scene.proxy.count(Metric::NextHopRequests(Supply::Waited)),
        2
    );
    assert_eq!(scene.proxy.count(Metric::NextHopsOpenMost), 1);
    assert_eq!(scene.proxy.reuse(), (3, 1));
}

#[test]
fn request_opens_a_connection_after_waiting_as_long_as_a_set_up() {
    let (scene, mut first, mut hop) = Scene::new(WhenBusy::WaitIfSooner, 40);
    first.send(&scene.get);
    hop.read_head();
    let mut second = scene.proxy.client();
    second.send(&scene.get);
    // the busy one never comes back: after 40 ms one is opened
    let (_other, _) = scene.origin.answer(OK);
    assert_eq!(second.read_response().text(), "ok");
    assert_eq!(scene.begun(WaitReason::Sooner), 1);
    assert_eq!(scene.ended(WaitEnd::InVain), 1);
    assert_eq!(scene.opened(OpenReason::WaitedInVain), 1);
    hop.send(OK);
    first.read_response();
}

#[test]
fn waiter_opens_a_connection_when_the_busy_one_closes() {
    let (scene, mut first, mut hop) = Scene::new(WhenBusy::WaitIfSooner, 20_000);
    first.send(&scene.get);
    hop.read_head();
    let mut second = scene.waiting(WaitReason::Sooner);
    hop.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    first.read_response();
    // there is nothing to wait for any more
    let (_other, _) = scene.origin.answer(OK);
    assert_eq!(second.read_response().text(), "ok");
    assert_eq!(scene.ended(WaitEnd::InVain), 1);
}

#[test]
fn disconnected_waiter_does_not_block_those_behind_it() {
    let (scene, mut first, mut hop) = Scene::new(WhenBusy::WaitIfSooner, 20_000);
    first.send(&scene.get);
    hop.read_head();
    let second = scene.waiting_for("/left", WaitReason::Sooner);
    let mut third = scene.waiting(WaitReason::Sooner);
    drop(second);
    hop.send(OK);
    first.read_response();
    // whether it is seen to have left or not, the next one in turn has its connection
    if hop.answer(OK).start_line().contains("/left") {
        hop.answer(OK);
    }
    assert_eq!(third.read_response().text(), "ok");
    scene.origin.expect_untouched();
}

#[test]
fn open_rule_opens_a_connection_without_waiting() {
    let (scene, mut first, mut hop) = Scene::new(WhenBusy::Open, 20_000);
    first.send(&scene.get);
    hop.read_head();
    let mut second = scene.proxy.client();
    second.send(&scene.get);
    let (_other, _) = scene.origin.answer(OK);
    assert_eq!(second.read_response().text(), "ok");
    assert_eq!(scene.opened(OpenReason::Rule), 1);
    hop.send(OK);
    first.read_response();
}

#[test]
fn connection_that_loses_a_race_serves_the_next_request() {
    let (scene, mut first, mut hop) = Scene::new(WhenBusy::Race, 20_000);
    first.send(&scene.get);
    hop.read_head();
    let (hold, asked) = (scene.names.hold(), scene.names.asked());
    let mut second = scene.waiting(WaitReason::Race);
    scene.wait_for_question(asked);
    // the busy one is first
    hop.send(OK);
    first.read_response();
    hop.read_head();
    assert_eq!(scene.ended(WaitEnd::Returned), 1);
    // the next has what is on its way
    let mut third = scene.waiting(WaitReason::UnderWay);
    scene.origin.expect_untouched();
    drop(hold);
    let mut other = scene.origin.accept();
    other.answer(OK);
    assert_eq!(third.read_response().text(), "ok");
    hop.send(OK);
    assert_eq!(second.read_response().text(), "ok");
    scene.wait_for_idle(2);
    scene.origin.expect_untouched();
    assert_eq!(scene.opened(OpenReason::Race), 1);
    assert_eq!(scene.proxy.count(Metric::NextHopRequests(Supply::New)), 2);
    assert_eq!(scene.proxy.reuse(), (2, 2));
}

#[test]
fn new_connection_wins_the_race_when_it_is_ready_first() {
    let (scene, mut first, mut hop) = Scene::new(WhenBusy::Race, 20_000);
    first.send(&scene.get);
    hop.read_head();
    let mut second = scene.proxy.client();
    second.send(&scene.get);
    let (_other, _) = scene.origin.answer(OK);
    assert_eq!(second.read_response().text(), "ok");
    assert_eq!(scene.ended(WaitEnd::Returned), 1);
    assert_eq!(scene.proxy.count(Metric::NextHopRequests(Supply::New)), 2);
    hop.send(OK);
    first.read_response();
}

#[test]
fn connection_left_over_from_a_race_becomes_idle_and_is_used() {
    let (scene, mut first, mut hop) = Scene::new(WhenBusy::Race, 20_000);
    first.send(&scene.get);
    hop.read_head();
    let hold = scene.names.hold();
    let mut second = scene.waiting(WaitReason::Race);
    hop.send(OK);
    first.read_response();
    hop.answer(OK);
    second.read_response();
    drop(hold);
    let mut left_over = scene.origin.accept();
    scene.wait_for_idle(2);
    // the newest is the one left over
    first.send(&scene.get);
    left_over.answer(OK);
    assert_eq!(first.read_response().text(), "ok");
    assert_eq!(scene.proxy.count(Metric::NextHopRequests(Supply::Ahead)), 1);
}

#[test]
fn failed_connection_set_up_releases_requests_relying_on_it() {
    let (scene, mut first, mut hop) = Scene::new(WhenBusy::Race, 20_000);
    first.send(&scene.get);
    hop.read_head();
    let (mut hold, asked) = (scene.names.hold(), scene.names.asked());
    let mut second = scene.waiting(WaitReason::Race);
    scene.wait_for_question(asked);
    hop.send(OK);
    first.read_response();
    hop.read_head();
    let mut third = scene.waiting(WaitReason::UnderWay);
    // there is no listener
    *hold = Ipv4Addr::new(127, 0, 0, 77);
    drop(hold);
    // it asks again, opens one for itself, and learns the same
    assert_eq!(third.read_response().status(), 502);
    assert_eq!(scene.ended(WaitEnd::InVain), 1);
    hop.send(OK);
    assert_eq!(second.read_response().text(), "ok");
    // who asked for the race is told at once
    first.send(&scene.get);
    hop.read_head();
    let mut second = scene.proxy.client();
    assert_eq!(second.ask(&scene.get).status(), 502);
    assert_eq!(scene.ended(WaitEnd::Failed), 1);
    scene.names.rebind(Ipv4Addr::LOCALHOST);
    hop.send(OK);
    first.read_response();
}

#[test]
fn every_request_is_served_when_many_contend_for_few_connections() {
    let origin = ScriptedOrigin::new();
    let address = origin.address();
    let origin = origin.answering(|_, _| OK.into());
    let proxy = Running::gateway_with(address, |config| {
        config.workers = 2;
        config.limits.connections_per_next_hop_max = 2;
        config.limits.idle_per_next_hop_max = 1;
        config.limits.next_hop_wait = span("20s");
    });
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                let mut client = proxy.client();
                for _ in 0..50 {
                    let response = client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
                    assert_eq!(response.text(), "ok");
                }
            });
        }
    });
    assert_eq!(origin.seen().len(), 600);
    assert!(proxy.count(Metric::NextHopsOpenMost) <= 2);
    let begun = proxy.count(Metric::ConnectionWaits(WaitReason::PerHopMax));
    let ended: u64 = [WaitEnd::Returned, WaitEnd::Place]
        .map(|end| proxy.count(Metric::ConnectionWaitEnds(end)))
        .iter()
        .sum();
    assert!(begun > 0);
    assert_eq!(begun, ended);
}
