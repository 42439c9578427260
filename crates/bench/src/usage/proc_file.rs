//! Files of `/proc` as numbers.

use std::collections::HashMap;

/// The unit of CPU times in `/proc`, a second's share: `USER_HZ`, which is 100 on every
/// architecture that Linux supports today but for Alpha.
pub const TICKS_PER_S: f64 = 100.0;

/// The numbers of `/proc/PID/stat` that we use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// It is there and has not ended: one that its parent has not waited for yet has the state Z.
    pub is_running: bool,
    /// The process that started it, or took it over.
    pub parent: u32,
    /// CPU time of its own, ended threads included, ticks.
    pub own_ticks: u64,
    /// CPU time of its children that have ended and were waited for, ticks.
    pub children_ticks: u64,
    /// What of both was spent in the program and not in the kernel, ticks.
    pub user_ticks: u64,
    /// When it started, ticks since boot: with the id it names a process for good.
    pub started: u64,
}

impl Stat {
    /// Reads the text of `/proc/PID/stat` (proc_pid_stat(5)). `None` if it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // the name may hold anything, parentheses and blanks too
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // field 3 of the manual page, the state, is the first one here
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            is_running: !matches!(*fields.first()?, "Z" | "X"),
            parent: u32::try_from(number(4)?).ok()?,
            own_ticks: number(14)? + number(15)?,
            children_ticks: number(16)? + number(17)?,
            user_ticks: number(14)? + number(16)?,
            started: number(22)?,
        })
    }
}

/// Lines such as `read_bytes: 12` or `VmRSS:   344 kB`: the first number of each, by its name.
#[must_use]
pub fn named_numbers(text: &str) -> HashMap<&str, u64> {
    let number = |line: &'_ str| -> Option<u64> { line.split_whitespace().next()?.parse().ok() };
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .filter_map(|(name, rest)| Some((name.trim(), number(rest)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_name_with_parentheses_does_not_shift_stat_fields() {
        let text =
            "4711 (a) b (c)) S 42 4711 4711 0 -1 4194560 1 2 3 4 100 20 3 1 20 0 1 0 987654 1 2";
        let expected = Stat {
            is_running: true,
            parent: 42,
            own_ticks: 120,
            children_ticks: 4,
            user_ticks: 103,
            started: 987_654,
        };
        assert_eq!(Stat::parse(text), Some(expected));
        assert_eq!(Stat::parse("4711 (a) S 42"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn named_number_is_read_without_its_unit() {
        let numbers = named_numbers("Name:\tweir\nVmRSS:\t    344 kB\nread_bytes: 12\n\n");
        assert_eq!(numbers.get("VmRSS"), Some(&344));
        assert_eq!(numbers.get("read_bytes"), Some(&12));
        assert_eq!(numbers.get("Name"), None);
    }
}
