//! What a process tree has used, read from `/proc`.

use rustix::param::clock_ticks_per_second;
use std::ops::Sub;

/// CPU time of a process tree, threads and ended children included. The kernel rounds to ticks
/// (usually 10 ms).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    pub(crate) user_us: u64,
    pub(crate) system_us: u64,
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

/// User memory of a process tree. Kernel memory (socket buffers) is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) rss_kib: u64,
    /// Pages shared by several processes are divided among them.
    pub(crate) pss_kib: u64,
}

/// A line of `/proc/ID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    is_running: bool,
    parent: u32,
    /// Own and of children that ended and were waited for.
    user_ticks: u64,
    system_ticks: u64,
}

/// `root` and everything that descends from it.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let all: Vec<(u32, Stat)> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|id| Some((id, stat(id)?)))
        .collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(
            all.iter()
                .filter(|(_, stat)| stat.parent == parent)
                .map(|(id, _)| id),
        );
        next += 1;
    }
    found
}

/// Whether a process is there and is no zombie.
pub(crate) fn is_running(id: u32) -> bool {
    stat(id).is_some_and(|stat| stat.is_running)
}

pub(crate) fn cpu_time(root: u32) -> CpuTime {
    let tick_us = 1_000_000 / clock_ticks_per_second();
    let stats = tree(root).into_iter().filter_map(stat);
    stats.fold(CpuTime::default(), |sum, stat| CpuTime {
        user_us: sum.user_us + stat.user_ticks * tick_us,
        system_us: sum.system_us + stat.system_ticks * tick_us,
    })
}

pub(crate) fn memory(root: u32) -> Memory {
    let texts = tree(root)
        .into_iter()
        .filter_map(|id| std::fs::read_to_string(format!("/proc/{id}/smaps_rollup")).ok());
    texts.fold(Memory::default(), |sum, text| Memory {
        rss_kib: sum.rss_kib + kib_of(&text, "Rss:"),
        pss_kib: sum.pss_kib + kib_of(&text, "Pss:"),
    })
}

/// The most memory that one process has had; 0 if it is gone.
pub(crate) fn peak_rss_kib(id: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/status"));
    kib_of(&text.unwrap_or_default(), "VmHWM:")
}

fn stat(id: u32) -> Option<Stat> {
    parse_stat(&std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// Fields are counted as in proc(5); the name of the program (2) may hold anything, so reading
/// begins behind its `)`.
fn parse_stat(line: &str) -> Option<Stat> {
    let (_, rest) = line.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let ticks = |number: usize| field(number).and_then(|text| text.parse::<u64>().ok());
    Some(Stat {
        is_running: !matches!(field(3)?, "Z" | "X"),
        parent: field(4)?.parse().ok()?,
        user_ticks: ticks(14)? + ticks(16)?,
        system_ticks: ticks(15)? + ticks(17)?,
    })
}

fn kib_of(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_name_with_brackets_does_not_shift_stat_fields() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194560 100 0 0 0 11 22 33 44 20 0 1 0 5 1 1";
        let expected = Stat {
            is_running: true,
            parent: 7,
            user_ticks: 44,
            system_ticks: 66,
        };
        assert_eq!(parse_stat(line), Some(expected));
        let zombie = line.replace(" S ", " Z ");
        assert_eq!(parse_stat(&zombie).map(|stat| stat.is_running), Some(false));
    }

    #[test]
    fn memory_field_is_matched_by_its_whole_name() {
        let text = "Rss:                1760 kB\nPss_Dirty:           108 kB\nPss:                 365 kB\n";
        assert_eq!(
            (
                kib_of(text, "Rss:"),
                kib_of(text, "Pss:"),
                kib_of(text, "Swap:")
            ),
            (1760, 365, 0)
        );
    }

    #[test]
    fn current_process_is_in_its_own_tree_and_uses_memory() {
        let id = std::process::id();
        assert!(tree(id).contains(&id) && is_running(id));
        assert!(memory(id).rss_kib > 0);
        assert!(peak_rss_kib(id) >= 1000, "{}", peak_rss_kib(id));
    }
}
