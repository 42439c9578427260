//! How the next hops of a route share its requests: by its policy.

use crate::support::{Answering, Head, Running, ScriptedOrigin};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use weir_measure::{Metric, RouteChoice};
use weir_proxy::config::Config;

const OK: &str = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok";

/// A gateway before these, by a policy.
fn before(origins: &[SocketAddr], policy: &str, weights: &[u16]) -> Running {
    let (policy, weights) = (policy.parse().expect("a policy"), weights.to_vec());
    Running::gateway_with(origins[0], |config: &mut Config| {
        let route = &mut config.routes[0];
        for origin in &origins[1..] {
            let hop = format!("http://{origin}").parse().expect("a next hop");
            route.next_hops.push(hop);
        }
        (route.policy, route.weights) = (policy, weights);
    })
}

fn answering(origin: ScriptedOrigin) -> Answering {
    origin.answering(|_, _| OK.into())
}

fn get(proxy: &Running, path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n");
    assert_eq!(proxy.client().ask(request).status(), 200, "{path}");
}

fn chosen(proxy: &Running, reason: RouteChoice) -> u64 {
    proxy.count(Metric::RouteChoices(reason))
}

#[test]
fn next_hops_get_turns_by_their_weights() {
    let origins = [ScriptedOrigin::new(), ScriptedOrigin::new()];
    let addresses = origins.each_ref().map(ScriptedOrigin::address);
    let served = origins.map(answering);
    let proxy = before(&addresses, "in-turn", &[1, 3]);
    for number in 0..8 {
        get(&proxy, &format!("/{number}"));
    }
    assert_eq!(served.each_ref().map(|it| it.seen().len()), [2, 6]);
    assert_eq!(chosen(&proxy, RouteChoice::InTurn), 8);
}

#[test]
fn target_has_the_same_next_hop_on_every_proxy() {
    // of so many, a next hop has fewer than three once in ten million runs: ports differ
    const TARGETS: usize = 60;
    let origins = [(); 3].map(|()| ScriptedOrigin::new());
    let addresses = origins.each_ref().map(ScriptedOrigin::address);
    let served = origins.map(answering);
    let mut turned = addresses;
    turned.reverse();
    let proxies = [&addresses, &turned].map(|order| before(order, "hash", &[]));
    for number in 0..TARGETS {
        for proxy in &proxies {
            get(proxy, &format!("/{number}"));
        }
    }
    let mut targets = 0;
    for served in &served {
        let seen = served.seen();
        let mut paths: Vec<&str> = seen.iter().map(Head::start_line).collect();
        paths.sort();
        // each came from both
        assert!(
            paths
                .chunks(2)
                .all(|pair| pair.len() == 2 && pair[0] == pair[1])
        );
        assert!(paths.len() >= 6, "{paths:?}");
        targets += paths.len() / 2;
    }
    assert_eq!(targets, TARGETS);
    for proxy in &proxies {
        assert_eq!(chosen(proxy, RouteChoice::FirstInOrder), TARGETS as u64);
    }
}

#[test]
fn next_hop_with_outstanding_requests_is_left_to_itself_until_they_end() {
    let (slow, quick) = (ScriptedOrigin::new(), ScriptedOrigin::new());
    let served = answering(quick);
    let proxy = before(&[slow.address(), served.address()], "least", &[]);
    // without load either may be chosen: ask until the slow one was
    let mut waiting = loop {
        let mut client = proxy.client();
        let before = served.seen().len();
        client.send("GET /wait HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let until = Instant::now() + Duration::from_secs(20);
        let is_at_slow = loop {
            assert!(Instant::now() < until, "it reaches no next hop");
            if served.seen().len() > before {
                break false;
            }
            if slow.is_touched() {
                break true;
            }
        };
        if is_at_slow {
            break client;
        }
        assert_eq!(client.read_response().status(), 200);
    };
    let mut hop = slow.accept();
    let before = served.seen().len();
    for number in 0..20 {
        get(&proxy, &format!("/{number}"));
    }
    assert_eq!(served.seen().len(), before + 20);
    hop.answer(OK);
    assert_eq!(waiting.read_response().status(), 200);
}

/// A request of which it is not counted that it ended would keep all others away from its next hop.
#[test]
fn requests_have_ended_whatever_became_of_them() {
    let served = [(); 2].map(|()| {
        ScriptedOrigin::new().answering(|head, _| {
            let answer = match head.start_line() {
                it if it.starts_with("GET /cut") => {
                    "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nok"
                }
                it if it.starts_with("GET /bad") => "nonsense\r\n\r\n",
                _ => OK,
            };
            answer.into()
        })
    });
    let addresses = served.each_ref().map(Answering::address);
    let proxy = before(&addresses, "least", &[]);
    for number in 0..30 {
        let mut client = proxy.client();
        let what = ["ok", "cut", "bad"][number % 3];
        client.send(format!("GET /{what} HTTP/1.1\r\nHost: a.example\r\n\r\n"));
        // half of the clients leave at once
        if number % 2 == 0 {
            client.read_head();
        }
    }
    proxy.wait_for(Metric::RequestsInFlight, 0);
    proxy.wait_for(Metric::FetchesUnderWay, 0);
    let before = served.each_ref().map(|it| it.seen().len());
    for number in 0..60 {
        get(&proxy, &format!("/ok{number}"));
    }
    for (served, before) in served.iter().zip(before) {
        let more = served.seen().len() - before;
        assert!(more >= 10, "{more} of 60");
    }
}
