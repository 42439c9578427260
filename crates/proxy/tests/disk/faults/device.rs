//! A device that is full, that fails, or that is not there: clients get what they ask for
//! (R06-R08).

use super::setup::DiskSetup;
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
        let mut setup = DiskSetup::simulated(|_| {});
        let (small, large) = (
            Representation::new("/small", 1000),
            Representation::new("/large", 4_000_000),
        );
        setup.store_whole(&Representation::new("/before", 1000));
        setup.files().plan(broken(fault));
        setup.fetch_whole(&small);
        setup.fetch_whole(&large);
        // from memory, or by asking again: whole in any case
        small.check_whole(&setup.hit(&small, ""));
        setup.files().plan(Plan::default());
        setup.kill();
        setup.store_whole(&Representation::new("/after", 1000));
        setup.restart();
        setup.hit_on_disk(&Representation::new("/after", 1000));
    }
}

#[test]
fn failing_disk_read_is_a_miss() {
    let mut setup = DiskSetup::simulated(|_| {});
    let (small, large) = (
        Representation::new("/small", 1000),
        Representation::new("/large", 3_000_000),
    );
    setup.store_whole(&small);
    setup.store_whole(&large);
    setup.restart();
    setup.files().plan(Plan {
        uncached: true,
        ..broken(Fault::Device)
    });
    setup.fetch_whole(&small);
    setup.fetch_whole(&large);
    assert!(setup.proxy().count(Metric::DiskErrors) > 0);
}

#[test]
fn response_outside_the_page_cache_is_a_hit() {
    let mut setup = DiskSetup::simulated(|_| {});
    let (small, large) = (
        Representation::new("/small", 1000),
        Representation::new("/large", 3_000_000),
    );
    setup.store_whole(&small);
    setup.store_whole(&large);
    setup.restart();
    setup.files().plan(Plan {
        uncached: true,
        ..Plan::default()
    });
    setup.hit_on_disk(&small);
    setup.hit_on_disk(&large);
}

#[test]
fn responses_are_whole_whichever_single_disk_operation_fails() {
    for fault in [Fault::Device, Fault::Short, Fault::Interrupted] {
        for nth in 0..24 {
            let mut setup = DiskSetup::simulated(|_| {});
            setup.files().plan(Plan {
                nth: Some((nth, fault)),
                ..Plan::default()
            });
            let (small, large) = (
                Representation::new("/small", 1000),
                Representation::new("/large", 1_500_000),
            );
            setup.fetch_whole(&small);
            setup.fetch_whole(&large);
            setup.kill_then(|files| files.plan(Plan::default()));
            for what in [&small, &large] {
                let mut client = setup.proxy().client();
                client.send(what.get(""));
                std::thread::scope(|scope| {
                    let reading = scope.spawn(|| what.check_whole(&client.read_response()));
                    while !reading.is_finished() {
                        if setup.origin.is_touched() {
                            setup.origin.answer(what.whole());
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
    let setup = DiskSetup::simulated(|_| {});
    let what = Representation::new("/a", 1000);
    setup.store_whole(&what);
    setup.files().plan(broken(Fault::Device));
    let error = setup.proxy().try_purge("http://a.example/a");
    assert!(error.is_err_and(|why| why.contains("durable")));
    assert!(setup.proxy().count(Metric::PurgesNotDurable) > 0);
    // it is in force all the same
    setup.fetch_whole(&what.next(500));
}

/// The request was carried out: its client must learn that, or would send it again. It is
/// counted, and in force for as long as the process runs; whatever comes back from the device
/// before it is emptied is what a kill may bring back.
#[test]
fn response_to_unsafe_method_is_forwarded_without_durable_invalidation() {
    let setup = DiskSetup::simulated(|_| {});
    let what = Representation::new("/a", 1000);
    setup.store_whole(&what);
    setup.files().plan(broken(Fault::Device));
    let mut client = setup.proxy().client();
    client.send("DELETE /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
    setup
        .origin
        .answer("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    assert_eq!(client.read_response().status(), 204);
    assert!(setup.proxy().count(Metric::PurgesNotDurable) > 0);
    setup.fetch_whole(&what.next(500));
    // the device works again: nothing of before is used, and what is stored from then on is
    setup.files().plan(Plan::default());
    setup.proxy().wait_for(Metric::DiskFenced, 0);
    setup.store_whole(&Representation::new("/after", 1000));
    let mut setup = setup;
    setup.kill();
    setup.fetch_whole(&what.next(700));
    setup.hit_on_disk(&Representation::new("/after", 1000));
}

#[test]
fn answer_waits_once_for_all_that_it_invalidates() {
    let setup = DiskSetup::simulated(|_| {});
    let stored = ["/a", "/b", "/c", "/d"].map(|path| Representation::new(path, 1000));
    for what in &stored {
        setup.store_whole(what);
    }
    let [.., second_location] = &stored;
    setup.files().stop();
    let begun = Instant::now();
    let mut client = setup.proxy().client();
    client.send("DELETE /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
    setup.origin.answer(
        "HTTP/1.1 204 No Content\r\nConnection: close\r\nLocation: /b\r\nContent-Location: /c\r\n\
         Location: /d\r\n\r\n",
    );
    assert_eq!(client.read_response().status(), 204);
    // it is 5 s, and would be 15
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(setup.proxy().count(Metric::Invalidated), 3);
    assert_eq!(setup.proxy().count(Metric::PurgesNotDurable), 3);
    setup.hit(second_location, "");
    setup.files().resume();
}
