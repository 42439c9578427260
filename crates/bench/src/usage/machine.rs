//! Processors and disks of the whole machine.

use std::fs;
use std::path::Path;
use weir_measure::float;

/// The machine's counters at one moment; only differences mean something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Machine {
    cpu: Cpu,
    disks: Vec<Disk>,
}

/// The first line of `/proc/stat`, ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cpu {
    all: u64,
    idle: u64,
    waiting: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Disk {
    name: String,
    read_bytes: u64,
    written_bytes: u64,
    busy_ms: u64,
}

/// The use of the machine between two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Interval {
    pub(super) cpu_share: f64,
    pub(super) wait_share: f64,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    /// `None` without a disk.
    pub(super) busy_share: Option<f64>,
}

/// The unit of sectors in `/proc/diskstats`, whatever the disk's own is.
const SECTOR_BYTES: u64 = 512;

impl Machine {
    /// Looks at it now. What cannot be read counts as nothing.
    pub(super) fn look() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let disks = fs::read_to_string("/proc/diskstats").unwrap_or_default();
        // a device has a driver below it; loops, memory disks and mappings, which would count
        // twice, have none
        let is_device = |name: &str| Path::new("/sys/block").join(name).join("device").exists();
        Self::parse(&stat, &disks, is_device)
    }

    fn parse(stat: &str, disks: &str, is_device: impl Fn(&str) -> bool) -> Self {
        let cpu = Cpu::parse(stat).unwrap_or_default();
        let disks = disks.lines().filter_map(Disk::parse);
        Self {
            cpu,
            disks: disks.filter(|disk| is_device(&disk.name)).collect(),
        }
    }

    /// The use since `before`, `seconds` ago.
    pub(super) fn since(&self, before: &Self, seconds: f64) -> Interval {
        let all = self.cpu.all.saturating_sub(before.cpu.all);
        let share = |ticks: u64| {
            if all == 0 {
                0.0
            } else {
                (float(ticks) / float(all)).min(1.0)
            }
        };
        let idle = self.cpu.idle.saturating_sub(before.cpu.idle);
        let waiting = self.cpu.waiting.saturating_sub(before.cpu.waiting);
        let mut interval = Interval {
            cpu_share: share(all.saturating_sub(idle + waiting)),
            wait_share: share(waiting),
            ..Interval::default()
        };
        for disk in &self.disks {
            let Some(old) = before.disks.iter().find(|old| old.name == disk.name) else {
                continue;
            };
            interval.read_bytes += disk.read_bytes.saturating_sub(old.read_bytes);
            interval.written_bytes += disk.written_bytes.saturating_sub(old.written_bytes);
            let busy = float(disk.busy_ms.saturating_sub(old.busy_ms)) / 1000.0 / seconds;
            let busiest = interval.busy_share.unwrap_or(0.0);
            interval.busy_share = Some(busy.clamp(busiest, 1.0));
        }
        interval
    }
}

impl Cpu {
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line
            .split_whitespace()
            .filter_map(|ticks| ticks.parse().ok())
            .collect();
        // user nice system idle iowait irq softirq steal; guests are in user already
        Some(Self {
            all: ticks.iter().take(8).sum(),
            idle: *ticks.get(3)?,
            waiting: *ticks.get(4)?,
        })
    }
}

impl Disk {
    /// A line of `/proc/diskstats`: two numbers of the device, its name, and eleven or more
    /// counters.
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |word: usize| words.get(word)?.parse::<u64>().ok();
        Some(Self {
            name: (*words.get(2)?).to_owned(),
            read_bytes: SECTOR_BYTES * number(5)?,
            written_bytes: SECTOR_BYTES * number(9)?,
            busy_ms: number(12)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 1 1 1 1\n";
    const LATER_STAT: &str = "cpu  150 0 120 720 110 0 0 0 0 0\n";
    const DISKS: &str = "   7 0 loop0 87 0 1382 6 33 15 84 23 0 24 53\n 254 0 vda 10 0 100 9 10 0 200 26 0 1000 125\n";
    const LATER_DISKS: &str = "   7 0 loop0 99 0 9999 6 33 15 999 23 0 99 53\n 254 0 vda 10 0 102 9 10 0 210 26 0 1250 125\n";

    #[test]
    fn loop_device_is_excluded_from_disk_usage() {
        let is_device = |name: &str| name == "vda";
        let before = Machine::parse(STAT, DISKS, is_device);
        let after = Machine::parse(LATER_STAT, LATER_DISKS, is_device);
        let interval = after.since(&before, 1.0);
        assert!((interval.cpu_share - 0.7).abs() < 1e-9, "{interval:?}");
        assert!((interval.wait_share - 0.1).abs() < 1e-9, "{interval:?}");
        assert_eq!((interval.read_bytes, interval.written_bytes), (1024, 5120));
        assert_eq!(interval.busy_share, Some(0.25));
    }

    #[test]
    fn empty_proc_files_yield_zero_machine_usage() {
        let nothing = Machine::parse("", "", |_| true);
        let interval = nothing.since(&nothing.clone(), 1.0);
        assert_eq!(interval, Interval::default());
    }
}
