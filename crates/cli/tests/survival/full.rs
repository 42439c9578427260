//! A disk that is full (R08): clients get everything from the origin all the same.

use super::Parts;
use super::mount::Mount;
use crate::support::Weir;

#[test]
fn full_disk_cuts_or_stops_what_is_proxied() {
    let parts = Parts::with_size("512MiB");
    let _small = Mount::memory(parts.path(), "24m");
    let weir = parts.serve();
    let target = |number: u32| format!("/{number}?size={}", 3_000_000 + number);
    for number in 0..20 {
        parts.get(&weir, &target(number));
    }
    assert_says_so(&weir);
    // what is small still fits memory
    for _ in 0..2 {
        parts.get(&weir, "/small?size=100");
    }
    assert_eq!(parts.origin.asked("/small?size=100"), 1);
}

fn assert_says_so(weir: &Weir) {
    weir.until("was it counted that the disk is full", |metrics| {
        metrics.disk_refusals() > 0
    });
}

/// The journal needs room as well: segments are given up for it.
#[test]
fn full_disk_makes_a_purge_fail_or_keeps_what_was_purged() {
    let parts = Parts::with_size("512MiB");
    let small = Mount::memory(parts.path(), "24m");
    let mut weir = parts.serve();
    let target = |number: u32| format!("/{number}?size={}", 500_000 + number);
    for number in 0..100 {
        parts.get(&weir, &target(number));
    }
    assert_says_so(&weir);
    let versions: Vec<u64> = (0..100)
        .map(|number| {
            let version = parts.origin.change(&target(number));
            let url = format!("http://{}{}", super::HOST, target(number));
            weir.ask("POST", &format!("/purge?url={url}")).expect(200);
            version
        })
        .collect();
    assert!(weir.stop().success());
    let weir = parts.serve();
    super::wait_until_loaded(&weir);
    for (number, version) in (0..100).zip(versions) {
        assert_eq!(parts.get(&weir, &target(number)).0, version);
    }
    drop(weir);
    drop(small);
}
