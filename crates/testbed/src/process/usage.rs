//! What a process tree has used, read from `/proc`.

use rustix::fs::{major, minor};
use serde::{Deserialize, Serialize};
use std::fs;
use std::ops::Sub;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use weir_bench::usage::{TICKS_PER_S, named_numbers, process_tree, stat_of};
use xtask::failure::{During, Failure};

/// CPU time of a process tree, threads and ended children included. The kernel rounds to ticks
/// (usually 10 ms).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    pub(crate) user_us: u64,
    pub(crate) system_us: u64,
}

impl CpuTime {
    pub(crate) fn sum_us(self) -> u64 {
        self.user_us + self.system_us
    }
}

impl Sub for CpuTime {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            user_us: self.user_us.saturating_sub(earlier.user_us),
            system_us: self.system_us.saturating_sub(earlier.system_us),
        }
    }
}

/// CPU time of the whole machine until one moment, microseconds: of all processes, and of the
/// kernel. Where this is a guest, it is what the guest sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MachineTime {
    /// All but idle cores and cores that wait for disks.
    pub(crate) busy_us: u64,
    /// Of that, in softirq: packets that arrive and are forwarded, of all senders.
    pub(crate) softirq_us: u64,
}

impl MachineTime {
    /// Until now.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read.
    pub(crate) fn now() -> Result<Self, Failure> {
        let stat = fs::read_to_string("/proc/stat").during("read `/proc/stat`")?;
        let time = Self::parse(&stat);
        time.ok_or_else(|| Failure::Outside("`/proc/stat` is not understood".to_owned()))
    }

    /// The first line: user nice system idle iowait irq softirq steal, in ticks.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks = line.split_whitespace().map(str::parse);
        let ticks: Vec<u64> = ticks.collect::<Result<_, _>>().ok()?;
        let [user, nice, system, _, _, irq, softirq, ..] = ticks[..] else {
            return None;
        };
        Some(Self {
            busy_us: micros(user + nice + system + irq + softirq),
            softirq_us: micros(softirq),
        })
    }

    /// The time since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            busy_us: self.busy_us.saturating_sub(earlier.busy_us),
            softirq_us: self.softirq_us.saturating_sub(earlier.softirq_us),
        }
    }
}

/// User memory of a process tree. Kernel memory (socket buffers) is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) rss_kib: u64,
    /// Pages shared by several processes are divided among them.
    pub(crate) pss_kib: u64,
}

/// Memory of a process tree that no file has, each page once: heap, stacks, and what was written of
/// mapped files. Code is not in it, which the kernel can drop and read again.
pub(crate) fn anonymous_kib(root: u32) -> u64 {
    sum(root, "smaps_rollup", "Pss_Anon")
}

/// Bytes read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Traffic {
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
}

impl Sub for Traffic {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
        }
    }
}

/// `root` and everything that descends from it.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    process_tree(root).into_iter().map(|(id, _)| id).collect()
}

/// Whether a process is there and is no zombie.
pub(crate) fn is_running(id: u32) -> bool {
    stat_of(id).is_some_and(|stat| stat.is_running)
}

pub(crate) fn cpu_time(root: u32) -> CpuTime {
    let tree = process_tree(root).into_iter();
    tree.fold(CpuTime::default(), |sum, (_, stat)| {
        let system_ticks = stat.own_ticks + stat.children_ticks - stat.user_ticks;
        CpuTime {
            user_us: sum.user_us + micros(stat.user_ticks),
            system_us: sum.system_us + micros(system_ticks),
        }
    })
}

/// CPU time of all children of this process that have ended and were waited for.
pub(crate) fn ended_children_us() -> u64 {
    stat_of(std::process::id()).map_or(0, |stat| micros(stat.children_ticks))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "ticks are some hundreds a second"
)]
fn micros(ticks: u64) -> u64 {
    ticks * (1_000_000 / TICKS_PER_S as u64)
}

pub(crate) fn memory(root: u32) -> Memory {
    Memory {
        rss_kib: sum(root, "smaps_rollup", "Rss"),
        pss_kib: sum(root, "smaps_rollup", "Pss"),
    }
}

/// What a process tree caused the storage layer to read and write (`/proc/ID/io`, see proc(5)):
/// pages that were in the page cache are not read; a page is written once however often it is
/// dirtied before it goes out.
pub(crate) fn traffic(root: u32) -> Traffic {
    Traffic {
        read_bytes: sum(root, "io", "read_bytes"),
        written_bytes: sum(root, "io", "write_bytes"),
    }
}

/// What the device of `path` has read and written, for all processes. `None` where it is no block
/// device.
pub(crate) fn device_traffic(path: &Path) -> Option<Traffic> {
    let device = fs::metadata(path).ok()?.dev();
    let stat = format!("/sys/dev/block/{}:{}/stat", major(device), minor(device));
    parse_device(&fs::read_to_string(stat).ok()?)
}

/// Sectors of 512 bytes: the third and the seventh number.
fn parse_device(text: &str) -> Option<Traffic> {
    let sectors = |place| text.split_whitespace().nth(place)?.parse::<u64>().ok();
    Some(Traffic {
        read_bytes: sectors(2)? * 512,
        written_bytes: sectors(6)? * 512,
    })
}

/// The most memory that one process has had; 0 if it has ended.
pub(crate) fn peak_rss_kib(id: u32) -> u64 {
    number(id, "status", "VmHWM")
}

/// The sum of a number of `/proc/ID/FILE` over a process tree.
fn sum(root: u32, file: &str, name: &str) -> u64 {
    let tree = tree(root).into_iter();
    tree.map(|id| number(id, file, name)).sum()
}

fn number(id: u32, file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{id}/{file}")).unwrap_or_default();
    named_numbers(&text).get(name).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_process_is_in_its_own_tree_and_uses_memory() {
        let id = std::process::id();
        assert!(tree(id).contains(&id) && is_running(id));
        assert!(memory(id).rss_kib > 0 && memory(id).pss_kib > 0);
        assert!((1..=memory(id).pss_kib).contains(&anonymous_kib(id)));
        assert!(peak_rss_kib(id) >= 1000, "{}", peak_rss_kib(id));
    }

    #[test]
    fn machine_is_busy_but_for_idle_cores_and_those_that_wait_for_disks() {
        let tick_us = micros(1);
        let stat = "cpu  1 2 4 1000 1000 8 16 1000 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        let time = MachineTime::parse(stat).expect("a line");
        assert_eq!(time.busy_us, 31 * tick_us);
        assert_eq!(time.softirq_us, 16 * tick_us);
        assert_eq!(MachineTime::parse("cpu  1 2"), None);
    }

    #[test]
    fn device_traffic_is_read_in_sectors_of_512_bytes() {
        let expected = Traffic {
            read_bytes: 12 * 512,
            written_bytes: 22 * 512,
        };
        let stat = "  10 11 12 13 20 21 22 23 0 5 6";
        assert_eq!(parse_device(stat), Some(expected));
    }
}
