//! Next hops that are probed, and what becomes of those that fail.

use crate::support::{Running, ScriptedOrigin, span};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use weir_measure::Metric;
use weir_proxy::config::{Config, Probe};
use xtask::closed_port::ClosedPort;

fn probed(config: &mut Config, hops: &[SocketAddr]) {
    let urls = hops.iter().map(|hop| format!("http://{hop}").parse());
    config.routes[0].next_hops = urls.map(|url| url.expect("a URL")).collect();
    config.routes[0].probe = Some(Probe {
        path: "/health".parse().expect("a path"),
        interval: span("100ms"),
        healthy_after: 2,
        unhealthy_after: 2,
        ..Probe::default()
    });
}

/// What each of `count` clients was answered.
fn answers(proxy: &Running, count: usize) -> Vec<String> {
    let requests = (0..count).map(|number| {
        let path = format!("/{number}");
        proxy
            .client()
            .ask(format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n"))
            .text()
    });
    requests.collect()
}

/// Answers probes with a status that can be changed, and all else with its name.
fn backend(name: &'static str, health: &Arc<AtomicU16>) -> crate::support::Answering {
    let health = Arc::clone(health);
    ScriptedOrigin::new().answering(move |head, _| {
        let is_probe = head.start_line() == "GET /health HTTP/1.1";
        let (status, content) = match is_probe {
            true => (health.load(Ordering::Relaxed), ""),
            false => (200, name),
        };
        assert!(!is_probe || head.field("user-agent") == Some("weir probe"));
        format!(
            "HTTP/1.1 {status} X\r\nCache-Control: no-store\r\nContent-Length: {}\r\n\r\n{content}",
            content.len()
        )
        .into_bytes()
    })
}

#[test]
fn next_hop_whose_probes_fail_gets_no_request_until_they_pass_again() {
    let healths = [200, 200].map(|status| Arc::new(AtomicU16::new(status)));
    let (one, other) = (backend("one", &healths[0]), backend("other", &healths[1]));
    let hops = [one.address(), other.address()];
    let proxy = Running::gateway_with(hops[0], |config| probed(config, &hops));
    proxy.wait_for_at_least(Metric::Probes, 4);
    assert_eq!(proxy.count(Metric::ProbesFailed), 0);
    assert!(answers(&proxy, 2).contains(&"one".to_owned()));

    healths[0].store(503, Ordering::Relaxed);
    proxy.wait_for_at_least(Metric::ProbesFailed, 3);
    assert_eq!(answers(&proxy, 4), ["other"; 4]);

    healths[0].store(204, Ordering::Relaxed);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !answers(&proxy, 2).contains(&"one".to_owned()) {
        assert!(Instant::now() < deadline, "it did not come back");
    }
}

#[test]
fn next_hop_that_accepts_no_connection_is_ejected_before_a_client_asks() {
    let health = Arc::new(AtomicU16::new(200));
    let one = backend("one", &health);
    let closed = ClosedPort::hold().expect("a port");
    let nowhere = closed.address();
    let proxy = Running::gateway_with(one.address(), |config| {
        probed(config, &[nowhere, one.address()]);
    });
    proxy.wait_for_at_least(Metric::ProbesFailed, 2);
    assert_eq!(answers(&proxy, 4), ["one"; 4]);
}

#[test]
fn next_hop_that_is_silent_fails_its_probes() {
    let health = Arc::new(AtomicU16::new(200));
    let one = backend("one", &health);
    let silent = ScriptedOrigin::new();
    let proxy = Running::gateway_with(one.address(), |config| {
        probed(config, &[silent.address(), one.address()]);
        let probe = config.routes[0].probe.as_mut().expect("a probe");
        probe.timeout = span("50ms");
        probe.status = vec![200];
    });
    proxy.wait_for_at_least(Metric::ProbesFailed, 2);
    assert_eq!(answers(&proxy, 4), ["one"; 4]);
}
