//! A device that reads badly (R06, R09): some sectors cannot be read, or reads hang. Every byte
//! that a client gets is compared; what the device does not give, the origin does.

use super::faulty_files::ReadFault;
use super::setup::{DiskSetup, is_from_disk};
use crate::support::{PATIENCE, Representation, span};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use weir_measure::Metric;
use weir_proxy::config::{Config, Listener, ListenerKind, Member};

/// Small enough to be read and verified before anything was promised.
fn small(number: u64) -> Representation {
    Representation::new(&format!("/small/{number}"), 1000 + 211 * number)
}

/// Begun before all of it was read.
fn large(number: u64) -> Representation {
    Representation::new(&format!("/large/{number}"), 1_500_000 + number)
}

/// What is stored, and nothing of it in memory.
fn stored(small_ones: u64, large_ones: u64) -> DiskSetup {
    stored_with(|_| {}, small_ones, large_ones)
}

/// The same with a change of the configuration.
fn stored_with(
    change: impl Fn(&mut Config) + 'static,
    small_ones: u64,
    large_ones: u64,
) -> DiskSetup {
    let mut setup = DiskSetup::faulty(change);
    for number in 0..small_ones {
        setup.store_whole(&small(number));
    }
    for number in 0..large_ones {
        setup.store_whole(&large(number));
    }
    setup.restart();
    setup
}

#[test]
fn response_with_bad_sectors_is_completed_by_the_origin() {
    const SMALL: u64 = 80;
    let setup = stored(SMALL, 3);
    // sectors enough to be unlucky, few enough that there are never many errors in a row
    setup.fault(ReadFault::BadSectors(100));
    let mut from_disk = 0;
    for number in 0..SMALL {
        let response = setup.ask_either(&small(number));
        from_disk += u64::from(response.is_from_disk);
        assert!(response.is_whole, "small {number} was cut");
    }
    // what has a bad sector was asked for again, the others were not
    assert!((1..SMALL).contains(&from_disk), "{from_disk}");
    let errors = setup.proxy().count(Metric::DiskErrors);
    assert!(errors >= SMALL - from_disk, "{errors}");
    for number in 0..3 {
        // what is behind a bad sector comes from the origin
        let response = setup.ask_either(&large(number));
        assert!(response.is_whole, "large {number} was cut");
    }
    assert_eq!(setup.proxy().count(Metric::DiskFenced), 0);
    for number in 0..SMALL {
        // from memory, as they were just asked for
        small(number).check_whole(&setup.hit(&small(number), ""));
    }
}

#[test]
fn unreadable_device_is_bypassed_after_eight_errors_until_it_recovers() {
    let setup = stored(20, 1);
    setup.fault(ReadFault::BadSectors(1));
    for number in 0..20 {
        let response = setup.ask_either(&small(number));
        assert!(response.is_whole && !response.is_from_disk, "{number}");
    }
    let response = setup.ask_either(&large(0));
    assert!(response.is_whole && !response.is_from_disk);
    // after eight errors in a row it is left alone, for a while
    let errors = setup.proxy().count(Metric::DiskErrors);
    assert!((8..20).contains(&errors), "{errors}");
    setup.fault(ReadFault::None);
    setup.proxy().wait_for(Metric::DiskFenced, 0);
    setup.store_whole(&small(100));
    for number in 0..20 {
        small(number).check_whole(&setup.hit(&small(number), ""));
    }
}

#[test]
fn hanging_read_blocks_no_request_and_the_origin_answers_instead() {
    let setup = stored(3, 1);
    let known = Representation::new("/in-memory", 1000);
    setup.fetch_whole(&known);
    setup.fault(ReadFault::Hangs(String::new()));
    let (mut waiting, mut other) = (setup.proxy().client(), setup.proxy().client());
    let (what, new) = (large(0), Representation::new("/new", 100_000));
    waiting.send(what.get(""));
    setup.wait_until_a_read_hangs();
    // the one worker there is goes on: what memory has, and what has to be asked for
    known.check_whole(&other.ask(known.get("")));
    // and who waited is answered by the origin
    other.send(new.get(""));
    std::thread::scope(|scope| {
        let (one, another) = (
            scope.spawn(|| waiting.read_response()),
            scope.spawn(|| other.read_response()),
        );
        for _ in 0..2 {
            setup.answer_one_of(&[&what, &new]);
        }
        what.check_whole(&one.join().expect("no panic"));
        new.check_whole(&another.join().expect("no panic"));
    });
    for number in 0..3 {
        let response = setup.ask_either(&small(number));
        assert!(response.is_whole && !response.is_from_disk, "{number}");
    }
    assert_eq!(setup.proxy().count(Metric::StoreCuts), 0);
    setup.fault(ReadFault::None);
    setup.rest();
    let what = Representation::new("/after", 2_000_000);
    setup.store_whole(&what);
    setup.hit_on_disk(&what);
}

#[test]
fn partly_loaded_index_serves_its_entries_and_keeps_later_changes() {
    let mut setup = DiskSetup::faulty(|_| {});
    let old = |number: u64| Representation::new(&format!("/old/{number}"), 2000 + number);
    let new = |number: u64| Representation::new(&format!("/new/{number}"), 2000 + number);
    for number in 0..6 {
        setup.store_whole(&old(number));
    }
    // each start writes into a segment of its own
    setup.restart();
    for number in 0..6 {
        setup.store_whole(&new(number));
    }
    setup.restart_with(ReadFault::Hangs(format!("{:016x}.seg", 1)));
    setup.wait_until_a_read_hangs();
    assert_eq!(setup.proxy().count(Metric::DiskLoading), 1);
    for number in 0..6 {
        setup.hit_on_disk(&new(number));
    }
    // what is not in the index yet is asked for, in its present version, and stored
    let next = old(0).next(3000);
    setup.store_whole(&next);
    setup.store_whole(&old(1));
    // and purged before it is known whether it is there
    setup.proxy().purge("http://a.example/old/2");
    setup.fault(ReadFault::None);
    setup.proxy().wait_for(Metric::DiskLoading, 0);
    for number in 3..6 {
        setup.hit_on_disk(&old(number));
    }
    next.check_whole(&setup.hit(&next, ""));
    setup.store_whole(&old(2).next(10));
    setup.restart();
    setup.hit_on_disk(&next);
    setup.hit_on_disk(&old(2).next(10));
    assert!(is_from_disk(&setup.hit(&old(1), "")));
}

#[test]
fn look_up_that_takes_longer_than_its_wait_is_a_miss() {
    let setup = stored_with(|config| config.disk.lookup_wait = span("10ms"), 1, 0);
    setup.fault(ReadFault::Hangs(String::new()));
    let response = setup.ask_either(&small(0));
    assert!(response.is_whole && !response.is_from_disk);
    setup.fault(ReadFault::None);
}

#[test]
fn look_up_waits_for_a_slow_disk_as_long_as_is_set_and_asks_no_origin() {
    let setup = stored_with(|config| config.disk.lookup_wait = span("5min"), 1, 0);
    setup.fault(ReadFault::Hangs(String::new()));
    let mut client = setup.proxy().client();
    client.send(small(0).get(""));
    setup.wait_until_a_read_hangs();
    std::thread::scope(|scope| {
        let (answers, answer) = mpsc::channel();
        scope.spawn(move || answers.send(client.read_response()));
        // longer than it waits by default
        let none = answer.recv_timeout(Duration::from_secs(1));
        assert!(none.is_err() && !setup.origin.is_touched());
        setup.fault(ReadFault::None);
        let response = answer.recv_timeout(PATIENCE).expect("an answer");
        small(0).check_whole(&response);
        assert!(is_from_disk(&response));
    });
}

#[test]
fn reads_that_wait_for_the_disk_are_in_the_miss_pressure_of_a_node() {
    const READS: u64 = 64;
    let loopback = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut setup = DiskSetup::faulty(move |config| {
        config.listeners.push(Listener {
            address: loopback(0),
            mode: ListenerKind::Peer,
            name: None,
            tls: None,
            http2: None,
            proxy_protocol: Vec::new(),
        });
        config.cluster.node = Some("a".to_owned());
        config.cluster.members = vec![Member {
            name: "a".to_owned(),
            url: "http://127.0.0.1:9".parse().expect("a URL"),
            weight: 100,
            front_end: false,
        }];
    });
    for number in 0..READS {
        setup.store_whole(&small(number));
    }
    setup.restart();
    let pressure = || {
        let cluster = setup.proxy().control().cluster().expect("a cluster");
        let report = cluster.members[0].report;
        report.expect("its own").miss_pressure
    };
    assert_eq!(pressure(), 0);
    setup.fault(ReadFault::Hangs(String::new()));
    let waiting = (0..READS).map(|number| {
        let mut client = setup.proxy().client();
        client.send(small(number).get(""));
        client
    });
    let mut waiting: Vec<_> = waiting.collect();
    setup.wait_until_a_read_hangs();
    let until = Instant::now() + PATIENCE;
    while pressure() == 0 {
        assert!(Instant::now() < until, "no read waits");
    }
    // what waits for the origin counts, too: nothing does yet
    assert!(!setup.origin.is_touched());
    setup.fault(ReadFault::None);
    for (number, client) in (0..).zip(&mut waiting) {
        small(number).check_whole(&client.read_response());
    }
    assert_eq!(pressure(), 0);
}
