//! A device that stands still, can only be read, or has lost everything (R06, R09, R10): what
//! clients get is right and whole, and the proxy says so. The kernel's own faults; reads that hang,
//! and single bad sectors, are with the proxy's tests, as they need a device mapper that few
//! kernels have.

use super::mount::{Device, Mount};
use super::owner::refusal;
use super::{Parts, wait_for_entries, wait_until_loaded};
use crate::support::{Config, RawClient, Weir};
use std::path::Path;

/// The parts' configuration, with the store at these places.
fn config(parts: &Parts, places: &[&Path]) -> Config {
    let directories = places.iter().map(|place| {
        let path = place.join("store");
        format!("{{ path = \"{}\", size = \"64MiB\" }}", path.display())
    });
    let directories: Vec<String> = directories.collect();
    let directories = format!("[{}]", directories.join(", "));
    parts.config().set("disk.directories", &directories)
}

fn small(number: usize) -> String {
    format!("/small/{number}?size={}", 2000 + number)
}

fn large(number: usize) -> String {
    format!("/large/{number}?size={}", 3_000_000 + number)
}

/// Stores some, small ones first.
fn store(parts: &Parts, weir: &Weir, small_ones: usize, large_ones: usize) {
    for target in (0..small_ones).map(small).chain((0..large_ones).map(large)) {
        parts.get(weir, &target);
    }
    wait_for_entries(weir, (small_ones + large_ones) as u64);
}

#[test]
fn frozen_device_does_not_block_requests_and_fails_a_durable_purge() {
    let parts = Parts::new();
    let device = Device::new();
    let weir = Weir::serve(&config(&parts, &[&device.place()]));
    store(&parts, &weir, 10, 2);
    let frozen = device.freeze();
    // an operator is not kept waiting either, and told
    let purge = format!(
        "POST /purge?url=http://{}{} HTTP/1.1",
        super::HOST,
        small(9)
    );
    let mut operator = RawClient::connect(weir.admin);
    operator.send(format!("{purge}\r\nHost: 127.0.0.1\r\n\r\n"));
    // more than the 32 MiB that may wait for the device
    for number in 10..25 {
        parts.get(&weir, &large(number));
    }
    weir.until("was it counted that the disk is busy", |metrics| {
        metrics.disk_refusals() > 0
    });
    for number in 0..9 {
        assert!(parts.get(&weir, &small(number)).1.is_hit());
    }
    for number in 0..2 {
        assert!(parts.get(&weir, &large(number)).1.is_hit());
    }
    let refused = operator.reply().expect(500);
    assert!(refused.text().contains("durable"), "{}", refused.text());
    assert!(!parts.get(&weir, &small(9)).1.is_hit());
    drop(frozen);
    weir.until("was written what waited", |metrics| {
        metrics.count("weir_disk_queued_bytes") == 0
    });
    let after = "/after?size=2000000";
    let before = weir.metrics().count("weir_disk_stored_total");
    parts.get(&weir, after);
    weir.until("was it stored again", |metrics| {
        metrics.count("weir_disk_stored_total") > before
    });
    assert!(parts.get(&weir, after).1.is_hit());
    drop(weir);
}

#[test]
fn failed_device_loses_only_its_own_responses() {
    let parts = Parts::new();
    let device = Device::new();
    let config = config(&parts, &[&device.place(), parts.path()]);
    let mut weir = Weir::serve(&config);
    store(&parts, &weir, 60, 4);
    assert!(weir.stop().success());
    device.forget();
    let mut weir = Weir::serve(&config);
    wait_until_loaded(&weir);
    device.lose();
    let mut hits = 0;
    for target in (0..60).map(small).chain((0..4).map(large)) {
        hits += u64::from(parts.get(&weir, &target).1.is_hit());
    }
    assert!((1..60).contains(&hits), "{hits}");
    assert!(weir.metrics().count("weir_disk_errors_total") > 0);
    let line = weir.wait_for("failed to");
    assert!(
        line.contains(&device.place().display().to_string()),
        "{line}"
    );
    for number in 0..60 {
        assert!(parts.get(&weir, &small(number)).1.is_hit(), "{number}");
    }
    for target in (0..60).map(small).chain((0..4).map(large)) {
        let asked = parts.origin.asked(&target);
        assert!(asked <= 2, "{target} was fetched {asked} times");
    }
    drop(weir);
}

#[test]
fn file_system_turned_read_only_fails_purges_but_no_client_request() {
    let parts = Parts::new();
    let device = Device::new();
    let mut weir = Weir::serve(&config(&parts, &[&device.place()]));
    store(&parts, &weir, 10, 2);
    device.forbid_writing();
    for number in 2..6 {
        parts.get(&weir, &large(number));
    }
    let line = weir.wait_for("failed to");
    assert!(
        line.contains(&device.place().display().to_string()),
        "{line}"
    );
    // from memory or disk, or asked for again while the directory rests: right in any case
    for target in (0..10).map(small).chain((0..6).map(large)) {
        parts.get(&weir, &target);
    }
    let purge = format!("/purge?url=http://{}{}", super::HOST, small(0));
    let refused = weir.ask("POST", &purge);
    assert!(refused.status() >= 500, "{}", refused.text());
    assert!(refused.text().contains("durable"), "{}", refused.text());
    assert!(!parts.get(&weir, &small(0)).1.is_hit());
    drop(weir);
}

#[test]
fn store_on_a_read_only_file_system_is_refused_with_path_and_cause() {
    let parts = Parts::new();
    let mount = Mount::memory(parts.path(), "512m");
    let mut weir = parts.serve();
    parts.get(&weir, &small(0));
    wait_for_entries(&weir, 1);
    assert!(weir.stop().success());
    mount.forbid_writing();
    let said = refusal(&parts.config());
    let path = parts.path().display().to_string();
    for part in [path.as_str(), "Read-only file system", "mount the file"] {
        assert!(said.contains(part), "`{part}` is not in: {said}");
    }
    drop(mount);
}
