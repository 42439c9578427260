//! What is stored is there after a restart, in every form it can be asked for.

use super::setup::{DiskSetup, is_from_disk};
use crate::support::Representation;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_measure::Metric;

/// Of all sizes that are kept differently: in a record, in a record with several blocks, in runs.
const LENGTHS: [u64; 6] = [0, 1, 1000, 65_520, 200_000, 3_000_001];

#[test]
fn response_of_any_size_is_a_hit_after_a_restart() {
    DiskSetup::each(|mut setup| {
        for (at, length) in LENGTHS.into_iter().enumerate() {
            let what = Representation::new(&format!("/{at}"), length);
            setup.store_whole(&what);
        }
        setup.restart();
        for (at, length) in LENGTHS.into_iter().enumerate() {
            let what = Representation::new(&format!("/{at}"), length);
            setup.hit_on_disk(&what);
        }
        setup
            .proxy()
            .wait_for(Metric::DiskHits, LENGTHS.len() as u64);
        // what is small is in memory from now on
        let small = Representation::new("/2", 1000);
        let again = setup.hit(&small, "");
        small.check_whole(&again);
        assert!(!is_from_disk(&again));
    });
}

#[test]
fn response_is_a_hit_after_a_kill() {
    let mut setup = DiskSetup::simulated(|_| {});
    let (small, large) = (
        Representation::new("/small", 1000),
        Representation::new("/large", 2_500_000),
    );
    setup.store_whole(&small);
    setup.store_whole(&large);
    for _ in 0..3 {
        setup.kill();
        setup.hit_on_disk(&small);
        setup.hit_on_disk(&large);
    }
}

#[test]
fn head_range_and_conditional_requests_are_answered_from_disk() {
    DiskSetup::each(|mut setup| {
        let what = Representation::new("/a", 3_000_000);
        setup.store_whole(&what);
        setup.restart();
        let mut client = setup.proxy().client();
        client.send(what.ask("HEAD", ""));
        let head = client.read_head();
        assert_eq!(head.status(), 200);
        assert_eq!(head.field("content-length"), Some("3000000"));
        for (range, from, to) in [
            ("0-0", 0, 1),
            ("65535-65536", 65_535, 65_537),
            ("1048570-2097200", 1_048_570, 2_097_201),
            ("-5", 2_999_995, 3_000_000),
            ("100-", 100, 3_000_000),
        ] {
            let part = setup.hit(&what, &format!("Range: bytes={range}\r\n"));
            what.check_part(&part, from, to);
        }
        let tag = what.tag.clone().expect("a tag");
        let unchanged = setup.hit(&what, &format!("If-None-Match: {tag}\r\n"));
        assert_eq!(unchanged.status(), 304);
        let beyond = setup.hit(&what, "Range: bytes=3000000-\r\n");
        assert_eq!(beyond.status(), 416);
        let old = format!("GET {} HTTP/1.0\r\nHost: a.example\r\n\r\n", what.path);
        what.check_whole(&setup.proxy().client().ask(old));
        setup.origin.expect_untouched();
    });
}

#[test]
fn slow_or_disconnecting_client_does_not_disturb_disk_hits() {
    DiskSetup::each(|mut setup| {
        let what = Representation::new("/a", 3_000_000);
        setup.store_whole(&what);
        setup.restart();
        let mut slow = setup.proxy().client();
        slow.send(what.get(""));
        assert_eq!(slow.read_head().status(), 200);
        let mut leaving = setup.proxy().client();
        leaving.send(what.get(""));
        leaving.read_head();
        leaving.into_peer().reset();
        setup.hit_on_disk(&what);
        what.check(0, &slow.read_exactly(3_000_000));
    });
}

#[test]
fn age_is_counted_from_the_response_across_restarts() {
    let mut setup = DiskSetup::simulated(|_| {});
    let what = Representation::new("/a", 1000);
    setup.store_whole(&what);
    for (later_s, age) in [(0, "0"), (3599, "3599"), (60, "60")] {
        setup.restart_later(later_s);
        let response = setup.hit(&what, "");
        assert_eq!(response.head.field("age"), Some(age));
    }
    // stale by then; and with a clock that was set back its age is unknown
    for later_s in [3600, -1] {
        setup.restart_later(later_s);
        let mut client = setup.proxy().client();
        client.send(what.get(""));
        let (hop, asked) = setup
            .origin
            .answer("HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n");
        assert_eq!(asked.field("if-none-match"), what.tag.as_deref());
        drop(hop);
        what.check_whole(&client.read_response());
    }
}

#[test]
fn freshened_response_stays_fresh_after_a_restart() {
    DiskSetup::each(|mut setup| {
        for length in [1000, 2_500_000] {
            let what = Representation::new(&format!("/{length}"), length);
            setup.store_whole(&what);
            setup.restart_later(4000);
            let before = setup.proxy().count(Metric::DiskStored);
            let mut client = setup.proxy().client();
            client.send(what.get(""));
            setup.origin.answer(
                "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=3600\r\nConnection: close\r\n\r\n",
            );
            what.check_whole(&client.read_response());
            setup.written(before + 1);
            setup.restart_later(7000);
            setup.hit_on_disk(&what);
            setup.restart();
        }
    });
}

/// Stored by a process that does not read `CDN-Cache-Control`, found by one that does.
#[test]
fn response_forbidden_by_a_targeted_field_is_a_miss_after_a_restart() {
    let reads = Arc::new(AtomicBool::new(false));
    let is_read = Arc::clone(&reads);
    let mut setup = DiskSetup::simulated(move |config| {
        if !is_read.load(Ordering::Relaxed) {
            config.cache.gateway_targeted_fields.clear();
        }
    });
    let kinds = [
        ("private", false),
        ("no-store", false),
        ("max-age=1", false),
        ("max-age=999999", true),
        ("Private", true),
    ];
    let all: Vec<_> = kinds
        .iter()
        .enumerate()
        .map(|(at, (directives, keeps))| {
            let plain = "Cache-Control: max-age=3600\r\nConnection: close\r\n";
            let fields = format!("{plain}CDN-Cache-Control: {directives}\r\n");
            let what = Representation::new(&format!("/{at}"), 1000).with_fields(&fields);
            (what, *keeps)
        })
        .collect();
    for (what, _) in &all {
        setup.store_whole(what);
    }
    reads.store(true, Ordering::Relaxed);
    setup.restart();
    for (what, keeps) in &all {
        if *keeps {
            setup.hit_on_disk(what);
        } else {
            // the origin is asked
            setup.fetch_whole(what);
        }
    }
}
