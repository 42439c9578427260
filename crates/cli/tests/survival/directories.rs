//! A store of several directories: normally one a device.

use super::{Parts, wait_for_entries, wait_until_loaded};
use crate::support::{Config, Weir};
use std::path::PathBuf;

const TARGETS: usize = 80;

fn target(number: usize) -> String {
    format!("/{number}?size={}", 2000 + number)
}

/// A quarter of the store, and the rest.
fn places(parts: &Parts) -> [PathBuf; 2] {
    ["one", "other"].map(|name| parts.path().join(name))
}

fn config(parts: &Parts) -> Config {
    let [one, other] = places(parts);
    let directories = format!(
        "[{{ path = \"{}\", size = \"64MiB\" }}, {{ path = \"{}\", size = \"192MiB\" }}]",
        one.display(),
        other.display()
    );
    parts.config().set("disk.directories", &directories)
}

#[test]
fn responses_spread_over_directories_by_size_and_one_lost_spares_the_rest() {
    for lost in 0..2 {
        let parts = Parts::new();
        let mut weir = Weir::serve(&config(&parts));
        for number in 0..TARGETS {
            parts.get(&weir, &target(number));
        }
        wait_for_entries(&weir, TARGETS as u64);
        let budget = weir.metrics().count("weir_disk_budget_bytes");
        assert_eq!(budget, 256 << 20);
        assert!(weir.stop().success());
        // both are found again, in whatever order
        let mut weir = Weir::serve(&config(&parts));
        wait_until_loaded(&weir);
        for number in 0..TARGETS {
            assert!(parts.get(&weir, &target(number)).1.is_hit(), "{number}");
        }
        assert!(weir.stop().success());
        std::fs::remove_dir_all(&places(&parts)[lost]).expect("it can be removed");
        let mut weir = Weir::serve(&config(&parts));
        wait_until_loaded(&weir);
        let left = weir.metrics().count("weir_disk_entries");
        // a quarter or three quarters of 80, of either: a test meets that once in its life
        let expected = if lost == 0 { 40..80 } else { 1..40 };
        assert!(expected.contains(&left), "{left} are left without {lost}");
        let mut hits = 0;
        for number in 0..TARGETS {
            hits += u64::from(parts.get(&weir, &target(number)).1.is_hit());
        }
        assert_eq!(hits, left, "what is in the other one is not found");
        wait_for_entries(&weir, TARGETS as u64);
        assert!(weir.stop().success());
        let weir = Weir::serve(&config(&parts));
        wait_until_loaded(&weir);
        for number in 0..TARGETS {
            assert!(parts.get(&weir, &target(number)).1.is_hit(), "{number}");
        }
    }
}
