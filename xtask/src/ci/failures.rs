//! Tests that failed: their names, what they printed, and the targets that have them.
//!
//! Tests of a proxy use sockets, file systems and processes of the machine, and another load on it
//! can be longer than a deadline of a test. A failing test is therefore run a second time, alone.
//! What passes then is named in the table of the run, with what it printed at first, because it is
//! a fault all the same: of the test, or a race.

use super::hang::QUIET_MAX;
use std::collections::BTreeSet;

/// How many tests may fail and be run again. More are no accident.
pub(super) const RERUN_MAX: usize = 3;
/// Lines of one failing test that are kept.
const LINES_MAX: usize = 40;
/// Lines of all failing tests that are kept.
const ALL_LINES_MAX: usize = 400;

/// Collected from the output of `cargo test --no-fail-fast`, both streams in their order.
#[derive(Debug, Default)]
pub(super) struct Failures {
    names: BTreeSet<String>,
    /// Arguments of `cargo test` that choose a target, as `--test limits`.
    targets: BTreeSet<String>,
    text: Vec<String>,
    /// Lines of the present test that may still be kept.
    room: usize,
    /// There are tests that were not run, because of others that did not end.
    is_cut: bool,
}

impl Failures {
    /// Takes one line of output.
    pub(super) fn line(&mut self, line: &str) {
        if let Some(name) = failed_test(line) {
            self.names.insert(name.to_owned());
        } else if let Some(target) = failed_target(line) {
            self.targets.insert(target.to_owned());
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.room = 0;
        } else if line.starts_with("---- ") && line.ends_with(" stdout ----") {
            self.room = LINES_MAX;
        }
        if self.room > 0 && self.text.len() < ALL_LINES_MAX {
            self.room -= 1;
            self.text.push(line.to_owned());
        }
    }

    /// Takes tests that did not end, and were ended with all of their program. `None`: there are
    /// others that were never begun.
    pub(super) fn hang(&mut self, hanging: Option<&BTreeSet<String>>) {
        self.is_cut |= hanging.is_none();
        for name in hanging.into_iter().flatten() {
            self.names.insert(name.clone());
            self.text.push(format!(
                "{name} did not end, and was ended when no test had for {} s",
                QUIET_MAX.as_secs()
            ));
        }
    }

    /// What the failing tests printed, shortened.
    pub(super) fn text(&self) -> &[String] {
        &self.text
    }

    /// The names, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Arguments of `cargo test` that run the failed tests again and no others; nothing if they
    /// are too many, or if something else than a test failed.
    pub(super) fn rerun(&self) -> Option<Vec<String>> {
        let count = self.names.len();
        if count == 0 || count > RERUN_MAX || self.targets.is_empty() || self.is_cut {
            return None;
        }
        let targets = self.targets.iter().flat_map(|target| target.split(' '));
        let mut arguments: Vec<String> = targets.map(str::to_owned).collect();
        arguments.extend(["--", "--exact", "--test-threads=1"].map(str::to_owned));
        arguments.extend(self.names.iter().cloned());
        Some(arguments)
    }
}

/// The name in ``test a::b ... FAILED``.
fn failed_test(line: &str) -> Option<&str> {
    let (name, verdict) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    verdict.starts_with("FAILED").then_some(name)
}

/// The target in ``    `-p weir-proxy --test limits` ``, without its package: all packages are
/// built with the same features then, and nothing is built again.
fn failed_target(line: &str) -> Option<&str> {
    let chosen = line.trim().strip_prefix("`-p ")?.strip_suffix('`')?;
    let (_package, target) = chosen.split_once(' ')?;
    target.starts_with("--").then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lines: &[&str]) -> Failures {
        let mut failures = Failures::default();
        lines.iter().for_each(|line| failures.line(line));
        failures
    }

    #[test]
    fn failed_tests_are_run_again_alone_by_target() {
        let failures = after(&[
            "test a::passes ... ok",
            "test a::fails ... FAILED",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out",
            "error: 2 targets failed:",
            "    `-p weir-proxy --test limits`",
            "    `-p weir-net --lib`",
        ]);
        let expected = "--lib --test limits -- --exact --test-threads=1 a::fails";
        assert_eq!(failures.rerun().unwrap().join(" "), expected);
    }

    #[test]
    fn many_failed_tests_are_not_run_again() {
        let lines: Vec<String> = (0..=RERUN_MAX)
            .map(|number| format!("test t{number} ... FAILED"))
            .collect();
        let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        lines.push("    `-p weir-proxy --test limits`");
        assert_eq!(after(&lines).rerun(), None);
    }

    #[test]
    fn test_that_did_not_end_is_run_again_unless_others_were_never_begun() {
        let lines = [
            "error: 1 target failed:",
            "    `-p weir-cli --test end_to_end`",
        ];
        let hanging = BTreeSet::from(["a::hangs".to_owned()]);
        let mut failures = after(&lines);
        failures.hang(Some(&hanging));
        let expected = "--test end_to_end -- --exact --test-threads=1 a::hangs";
        assert_eq!(failures.rerun().unwrap().join(" "), expected);
        assert!(failures.text()[0].starts_with("a::hangs did not end"));
        failures.hang(None);
        assert_eq!(failures.rerun(), None);
    }

    #[test]
    fn failure_of_no_test_is_not_run_again() {
        assert_eq!(
            after(&["error: could not compile `weir-net`"]).rerun(),
            None
        );
        assert_eq!(after(&["    `-p weir-proxy --test limits`"]).rerun(), None);
    }

    #[test]
    fn what_a_failing_test_printed_is_kept_up_to_a_bound() {
        let mut lines = vec![
            "failures:",
            "",
            "---- a::fails stdout ----",
            "panicked: 1 != 2",
        ];
        lines.extend(["more"; 2 * LINES_MAX]);
        lines.extend(["failures:", "    a::fails", "test result: FAILED. 0 passed"]);
        let failures = after(&lines);
        assert_eq!(failures.text().len(), LINES_MAX);
        assert_eq!(failures.text()[1], "panicked: 1 != 2");
    }
}
