//! What `cargo test` printed, counted over all test binaries and doc tests.

use std::collections::BTreeSet;
use std::fmt;

/// Sums over every `test result:` line, and the names of tests that were not run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestCount {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) filtered_out: u64,
    pub(crate) ignored: BTreeSet<String>,
}

impl TestCount {
    /// Takes one line of output.
    pub(crate) fn line(&mut self, line: &str) {
        if let Some(sums) = line.strip_prefix("test result: ") {
            self.sums(sums);
        } else if let Some(rest) = line.strip_prefix("test ")
            && let Some((name, verdict)) = rest.rsplit_once(" ... ")
            && verdict.starts_with("ignored")
        {
            self.ignored.insert(without_line_number(name));
        }
    }

    fn sums(&mut self, sums: &str) {
        for part in sums.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let Some(number) = words.next().and_then(|word| word.parse::<u64>().ok()) else {
                continue;
            };
            match words.next() {
                Some("passed") => self.passed += number,
                Some("failed") => self.failed += number,
                Some("filtered") => self.filtered_out += number,
                _ => {}
            }
        }
    }
}

/// Doc tests are named by their line, which changes with every edit above them.
fn without_line_number(name: &str) -> String {
    name.split_once(" (line ")
        .map_or(name, |(name, _)| name)
        .to_owned()
}

impl fmt::Display for TestCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, .. } = self;
        write!(
            f,
            "{passed} tests passed, {failed} failed, {} ignored",
            self.ignored.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[&str], passed: u64, failed: u64, filtered_out: u64, ignored: &[&str]) {
        let mut count = TestCount::default();
        lines.iter().for_each(|line| count.line(line));
        let ignored = ignored.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(
            count,
            TestCount {
                passed,
                failed,
                filtered_out,
                ignored
            }
        );
    }

    #[test]
    fn results_of_several_test_binaries_are_summed() {
        check(
            &[
                "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
                "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1.50s",
            ],
            13,
            2,
            7,
            &[],
        );
    }

    #[test]
    fn ignored_tests_are_collected_by_name() {
        check(
            &[
                "test a::b ... ok",
                "test a::c ... ignored",
                "test a::d ... ignored, needs a browser",
                "test crates/x/src/lib.rs - outer::inner (line 12) ... ignored",
                "test result_of_something ... ok",
            ],
            0,
            0,
            0,
            &["a::c", "a::d", "crates/x/src/lib.rs - outer::inner"],
        );
    }
}
