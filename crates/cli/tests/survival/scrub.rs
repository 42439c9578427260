//! What is verified in the background, live: damage is found before a request needs it, at the rate
//! that was wanted.

use super::damage::{length, overwrite, read, segments};
use super::{Parts, wait_for_entries, wait_until_loaded};
use crate::support::Weir;
use std::time::Instant;

const TARGETS: usize = 20;

fn store(parts: &Parts, size: usize) {
    let mut weir = parts.serve();
    for number in 0..TARGETS {
        parts.get(&weir, &format!("/{number}?size={size}"));
    }
    wait_for_entries(&weir, TARGETS as u64);
    // seals the segment
    assert!(weir.stop().success());
}

#[test]
fn scrub_finds_corrupt_responses_before_they_are_requested() {
    const SIZE: usize = 100_000;
    let parts = Parts::new();
    store(&parts, SIZE);
    let mut weir = Weir::serve(&parts.config().set("disk.scrub", "\"100MiB\""));
    wait_until_loaded(&weir);
    weir.until("was it scrubbed", |metrics| {
        metrics.count("weir_disk_scrubbed_bytes_total") > (TARGETS * SIZE) as u64
    });
    assert_eq!(weir.metrics().count("weir_disk_damaged_total"), 0);
    let sealed = segments(parts.path()).remove(0);
    // in each content, heads and paddings being small
    for at in (4096 + 50_000..length(&sealed)).step_by(SIZE) {
        let byte = read(&sealed, at, 1);
        overwrite(&sealed, at, &[byte[0] ^ 0x10]);
    }
    weir.until("was the damage found", |metrics| {
        metrics.count("weir_disk_damaged_total") >= TARGETS as u64
            && metrics.count("weir_disk_entries") == 0
    });
    let line = weir.wait_for("damaged bytes in");
    assert!(line.contains(&sealed.display().to_string()), "{line}");
    for number in 0..TARGETS {
        let target = format!("/{number}?size={SIZE}");
        parts.get(&weir, &target);
        assert_eq!(parts.origin.asked(&target), 2);
    }
}

#[test]
fn scrub_reads_no_faster_than_its_rate() {
    const SIZE: usize = 9000;
    // 10 KiB a record with its head, and one may be read before the first rest
    const RECORD: u64 = 10 << 10;
    const RATE: u64 = 4 << 10;
    let parts = Parts::new();
    store(&parts, SIZE);
    let begun = Instant::now();
    let weir = Weir::serve(&parts.config().set("disk.scrub", "\"4KiB\""));
    for round in 0..30 {
        let scrubbed = weir.until("was anything scrubbed", |metrics| {
            metrics.count("weir_disk_scrubbed_bytes_total") > 0
        });
        let scrubbed = scrubbed.count("weir_disk_scrubbed_bytes_total");
        // taken after the count: however slow this machine is, it is no excuse
        let most = RECORD + RATE * (begun.elapsed().as_secs() + 1);
        assert!(scrubbed <= most, "{scrubbed} of at most {most}");
        parts.get(&weir, &format!("/{}?size={SIZE}", round % TARGETS));
    }
}
