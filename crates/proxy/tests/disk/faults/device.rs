//! A device that is full, that fails, or that is not there: clients get what they ask for
//! (R06-R08).

use super::depot::Depot;
use crate::support::Representation;
use std::time::{Duration, Instant};
use weir_disk::files::simulated::{Fault, Plan};
use weir_measure::Metric;

fn broken(fault: Fault) -> Plan {
    Plan {
        nth: Some((0, fault)),
        lasting: true,
        ..Plan::default()
    }
}

#[test]
fn responses_are_whole_while_writes_to_the_device_fail() {
    for fault in [Fault::Device, Fault::NoSpace, Fault::Torn] {
        let mut depot = Depot::simulated(|_| {});
        let (small, large) = (
            Representation::new("/small", 1000),
            Representation::new("/large", 4_000_000),
        );
        depot.store_whole(&Representation::new("/before", 1000));
        depot.files().plan(broken(fault));
        depot.fetch_whole(&small);
        depot.fetch_whole(&large);
        // from memory, or by asking again: whole in any case
        small.check_whole(&depot.hit(&small, ""));
        depot.files().plan(Plan::default());
        depot.kill();
        depot.store_whole(&Representation::new("/after", 1000));
        depot.restart();
        depot.hit_on_disk(&Representation::new("/after", 1000));
    }
}

#[test]
fn failing_disk_read_is_a_miss() {
    let mut depot = Depot::simulated(|_| {});
    let (small, large) = (
        Representation::new("/small", 1000),
        Representation::new("/large", 3_000_000),
    );
    depot.store_whole(&small);
    depot.store_whole(&large);
    depot.restart();
    depot.files().plan(Plan {
        uncached: true,
        ..broken(Fault::Device)
    });
    depot.fetch_whole(&small);
    depot.fetch_whole(&large);
    assert!(depot.proxy().count(Metric::DiskErrors) > 0);
}

#[test]
fn response_outside_the_page_cache_is_a_hit() {
    let mut depot = Depot::simulated(|_| {});
    let (small, large) = (
        Representation::new("/small", 1000),
        Representation::new("/large", 3_000_000),
    );
    depot.store_whole(&small);
    depot.store_whole(&large);
    depot.restart();
    depot.files().plan(Plan {
        uncached: true,
        ..Plan::default()
    });
    depot.hit_on_disk(&small);
    depot.hit_on_disk(&large);
}

#[test]
fn responses_are_whole_whichever_single_disk_operation_fails() {
    for fault in [Fault::Device, Fault::Short, Fault::Interrupted] {
        for nth in 0..24 {
            let mut depot = Depot::simulated(|_| {});
            depot.files().plan(Plan {
                nth: Some((nth, fault)),
                ..Plan::default()
            });
            let (small, large) = (
                Representation::new("/small", 1000),
                Representation::new("/large", 1_500_000),
            );
            depot.fetch_whole(&small);
            depot.fetch_whole(&large);
            depot.kill_then(|files| files.plan(Plan::default()));
            for what in [&small, &large] {
                let mut client = depot.proxy().client();
                client.send(what.get(""));
                std::thread::scope(|scope| {
                    let reading = scope.spawn(|| what.check_whole(&client.read_response()));
                    while !reading.is_finished() {
                        if depot.origin.is_touched() {
                            depot.origin.answer(what.whole());
                        }
                        std::thread::yield_now();
                    }
                });
            }
        }
    }
}

#[test]
fn purge_that_is_not_durable_is_reported_and_in_force() {
    let depot = Depot::simulated(|_| {});
    let what = Representation::new("/a", 1000);
    depot.store_whole(&what);
    depot.files().plan(broken(Fault::Device));
    let error = depot.proxy().try_purge("http://a.example/a");
    assert!(error.is_err_and(|why| why.contains("durable")));
    assert!(depot.proxy().count(Metric::PurgesNotDurable) > 0);
    // it is in force all the same
    depot.fetch_whole(&what.next(500));
}

/// The request was carried out: whoever sent it must hear so, or would send it again. It is
/// counted, and in force for as long as the process runs; whatever comes back from the device
/// before it is emptied is what a kill may bring back.
#[test]
fn response_to_unsafe_method_is_forwarded_without_durable_invalidation() {
    let depot = Depot::simulated(|_| {});
    let what = Representation::new("/a", 1000);
    depot.store_whole(&what);
    depot.files().plan(broken(Fault::Device));
    let mut client = depot.proxy().client();
    client.send("DELETE /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
    depot
        .origin
        .answer("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    assert_eq!(client.read_response().status(), 204);
    assert!(depot.proxy().count(Metric::PurgesNotDurable) > 0);
    depot.fetch_whole(&what.next(500));
    // the device works again: nothing of before is used, and what is stored from then on is
    depot.files().plan(Plan::default());
    depot.proxy().wait_for(Metric::DiskFenced, 0);
    depot.store_whole(&Representation::new("/after", 1000));
    let mut depot = depot;
    depot.kill();
    depot.fetch_whole(&what.next(700));
    depot.hit_on_disk(&Representation::new("/after", 1000));
}

#[test]
fn answer_waits_once_for_all_that_it_invalidates() {
    let depot = Depot::simulated(|_| {});
    let stored = ["/a", "/b", "/c", "/d"].map(|path| Representation::new(path, 1000));
    for what in &stored {
        depot.store_whole(what);
    }
    let [.., second_location] = &stored;
    depot.files().stop();
    let begun = Instant::now();
    let mut client = depot.proxy().client();
    client.send("DELETE /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
    depot.origin.answer(
        "HTTP/1.1 204 No Content\r\nConnection: close\r\nLocation: /b\r\nContent-Location: /c\r\n\
         Location: /d\r\n\r\n",
    );
    assert_eq!(client.read_response().status(), 204);
    // it is 5 s, and would be 15
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(depot.proxy().count(Metric::Invalidated), 3);
    assert_eq!(depot.proxy().count(Metric::PurgesNotDurable), 3);
    depot.hit(second_location, "");
    depot.files().resume();
}
