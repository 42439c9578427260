//! The faulty proxy sends what the test asks for, so that a test of a check with it tests the
//! check.

mod support;

use std::net::Ipv4Addr;
use xtask::closed_port::ClosedPort;

use support::{Curl, Fault, FaultyProxy, Reply, TestOrigin, Wire, hits, ports, target, web};
use weir_bench::origin::OriginListen;

/// Asks the faulty_proxy, as a client of a forward proxy, for a target.
fn ask(
    faulty_proxy: &FaultyProxy,
    served: &TestOrigin,
    number: u64,
    fields: &[&str],
) -> (Reply, Wire) {
    let mut wire = Wire::to(faulty_proxy.address());
    let line = format!("GET {} HTTP/1.1", served.url(target(number)));
    let lines: Vec<&str> = [line.as_str(), "Host: a"]
        .into_iter()
        .chain(fields.iter().copied())
        .collect();
    (wire.ask(&lines), wire)
}

#[test]
fn proxy_without_a_fault_forwards_requests_and_responses_unchanged() {
    let served = TestOrigin::new(hits(&[]));
    let faulty_proxy = FaultyProxy::forward(Fault::None);
    let (reply, mut wire) = ask(&faulty_proxy, &served, 1, &["Weir-Bench: 0-0-1"]);
    assert_eq!((reply.status, reply.is_whole), (200, true));
    assert!(reply.content == served.content(target(1)));
    let mark = reply.field("weir-bench").expect("a mark");
    assert!(mark.starts_with("0-0-1 0 @"), "{mark}");
    assert_eq!(reply.field("etag"), Some(served.tag(target(1)).as_str()));
    // it keeps the connection, answers HEAD without content and passes conditions on
    let url = served.url(target(1));
    let head = wire.ask(&[&format!("HEAD {url} HTTP/1.1"), "Host: a"]);
    assert_eq!(
        (head.status, head.field("content-length")),
        (200, Some("10000"))
    );
    let valid = wire.ask(&[
        &format!("GET {url} HTTP/1.1"),
        "Host: a",
        "If-None-Match: *",
    ]);
    assert_eq!(valid.status, 304);
    let post = format!("POST {url} HTTP/1.1");
    wire.send(format!("{post}\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").as_bytes())
        .expect("sent");
    assert_eq!(wire.reply("POST").expect("an answer").status, 200);
    assert_eq!((faulty_proxy.asked(), faulty_proxy.sent_faulty()), (4, 0));
    assert_eq!(served.counts().phases[0].received_content_bytes, 5);
}

#[test]
fn curl_fetches_a_target_through_the_forward_proxy() {
    let served = TestOrigin::new(hits(&[]));
    let faulty_proxy = FaultyProxy::forward(Fault::None);
    let fetched = Curl::through(faulty_proxy.address()).fetch(&[&served.url(target(2))]);
    assert!(fetched.content() == served.content(target(2)));
}

#[test]
fn gateway_serves_requests_in_origin_form() {
    let gateway = OriginListen::Gateway((Ipv4Addr::LOCALHOST, 0).into());
    let served = TestOrigin::on(hits(&[]), gateway, 1);
    let faulty_proxy = FaultyProxy::gateway(served.address(), Fault::None);
    let url = format!(
        "http://{}/s0{}",
        faulty_proxy.address(),
        served.path(target(2))
    );
    let fetched = Curl::direct().fetch(&[&url]);
    assert!(fetched.content() == served.content(target(2)));
}

#[test]
fn wrong_byte_differs_at_its_offset_only() {
    let served = TestOrigin::new(hits(&[]));
    let faulty_proxy = FaultyProxy::forward(Fault::WrongByte { offset: 4321 });
    let (reply, _) = ask(&faulty_proxy, &served, 1, &[]);
    let content = served.site.content(target(1), 0);
    assert_eq!(content.differs_at(0, &reply.content), Some(4321));
    assert_eq!(content.differs_at(4322, &reply.content[4322..]), None);
    faulty_proxy.tell(Fault::WrongByte { offset: 10_000 });
    assert!(ask(&faulty_proxy, &served, 1, &[]).0.content == served.content(target(1)));
    assert_eq!((faulty_proxy.asked(), faulty_proxy.sent_faulty()), (2, 1));
}

#[test]
fn short_and_long_content_deviates_by_the_configured_bytes() {
    let served = TestOrigin::new(hits(&[]));
    let faulty_proxy = FaultyProxy::forward(Fault::ShortFramed { missing: 10 });
    let (reply, _) = ask(&faulty_proxy, &served, 1, &[]);
    assert_eq!((reply.content.len(), reply.is_whole), (9990, true));
    faulty_proxy.tell(Fault::ShortClosed { missing: 10 });
    let (reply, _) = ask(&faulty_proxy, &served, 1, &[]);
    assert_eq!((reply.content.len(), reply.is_whole), (9990, false));
    assert_eq!(reply.field("content-length"), Some("10000"));
    faulty_proxy.tell(Fault::Long { added: 10 });
    let (reply, _) = ask(&faulty_proxy, &served, 1, &[]);
    assert_eq!((reply.content.len(), reply.is_whole), (10_010, true));
    faulty_proxy.tell(Fault::WrongLength { by: -10 });
    let (reply, mut wire) = ask(&faulty_proxy, &served, 1, &[]);
    assert_eq!((reply.content.len(), reply.is_whole), (9990, true));
    assert_eq!(wire.rest().expect("the end").len(), 10);
    faulty_proxy.tell(Fault::WrongLength { by: 10 });
    assert!(!ask(&faulty_proxy, &served, 1, &[]).0.is_whole);
    assert_eq!(faulty_proxy.sent_faulty(), 5);
}

#[test]
fn stale_fault_repeats_the_first_response_after_a_change() {
    let changing = [
        "workload.life_cycle.length=constant(1s)",
        "workload.life_cycle.variance=0%",
    ];
    let served = TestOrigin::on(web(&changing), ports(), 1);
    let faulty_proxy = FaultyProxy::forward(Fault::Stale);
    let number = (0..)
        .find(|&number| served.site.length(target(number)) > 100)
        .expect("one");
    let (first, _) = ask(&faulty_proxy, &served, number, &["Weir-Bench: 0-0-1"]);
    let version = |reply: &Reply| reply.field("weir-bench").map(str::to_owned);
    // a second is over when it is over
    let correct_before = FaultyProxy::forward(Fault::None);
    while version(&ask(&correct_before, &served, number, &["Weir-Bench: 0-0-1"]).0)
        == version(&first)
    {}
    let (later, _) = ask(&faulty_proxy, &served, number, &["Weir-Bench: 0-0-2"]);
    assert_eq!(
        (version(&later), &later.content),
        (version(&first), &first.content)
    );
    assert_eq!(faulty_proxy.sent_faulty(), 1);
}

#[test]
fn swap_fault_answers_with_the_content_of_another_target() {
    let served = TestOrigin::new(hits(&[]));
    let faulty_proxy = FaultyProxy::forward(Fault::Swapped);
    assert!(ask(&faulty_proxy, &served, 1, &[]).0.content == served.content(target(1)));
    assert!(ask(&faulty_proxy, &served, 2, &[]).0.content == served.content(target(1)));
    assert!(ask(&faulty_proxy, &served, 1, &[]).0.content == served.content(target(1)));
    assert_eq!((faulty_proxy.asked(), faulty_proxy.sent_faulty()), (3, 1));
}

#[test]
fn status_and_cache_status_faults_replace_those_of_the_origin() {
    let served = TestOrigin::new(hits(&[]));
    let faulty_proxy = FaultyProxy::forward(Fault::Status(304));
    let (reply, _) = ask(&faulty_proxy, &served, 1, &[]);
    assert_eq!((reply.status, reply.content.len()), (304, 0));
    faulty_proxy.tell(Fault::Status(203));
    let (reply, _) = ask(&faulty_proxy, &served, 1, &[]);
    assert_eq!((reply.status, reply.content.len()), (203, 10_000));
    faulty_proxy.tell(Fault::FalseHit);
    let (reply, _) = ask(&faulty_proxy, &served, 1, &["Weir-Bench: 0-0-9"]);
    assert_eq!(reply.field("cache-status"), Some("faulty_proxy;hit;ttl=60"));
    let mark = reply.field("weir-bench").expect("a mark");
    assert!(
        mark.starts_with("0-0-9 0 @"),
        "forwarded all the same: {mark}"
    );
    faulty_proxy.tell(Fault::Unreadable);
    let mut wire = Wire::to(faulty_proxy.address());
    let line = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", served.url(target(1)));
    wire.send(line.as_bytes()).expect("sent");
    assert!(wire.reply("GET").is_err());
}

#[test]
fn fault_starts_after_the_given_count_and_a_single_one_occurs_once() {
    let served = TestOrigin::new(hits(&[]));
    let faulty_proxy = FaultyProxy::forward(Fault::None);
    let statuses = |count: usize| -> Vec<u16> {
        (0..count)
            .map(|_| ask(&faulty_proxy, &served, 1, &[]).0.status)
            .collect()
    };
    faulty_proxy.tell_once(2, Fault::Status(500));
    assert_eq!(statuses(5), [200, 200, 500, 200, 200]);
    faulty_proxy.tell_after(1, Fault::Status(500));
    assert_eq!(statuses(3), [200, 500, 500]);
    assert_eq!(faulty_proxy.sent_faulty(), 3);
}

#[test]
fn unreachable_origin_is_answered_with_502() {
    let closed = ClosedPort::hold().expect("a port");
    let faulty_proxy = FaultyProxy::gateway(closed.address(), Fault::None);
    let fetched = Curl::direct().fetch(&[&format!("http://{}/", faulty_proxy.address())]);
    assert_eq!(fetched.status(), 502);
}
