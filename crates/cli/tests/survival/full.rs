//! A disk that is full (R08): clients get everything from the origin all the same.

use super::Parts;
use crate::support::Weir;
use std::path::Path;
use std::process::Command;

/// A file system of so many bytes on `place`, away when dropped.
struct Small<'a>(&'a Path);

impl<'a> Small<'a> {
    fn mount(place: &'a Path, size: &str) -> Self {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(place)
            .status();
        assert!(
            mounted.is_ok_and(|status| status.success()),
            "a small file system needs root, and mount"
        );
        Self(place)
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn full_disk_cuts_or_stops_what_is_proxied() {
    let parts = Parts::with_size("512MiB");
    let _small = Small::mount(parts.path(), "24m");
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
