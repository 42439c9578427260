//! Child processes: where they run, what they use, and how they end.

pub(crate) mod affinity;
pub(crate) mod cgroup;
pub(crate) mod guarded;
pub(crate) mod ioctl;
pub(crate) mod usage;

use tempfile::TempDir;
use xtask::failure::{During, Failure};

/// A directory where processes keep their files while they run; it is removed at the end.
pub(crate) fn workplace(benchmark: &str) -> Result<TempDir, Failure> {
    let name = format!("weir-{benchmark}-");
    let made = tempfile::Builder::new().prefix(&name).tempdir();
    made.during("make a temporary directory")
}
