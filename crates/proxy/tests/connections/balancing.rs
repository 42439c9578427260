//! How the next hops of a route share its requests: by its policy.

use crate::support::{Answering, Head, RawClient, Running, ScriptedOrigin};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use weir_measure::{Metric, RouteChoice};
use weir_policy::route::ChoiceFor;
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

/// The next hops by the numbers in what they answer.
fn numbered(origins: [ScriptedOrigin; 3]) -> Vec<Answering> {
    let answering = origins.into_iter().enumerate().map(|(number, origin)| {
        let answer = OK.replace("ok", &format!("{number}k"));
        origin.answering(move |_, _| answer.clone().into())
    });
    answering.collect()
}

fn text_of(client: &mut RawClient, path: &str) -> String {
    let response = client.ask(format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n"));
    assert_eq!(response.status(), 200, "{path}");
    response.text()
}

#[test]
fn connection_keeps_its_next_hop_until_a_reload_removes_that() {
    let origins = [(); 3].map(|()| ScriptedOrigin::new());
    let addresses = origins.each_ref().map(ScriptedOrigin::address);
    let _served = numbered(origins);
    let proxy = before(&addresses, "in-turn", &[]);
    let for_connections = |config: &mut Config| {
        config.routes[0].choice_for = ChoiceFor::Connection;
    };
    proxy.reload(for_connections);
    let mut clients = [(); 3].map(|()| proxy.client());
    for round in 0..3 {
        for (client, expected) in clients.iter_mut().zip(["0k", "1k", "2k"]) {
            assert_eq!(text_of(client, &format!("/{round}")), expected);
        }
    }
    assert_eq!(chosen(&proxy, RouteChoice::InTurn), 3);
    assert_eq!(chosen(&proxy, RouteChoice::Connection), 6);
    // the others have other numbers then
    proxy.reload(|config| _ = config.routes[0].next_hops.remove(0));
    let [first, second, third] = &mut clients;
    assert_eq!(text_of(second, "/3"), "1k");
    assert_eq!(text_of(third, "/3"), "2k");
    let other = text_of(first, "/3");
    assert!(other == "1k" || other == "2k", "{other}");
    assert_eq!(text_of(first, "/4"), other);
}

#[test]
fn connection_keeps_the_next_hop_that_has_accepted_its_first_request() {
    let origin = ScriptedOrigin::new();
    let address = origin.address();
    let _served = answering(origin);
    // bound and not listening: it refuses
    let closed =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    let any = SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 0));
    closed.bind(&any.into()).expect("a port");
    let dead = closed.local_addr().expect("bound");
    let dead = dead.as_socket().expect("an address");
    let proxy = before(&[dead, address], "in-turn", &[]);
    proxy.reload(|config| config.routes[0].choice_for = ChoiceFor::Connection);
    let mut client = proxy.client();
    for number in 0..3 {
        assert_eq!(text_of(&mut client, &format!("/{number}")), "ok");
    }
    assert_eq!(chosen(&proxy, RouteChoice::Connection), 2);
}

/// A child proxy sends the requests of all its users on one connection: they go to one next hop,
/// and that is all that they have in common.
#[test]
fn users_behind_one_connection_get_what_is_for_each() {
    let origins = [(); 3].map(|()| ScriptedOrigin::new());
    let addresses = origins.each_ref().map(ScriptedOrigin::address);
    let served = origins.map(|origin| {
        origin.answering(|head, _| {
            let user = head.field("cookie").unwrap_or("none");
            let control = match head.start_line() {
                it if it.starts_with("GET /own") => "private, max-age=60",
                _ => "public, max-age=60",
            };
            let length = user.len();
            let head = "HTTP/1.1 200 OK\r\nVary: Cookie\r\n";
            format!("{head}Cache-Control: {control}\r\nContent-Length: {length}\r\n\r\n{user}")
                .into()
        })
    });
    for policy in ["in-turn", "extended-lard"] {
        let proxy = before(&addresses, policy, &[]);
        if policy == "in-turn" {
            proxy.reload(|config| config.routes[0].choice_for = ChoiceFor::Connection);
        }
        let mut child = proxy.client();
        for _ in 0..3 {
            for path in ["/own", "/shared"] {
                for user in ["a=1", "b=2", "a=1"] {
                    let response = child.ask(format!(
                        "GET {path} HTTP/1.1\r\nHost: a.example\r\nCookie: {user}\r\n\r\n"
                    ));
                    assert_eq!(response.text(), user, "{policy} {path}");
                }
            }
        }
        // one without that comes on a connection of its own gets neither
        let request = "GET /shared HTTP/1.1\r\nHost: a.example\r\n\r\n";
        assert_eq!(proxy.client().ask(request).text(), "none", "{policy}");
    }
    let asked: usize = served.iter().map(|it| it.seen().len()).sum();
    // what is private is asked for each time, the rest once for each user
    assert_eq!(asked, 2 * (9 + 3));
}
