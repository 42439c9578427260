//! What the proxy used, second by second: the columns of `iostat` and `vmstat` that the Wisconsin
//! Proxy Benchmark's tables were made from.

use serde::{Deserialize, Serialize};

/// One second of the proxy's process tree, and of the machine it runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageSecond {
    /// Its end, seconds since the common start.
    pub at_s: f64,
    /// Processes in the tree.
    pub processes: u32,
    /// CPU time used, user and system, as a share of one core: 2.0 is two cores busy.
    pub cpu_share: f64,
    /// Memory held by the tree, bytes. What processes share is counted once for each of them.
    pub rss_bytes: u64,
    /// Bytes that it made disks read in this second.
    pub read_bytes: u64,
    /// Bytes that it sent to disks in this second.
    pub written_bytes: u64,
    /// CPU time of the whole machine that was not idle, as a share of all cores: 0..1.
    pub machine_cpu_share: f64,
    /// Of the whole machine's CPU time, what was idle and waited for a disk: 0..1.
    pub machine_wait_share: f64,
    /// Bytes that all disks of the machine read in this second.
    pub disk_read_bytes: u64,
    /// Bytes that were written to all disks of the machine in this second.
    pub disk_written_bytes: u64,
    /// The share of this second in which the busiest disk had something to do: 0..1. `None` where
    /// the kernel does not report it.
    pub disk_busy_share: Option<f64>,
}
