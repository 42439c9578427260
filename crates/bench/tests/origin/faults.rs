//! What goes wrong on purpose, as curl sees it.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use crate::support::{Curl, Fetched, TestOrigin, faulty, hits, target};

/// curl's exit codes.
const PARTIAL_FILE: i32 = 18;
const TIMED_OUT: i32 = 28;
const RECEIVE_ERROR: i32 = 56;

fn fetch(served: &TestOrigin) -> Fetched {
    Curl::direct().fetch(&[&served.url(target(1))])
}

fn check_begin(served: &TestOrigin, fetched: &Fetched, length: usize) {
    assert_eq!(fetched.status(), 200);
    assert!(fetched.body == served.content(target(1))[..length]);
}

#[test]
fn cut_response_ends_before_its_content_length() {
    let served = TestOrigin::new(faulty(
        "what = \"cut\"\nshare = \"100%\"\nat = \"25%\"",
        &[],
    ));
    let fetched = fetch(&served);
    assert_eq!(fetched.exit, PARTIAL_FILE, "{}", fetched.stderr);
    check_begin(&served, &fetched, 2500);
    let phase = &served.counts().phases[0];
    assert_eq!((phase.faulted.cut, phase.faulted.total()), (1, 1));
    assert_eq!((phase.content_bytes, phase.ok, phase.left), (2500, 1, 0));
}

#[test]
fn reset_fault_resets_the_connection() {
    let served = TestOrigin::new(faulty(
        "what = \"reset\"\nshare = \"100%\"\nat = \"100B\"",
        &[],
    ));
    let fetched = fetch(&served);
    assert_eq!(fetched.exit, RECEIVE_ERROR, "{}", fetched.stderr);
    let mut wire = served.wire();
    let request = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", served.path(target(1)));
    wire.send(request.as_bytes()).expect("sent");
    let error = wire.rest().expect_err("a reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(served.counts().phases[0].faulted.reset, 2);
}

#[test]
fn hanging_response_stalls_until_the_client_disconnects() {
    let served = TestOrigin::new(faulty(
        "what = \"hang\"\nshare = \"100%\"\nat = \"1KB\"",
        &[],
    ));
    let fetched = Curl::direct()
        .args(&["--max-time", "0.4"])
        .fetch(&[&served.url(target(1))]);
    assert_eq!(fetched.exit, TIMED_OUT, "{}", fetched.stderr);
    check_begin(&served, &fetched, 1024);
    assert_eq!(served.counts().phases[0].faulted.hang, 1);
    // and ends with its client
    while served.counts().connections_open > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn slow_fault_limits_the_rate_after_its_offset() {
    let served = TestOrigin::new(faulty(
        "what = \"slow(10KB)\"\nshare = \"100%\"\nat = \"50%\"",
        &[],
    ));
    let start = Instant::now();
    let fetched = fetch(&served);
    assert!(fetched.content() == served.content(target(1)));
    // 5000 bytes at 10 KiB a second, the first 204 at once
    assert!(
        start.elapsed() >= Duration::from_millis(460),
        "{:?}",
        start.elapsed()
    );
    let fetched = Curl::direct()
        .args(&["--max-time", "0.25"])
        .fetch(&[&served.url(target(1))]);
    assert_eq!(fetched.exit, TIMED_OUT);
    assert!(
        (5000..8000).contains(&fetched.body.len()),
        "{}",
        fetched.body.len()
    );
    assert_eq!(served.counts().phases[0].faulted.slow, 2);
}

#[test]
fn wrong_length_fault_declares_another_content_length() {
    let longer = TestOrigin::new(faulty(
        "what = \"wrong-length\"\nshare = \"100%\"\nat = \"10100B\"",
        &[],
    ));
    let fetched = fetch(&longer);
    assert_eq!(fetched.exit, PARTIAL_FILE, "{}", fetched.stderr);
    assert_eq!(fetched.field("content-length"), Some("10100"));
    check_begin(&longer, &fetched, 10_000);
    let shorter = TestOrigin::new(faulty(
        "what = \"wrong-length\"\nshare = \"100%\"\nat = \"90%\"",
        &[],
    ));
    let mut wire = shorter.wire();
    let reply = wire.ask(&[
        &format!("GET {} HTTP/1.1", shorter.path(target(1))),
        "Host: a",
    ]);
    assert_eq!(reply.field("content-length"), Some("9000"));
    let whole = shorter.content(target(1));
    assert!(reply.content == whole[..9000]);
    assert!(wire.rest().expect("the end") == whole[9000..]);
    assert_eq!(shorter.counts().phases[0].faulted.wrong_length, 1);
}

#[test]
fn status_fault_answers_with_its_status_and_keeps_the_connection() {
    let served = TestOrigin::new(faulty("what = \"status(503)\"\nshare = \"100%\"", &[]));
    let urls = [served.url(target(1)), served.url(target(2))];
    let fetched = Curl::direct().fetch(&[&urls[0], &urls[1]]);
    assert_eq!((fetched.exit, fetched.status()), (0, 503));
    assert_eq!(fetched.field("cache-control"), Some("no-store"));
    let phase = &served.counts().phases[0];
    assert_eq!(
        (phase.faulted.status, phase.other, phase.connections_opened),
        (2, 2, 1)
    );
}

#[test]
fn head_and_304_responses_are_not_cut() {
    let served = TestOrigin::new(faulty("what = \"cut\"\nshare = \"100%\"", &[]));
    let mut wire = served.wire();
    let head = format!("HEAD {} HTTP/1.1", served.path(target(1)));
    let get = format!("GET {} HTTP/1.1", served.path(target(1)));
    for _ in 0..2 {
        assert_eq!(wire.ask(&[&head, "Host: a"]).status, 200);
        assert_eq!(wire.ask(&[&get, "Host: a", "If-None-Match: *"]).status, 304);
    }
    assert_eq!(served.counts().phases[0].faulted.total(), 0);
}

#[test]
fn aborts_follow_their_share_and_random_offsets_reproducibly() {
    let served = TestOrigin::new(hits(&["origin.aborted_share=25%"]));
    let replay = TestOrigin::new(hits(&["origin.aborted_share=25%"]));
    let lengths = |served: &TestOrigin| -> Vec<usize> {
        (0..400)
            .map(|number| {
                let line = format!("GET {} HTTP/1.1", served.path(target(1)));
                let mark = format!("Weir-Bench: 0-0-{number:x}");
                let reply = served.wire().ask(&[&line, "Host: a", &mark]);
                assert_eq!(reply.is_whole, reply.content.len() == 10_000);
                reply.content.len()
            })
            .collect()
    };
    let found = lengths(&served);
    let aborted: Vec<usize> = found
        .iter()
        .copied()
        .filter(|&length| length < 10_000)
        .collect();
    // 100 expected, with a standard deviation of 8.7
    assert!((60..=140).contains(&aborted.len()), "{}", aborted.len());
    let mean = aborted.iter().sum::<usize>() / aborted.len();
    // 5000 expected, with one of at most 373
    assert!((3500..=6500).contains(&mean), "{mean}");
    let phase = &served.counts().phases[0];
    assert_eq!(phase.aborted, aborted.len() as u64);
    assert_eq!(phase.content_bytes, found.iter().sum::<usize>() as u64);
    assert_eq!(lengths(&replay), found);
}

#[test]
fn fault_affects_only_its_configured_targets() {
    let fault = "what = \"status(500)\"\nshare = \"100%\"\ntargets = \"numbers 3-4\"";
    let served = TestOrigin::new(faulty(fault, &[]));
    let mut wire = served.wire();
    let statuses: Vec<u16> = (0..7)
        .map(|number| {
            wire.ask(&[
                &format!("GET {} HTTP/1.1", served.path(target(number))),
                "Host: a",
            ])
            .status
        })
        .collect();
    assert_eq!(statuses, [200, 200, 200, 500, 500, 200, 200]);
}

#[test]
fn fault_occurs_only_within_its_time_window() {
    let status = |served: &TestOrigin| {
        let line = format!("GET {} HTTP/1.1", served.path(target(0)));
        served.wire().ask(&[&line, "Host: a"]).status
    };
    let fault = "what = \"status(500)\"\nshare = \"100%\"\n";
    let served = TestOrigin::new(faulty(&format!("{fault}until = \"1000s\""), &[]));
    assert_eq!(status(&served), 500);
    served
        .origin
        .begin(Instant::now() + Duration::from_secs(100));
    assert_eq!(status(&served), 200, "before the run");
    served.origin.begin(Instant::now());
    assert_eq!(status(&served), 500);
    let later = TestOrigin::new(faulty(&format!("{fault}from = \"1000s\""), &[]));
    assert_eq!(status(&later), 200);
    let short = TestOrigin::new(faulty(&format!("{fault}until = \"50ms\""), &[]));
    // over when it is over
    while status(&short) == 500 {}
    assert_eq!(status(&short), 200);
}
