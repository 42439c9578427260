//! Modules that give up or answer in the middle of a fetch that several clients read.

use crate::support::{OriginConnection, RawClient, Response, Setup, scripted};
use std::thread::JoinHandle;
use weir_measure::Metric;
use weir_proxy::config::Config;

/// How much of a response the next hop sends at first, which is less than modules look at.
const BEGUN_BYTES: usize = 50_000;

fn fresh(bytes: usize) -> String {
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";
    format!("{head}Content-Length: {bytes}\r\n\r\n{}", "x".repeat(bytes))
}

fn with(how: &str) -> impl Fn(&mut Config) {
    let module = scripted(
        "m",
        &[
            ("request-received", "note X-User"),
            ("response-received", how),
        ],
    );
    move |config| config.modules = vec![module.clone()]
}

/// Sends `bytes`, as many as the proxy takes.
fn sending(mut hop: OriginConnection, bytes: &str) -> JoinHandle<()> {
    let bytes = bytes.to_owned();
    std::thread::spawn(move || {
        hop.try_send(bytes);
    })
}

/// A GET of `user`.
fn get(setup: &Setup, user: &str) -> String {
    setup.head("GET", "/", "1.1", &format!("X-User: {user}\r\n"))
}

/// A client of `user` that waits for the response to another's request.
fn follow(setup: &Setup, user: &'static str) -> (&'static str, RawClient) {
    let mut follower = setup.follow(1, &get(setup, user));
    (user, follower.pop().expect("a client"))
}

/// Each client gets its own answer, `own` of them by requests of their own to the next hop, on
/// which the module decides for each.
fn check_each(setup: &Setup, how: &str, clients: Vec<(&str, RawClient)>, own: usize, answer: &str) {
    let mut hops = Vec::new();
    for _ in 0..own {
        let mut hop = setup.origin.accept();
        hop.read_head();
        hops.push(sending(hop, answer));
    }
    for (user, mut client) in clients {
        check(&client.read_response(), how, user);
    }
    for hop in hops {
        hop.join().expect("sent or refused");
    }
    assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
}

/// The response is that of the module to `user`, or says which module failed.
fn check(response: &Response, how: &str, user: &str) {
    if how.contains("respond") {
        assert_eq!(
            (response.status(), response.text()),
            (451, format!("not for {user}"))
        );
        assert!(
            response.verdict().contains("detail=module"),
            "{}",
            response.verdict()
        );
    } else {
        assert_eq!(response.status(), 502);
        let reason = response.head.field("proxy-status").expect("a reason");
        assert!(
            reason.contains("the module `m` failed (gave-up)"),
            "{reason}"
        );
    }
}

#[test]
fn each_reader_of_a_fetch_gets_an_answer_of_its_own_as_long_as_it_was_sent_nothing() {
    for how in ["content scan-respond", "content scan-fail"] {
        Setup::each_with(with(how), |setup| {
            let response = fresh(300_000);
            let (begun, rest) = response.split_at(BEGUN_BYTES);
            let (leader, mut hop) = setup.lead(&get(setup, "leader"));
            let mut clients = vec![("leader", leader)];
            clients.extend([follow(setup, "ann"), follow(setup, "bob")]);
            hop.send(begun);
            setup.proxy.wait_for(Metric::FollowersWaiting, 0);
            // it comes after the head
            let mut late = setup.proxy.client();
            late.send(get(setup, "late"));
            setup.proxy.wait_for(Metric::RequestsInFlight, 4);
            clients.push(("late", late));
            setup.origin.expect_untouched();
            let sent = sending(hop, rest);
            check_each(setup, how, clients, 3, &response);
            sent.join().expect("sent or refused");
        });
    }
}

#[test]
fn reader_gets_an_answer_of_its_own_though_the_client_that_began_the_fetch_has_left() {
    for how in ["content scan-respond", "content scan-fail"] {
        Setup::each_with(with(how), |setup| {
            let response = fresh(300_000);
            let (begun, rest) = response.split_at(BEGUN_BYTES);
            let (leader, mut hop) = setup.lead(&get(setup, "leader"));
            let clients = vec![follow(setup, "ann"), follow(setup, "bob")];
            hop.send(begun);
            setup.proxy.wait_for(Metric::FollowersWaiting, 0);
            leader.into_peer().reset();
            setup.proxy.wait_for(Metric::ClientAborts, 1);
            let sent = sending(hop, rest);
            check_each(setup, how, clients, 2, &response);
            sent.join().expect("sent or refused");
        });
    }
}

#[test]
fn follower_of_a_response_that_came_at_once_gets_an_answer_of_its_own() {
    for how in ["content respond-noted", "content fail"] {
        Setup::each_with(with(how), |setup| {
            let (leader, hop) = setup.lead(&get(setup, "leader"));
            let mut clients = vec![("leader", leader)];
            clients.extend([follow(setup, "ann"), follow(setup, "bob")]);
            let response = fresh(3);
            let sent = sending(hop, &response);
            check_each(setup, how, clients, 2, &response);
            sent.join().expect("sent or refused");
        });
    }
}

#[test]
fn reader_that_was_sent_some_of_the_response_is_cut() {
    Setup::each_with(with("content respond-late"), |setup| {
        let response = fresh(300_000);
        let (begun, rest) = response.split_at(BEGUN_BYTES);
        let (mut leader, mut hop) = setup.lead(&get(setup, "leader"));
        let (_, mut follower) = follow(setup, "ann");
        hop.send(begun);
        let heads = [leader.read_head(), follower.read_head()];
        let sent = sending(hop, rest);
        for (client, head) in [leader, follower].iter_mut().zip(&heads) {
            assert_eq!(head.status(), 200);
            client.read_cut(head);
        }
        sent.join().expect("sent or refused");
        setup.origin.expect_untouched();
        assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
    });
}
