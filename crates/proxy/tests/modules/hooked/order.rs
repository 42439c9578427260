//! The phases that requests reach, and their order.

use crate::support::{PATIENCE, Running, Setup, span};
use std::time::Instant;
use weir_policy::Phase;

const FRESH: &str =
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=10\r\nETag: \"a\"\r\nContent-Length: 2\r\n\r\nok";
const PASSING: &str = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok";
const UNCHANGED: &str = "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n";

const HIT: &str = "request-head authorise choose response-head response-content done";

/// The phases of one request, once it is done.
#[track_caller]
fn phases_of_one(proxy: &Running) -> Vec<Phase> {
    let until = Instant::now() + PATIENCE;
    while proxy.phases.so_far().last() != Some(&Phase::Done) {
        assert!(Instant::now() < until, "{:?}", proxy.phases.so_far());
        std::thread::yield_now();
    }
    proxy.phases.take()
}

/// One request met these phases, in this order.
#[track_caller]
fn check(proxy: &Running, expected: &str) {
    let phases = phases_of_one(proxy);
    let words: Vec<_> = phases.iter().map(|phase| phase.as_str()).collect();
    assert_eq!(words.join(" "), expected);
}

#[test]
fn miss_reaches_all_phases_but_request_content() {
    Setup::each(|setup| {
        assert_eq!(setup.fetch("/", FRESH).0.text(), "ok");
        check(
            &setup.proxy,
            "request-head authorise choose forward response-head store response-content done",
        );
    });
}

#[test]
fn response_that_is_not_stored_skips_store() {
    Setup::each(|setup| {
        assert_eq!(setup.fetch("/", PASSING).0.text(), "ok");
        check(
            &setup.proxy,
            "request-head authorise choose forward response-head response-content done",
        );
    });
}

#[test]
fn hit_skips_forward_and_store() {
    Setup::each(|setup| {
        let (_, _hop) = setup.fetch("/", FRESH);
        phases_of_one(&setup.proxy);
        assert_eq!(setup.proxy.client().ask(setup.get("/")).text(), "ok");
        check(&setup.proxy, HIT);
    });
}

#[test]
fn validated_response_is_stored_anew_before_it_is_sent() {
    Setup::each(|setup| {
        let (_, mut hop) = setup.fetch("/", FRESH);
        phases_of_one(&setup.proxy);
        setup.proxy.clock.advance_ms(11_000);
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        hop.answer(UNCHANGED);
        assert_eq!(client.read_response().text(), "ok");
        check(
            &setup.proxy,
            "request-head authorise choose forward response-head store response-content done",
        );
    });
}

#[test]
fn refused_request_skips_all_that_it_was_refused() {
    Setup::each(|setup| {
        let request = setup.head("TRACE", "/", "1.1", "");
        assert_eq!(setup.proxy.client().ask(request).status(), 405);
        check(
            &setup.proxy,
            "request-head response-head response-content done",
        );
    });
}

#[test]
fn answer_of_our_own_is_chosen() {
    Setup::each(|setup| {
        let request = setup.head("GET", "/", "1.1", "Cache-Control: only-if-cached\r\n");
        assert_eq!(setup.proxy.client().ask(request).status(), 504);
        check(&setup.proxy, HIT);
    });
}

#[test]
fn sent_request_content_is_a_phase_before_the_response_head() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("POST", "/", "1.1", "Content-Length: 4\r\n") + "text");
        let mut hop = setup.origin.accept();
        hop.read_head();
        hop.expect("text");
        hop.send(PASSING);
        assert_eq!(client.read_response().text(), "ok");
        check(
            &setup.proxy,
            "request-head authorise choose forward request-content response-head response-content done",
        );
    });
}

#[test]
fn request_content_behind_the_response_head_is_skipped() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("POST", "/", "1.1", "Content-Length: 4\r\n") + "te");
        let mut hop = setup.origin.accept();
        hop.read_head();
        hop.expect("te");
        hop.send(PASSING);
        assert_eq!(client.read_response().text(), "ok");
        check(
            &setup.proxy,
            "request-head authorise choose forward response-head response-content done",
        );
    });
}

#[test]
fn tunnel_reaches_its_response_head_before_it_opens() {
    let setup = Setup::forward_with(|config| {
        config.limits.tunnel_idle = span("20s");
        config.access.connect_ports = vec![];
    });
    let target = setup.origin.address();
    setup
        .proxy
        .reload(|config| config.access.connect_ports = vec![target.port()]);
    let mut client = setup.proxy.client();
    client.send(format!(
        "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"
    ));
    assert_eq!(client.read_head().status(), 200);
    let hop = setup.origin.accept();
    let opened = [
        Phase::RequestHead,
        Phase::Authorise,
        Phase::Choose,
        Phase::Forward,
        Phase::ResponseHead,
    ];
    assert_eq!(setup.proxy.phases.so_far(), opened);
    drop(hop);
    drop(client);
    check(
        &setup.proxy,
        "request-head authorise choose forward response-head response-content done",
    );
}
