//! Damage to what is on disk (R01 to R05): no wrong byte leaves, and each damaged response is
//! fetched once.

use super::{Parts, wait_for_entries, wait_until_loaded};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

const TARGETS: usize = 100;

fn target(number: usize) -> String {
    format!("/{number}?size={}", 1000 + number * number * 50)
}

/// Stores responses, ends the process in good order, damages what it left, and reads everything
/// again, twice.
fn check(parts: &Parts, damage: impl Fn(&Path)) {
    let mut weir = parts.serve();
    for number in 0..TARGETS {
        parts.get(&weir, &target(number));
    }
    wait_for_entries(&weir, TARGETS as u64);
    assert!(weir.stop().success());
    for segment in segments(parts.path()) {
        damage(&segment);
    }
    let weir = parts.serve();
    wait_until_loaded(&weir);
    for number in 0..TARGETS {
        parts.get(&weir, &target(number));
    }
    // the last one is stored behind its response
    wait_for_entries(&weir, TARGETS as u64);
    for number in 0..TARGETS {
        let (_, reply) = parts.get(&weir, &target(number));
        assert!(reply.is_hit(), "{number}: {}", reply.head);
        let asked = parts.origin.asked(&target(number));
        assert!(asked <= 2, "{number} was fetched {asked} times");
    }
}

pub(super) fn segments(place: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place).expect("the store").flatten();
    let mut segments: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "seg"))
        .collect();
    segments.sort();
    assert!(
        !segments.is_empty(),
        "nothing is stored in {}",
        place.display()
    );
    segments
}

pub(super) fn length(segment: &Path) -> u64 {
    segment.metadata().expect("a file").len()
}

pub(super) fn overwrite(segment: &Path, at: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(segment);
    file.and_then(|file| file.write_all_at(bytes, at))
        .expect("it can be damaged");
}

pub(super) fn read(segment: &Path, at: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    let file = std::fs::File::open(segment).expect("a file");
    let count = file.read_at(&mut bytes, at).expect("it can be read");
    bytes.truncate(count);
    bytes
}

#[test]
fn response_with_flipped_bits_is_fetched_again_not_served() {
    let parts = Parts::new();
    check(&parts, |segment| {
        // about one in each response, in heads, contents, tables
        for at in (0..length(segment)).step_by(5003) {
            let byte = read(segment, at, 1);
            overwrite(segment, at, &[byte[0] ^ 0x10]);
        }
    });
}

#[test]
fn response_in_a_truncated_segment_is_fetched_again_not_served() {
    let parts = Parts::new();
    check(&parts, |segment| {
        let file = OpenOptions::new().write(true).open(segment);
        let cut = file.and_then(|file| file.set_len(length(segment) / 2));
        cut.expect("it can be cut");
    });
}

#[test]
fn response_overwritten_with_zeros_is_fetched_again_not_served() {
    let parts = Parts::new();
    check(&parts, |segment| {
        for at in (4096..length(segment)).step_by(64 * 1024) {
            overwrite(segment, at, &[0; 4096]);
        }
    });
}

#[test]
fn response_with_swapped_pages_is_fetched_again_not_served() {
    let parts = Parts::new();
    check(&parts, |segment| {
        let length = length(segment);
        for at in (4096..length / 2).step_by(40_960) {
            let (one, other) = (at, at + length / 4 / 4096 * 4096);
            let (first, second) = (read(segment, one, 4096), read(segment, other, 4096));
            if second.len() == 4096 {
                overwrite(segment, one, &second);
                overwrite(segment, other, &first);
            }
        }
    });
}

#[test]
fn corruption_under_a_running_proxy_is_detected_with_verify_always() {
    let parts = Parts::new();
    let weir = crate::support::Weir::serve(&parts.config().set("disk.verify", "\"always\""));
    let large = "/large?size=6000000";
    parts.get(&weir, large);
    wait_for_entries(&weir, 1);
    for segment in segments(parts.path()) {
        let at = length(&segment).min(4_000_000) / 2;
        let byte = read(&segment, at, 1);
        overwrite(&segment, at, &[byte[0] ^ 1]);
    }
    // cut honestly if it had begun, and fetched again the next time
    let mut client = crate::support::RawClient::connect(weir.address());
    client.send(super::request("GET", large));
    if let Ok(reply) = client.try_reply() {
        super::truth::check(large, &reply);
    }
    parts.get(&weir, large);
    let damaged = weir.metrics().count("weir_disk_damaged_total");
    assert!(damaged >= 1, "{damaged}");
}
