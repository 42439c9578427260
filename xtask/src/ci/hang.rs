//! Tests that do not end.
//!
//! Such a test would hold the whole run until that is ended from outside, and the run would say
//! nothing of it. So the tests of a program are ended when none of them has ended for
//! [`QUIET_MAX`], and those that were still running have failed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

/// The longest time in which no test of a running program ends: more than twice what the slowest
/// test takes on a loaded machine.
pub(super) const QUIET_MAX: Duration = Duration::from_mins(8);

/// The tests of the program that runs now, by what it has printed.
#[derive(Debug, Default)]
pub(super) struct Running {
    /// Tests that were announced and have not ended.
    left: u64,
    /// The names of those that run for more than a minute, as the program says.
    slow: BTreeSet<String>,
}

impl Running {
    /// Takes one line of output.
    pub(super) fn line(&mut self, line: &str) {
        if let Some(count) = announced(line) {
            self.left = count;
            self.slow.clear();
        } else if line.starts_with("test result: ") {
            *self = Self::default();
        } else if let Some(name) = slow_test(line) {
            self.slow.insert(name.to_owned());
        } else if let Some(name) = ended_test(line) {
            self.left = self.left.saturating_sub(1);
            self.slow.remove(name);
        }
    }

    /// Whether tests are under way: else cargo builds.
    pub(super) const fn is_under_way(&self) -> bool {
        self.left > 0
    }

    /// The tests that do not end; `None` if others have not been run because of them.
    pub(super) fn hanging(&self) -> Option<&BTreeSet<String>> {
        (self.left == self.slow.len() as u64).then_some(&self.slow)
    }
}

/// The number in `running 12 tests`.
fn announced(line: &str) -> Option<u64> {
    let (count, tests) = line.strip_prefix("running ")?.split_once(' ')?;
    let is_tests = matches!(tests, "test" | "tests");
    is_tests.then(|| count.parse().ok())?
}

fn slow_test(line: &str) -> Option<&str> {
    let name = line.strip_suffix(" has been running for over 60 seconds")?;
    // one that runs alone has its name printed before, on the same line
    name.rsplit_once("test ").map(|(_, name)| name)
}

fn ended_test(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    Some(name)
}

/// Kills all that a process has started, but not the process.
pub(super) fn kill_descendants(of: u32) {
    let parents: BTreeMap<u32, u32> = processes();
    let is_descendant = |mut pid: u32| {
        // ids are given out again while this reads: a circle is possible
        for _ in 0..parents.len() {
            match parents.get(&pid) {
                Some(&parent) if parent == of => return true,
                Some(&parent) => pid = parent,
                None => return false,
            }
        }
        false
    };
    for &pid in parents.keys().filter(|&&pid| is_descendant(pid)) {
        let pid = i32::try_from(pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            // one that has ended since is no fault
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// The parent of each process of this machine.
fn processes() -> BTreeMap<u32, u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| Some((pid, parent(pid)?)))
        .collect()
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // the name of the program, in brackets, may have any characters
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn after(lines: &[&str]) -> Running {
        let mut running = Running::default();
        lines.iter().for_each(|line| running.line(line));
        running
    }

    #[test]
    fn test_that_has_not_ended_is_known_by_name() {
        let lines = [
            "running 3 tests",
            "test a::passes ... ok",
            "test a::is_slow has been running for over 60 seconds",
            "test a::hangs has been running for over 60 seconds",
        ];
        let running = after(&lines);
        assert!(running.is_under_way());
        let hanging = running.hanging().expect("all are known");
        assert_eq!(
            hanging.iter().collect::<Vec<_>>(),
            ["a::hangs", "a::is_slow"]
        );
        let running = after(&[&lines[..], &["test a::is_slow ... FAILED"]].concat());
        let hanging = running.hanging().expect("all are known");
        assert_eq!(hanging.iter().collect::<Vec<_>>(), ["a::hangs"]);
    }

    #[test]
    fn tests_that_were_never_begun_are_not_among_those_that_hang() {
        let lines = [
            "running 3 tests",
            "test a::hangs has been running for over 60 seconds",
            "test b::hangs ... test b::hangs has been running for over 60 seconds",
        ];
        assert_eq!(after(&lines).hanging(), None);
    }

    #[test]
    fn nothing_hangs_while_cargo_builds() {
        let running = after(&["running 1 test", "test a ... ok", "   Compiling weir-net"]);
        assert!(!running.is_under_way());
        let result = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured";
        assert!(!after(&["running 1 test", result]).is_under_way());
    }

    #[test]
    fn descendants_are_killed_and_the_process_is_not() {
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", "sleep 600 & echo $!; wait; echo over; cat"]);
        let shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("a shell");
        let output = shell.stdout.take().expect("a pipe");
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(output));
        lines.next().expect("a line").expect("text");
        kill_descendants(shell.id());
        assert_eq!(lines.next().expect("a line").expect("text"), "over");
        drop(shell.stdin.take());
        shell.wait().expect("it ends");
    }
}
