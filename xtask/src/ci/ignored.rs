//! Tests that are allowed not to run: `xtask/ignored-tests.txt`, one `name # reason` a line.
//!
//! A reason that begins with `where` holds on some machines only: there the test reports itself as
//! ignored, elsewhere it runs.

use std::collections::{BTreeMap, BTreeSet};

/// Complaints about the difference between the list and what was really ignored, in both
/// directions.
pub(crate) fn compare(list: &str, ignored: &BTreeSet<String>) -> Vec<String> {
    const FILE: &str = "xtask/ignored-tests.txt";
    let mut allowed = BTreeMap::new();
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(list.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.split_once(" # ") {
            Some((name, reason)) if !reason.trim().is_empty() => {
                let is_conditional = reason.trim().starts_with("where ");
                allowed.insert(name.trim().to_owned(), (number, is_conditional));
            }
            _ => complaints.push(format!(
                "{FILE}:{number}: no reason is given; write `name # reason`"
            )),
        }
    }
    for name in ignored.iter().filter(|name| !allowed.contains_key(*name)) {
        complaints.push(format!(
            "{FILE}:1: test `{name}` is ignored and not listed; make it run, or list it here with the reason"
        ));
    }
    let unused = allowed
        .iter()
        .filter(|(name, (_, is_conditional))| !is_conditional && !ignored.contains(*name));
    for (name, (number, _)) in unused {
        complaints.push(format!(
            "{FILE}:{number}: no ignored test is called `{name}`; remove the line"
        ));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &str, ignored: &[&str], expected: &[&str]) {
        let ignored = ignored.iter().map(|&name| name.to_owned()).collect();
        let complaints = compare(list, &ignored);
        assert_eq!(complaints.len(), expected.len(), "{complaints:?}");
        for (complaint, part) in complaints.iter().zip(expected) {
            assert!(
                complaint.contains(part),
                "`{complaint}` does not say `{part}`"
            );
        }
    }

    #[test]
    fn ignored_test_listed_with_a_reason_passes() {
        check("# heading\n\na::b # needs a browser\n", &["a::b"], &[]);
    }

    #[test]
    fn conditionally_ignored_test_may_run_or_not() {
        let list = "a::b # where the kernel gives no io_uring\n";
        check(list, &["a::b"], &[]);
        check(list, &[], &[]);
    }

    #[test]
    fn ignored_test_missing_from_the_list_is_refused() {
        check("", &["a::b"], &["test `a::b` is ignored and not listed"]);
    }

    #[test]
    fn listed_test_without_a_reason_is_refused() {
        check("a::b\n", &[], &[":1: no reason"]);
        check("a::b # \n", &[], &[":1: no reason"]);
    }

    #[test]
    fn listed_test_that_is_no_longer_ignored_is_refused() {
        check(
            "# x\na::b # slow\n",
            &[],
            &[":2: no ignored test is called `a::b`"],
        );
    }
}
