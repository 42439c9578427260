//! What a rule says: where, what, and what to do instead.

use std::fmt;

/// One broken rule. Ordered by place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Complaint {
    path: String,
    line: usize,
    what: String,
    instead: String,
}

impl Complaint {
    /// `line` counts from 1. `instead` is an advice that begins with a verb.
    pub(crate) fn new(
        path: &str,
        line: usize,
        what: impl Into<String>,
        instead: impl Into<String>,
    ) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
            instead: instead.into(),
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            line,
            what,
            instead,
        } = self;
        write!(f, "{path}:{line}: {what}; {instead}")
    }
}

/// For the tests of the rules: compares `line: part of what` with what a rule said.
#[cfg(test)]
pub(super) fn expect(complaints: &[Complaint], expected: &[(usize, &str)]) {
    assert_eq!(complaints.len(), expected.len(), "{complaints:#?}");
    for (complaint, (line, part)) in complaints.iter().zip(expected) {
        assert_eq!(complaint.line, *line, "{complaint}");
        assert!(
            complaint.what.contains(part),
            "`{complaint}` does not say `{part}`"
        );
        assert!(
            !complaint.instead.is_empty(),
            "`{complaint}` gives no advice"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaint_states_place_problem_and_remedy() {
        let complaint = Complaint::new("a/b.rs", 3, "a tab", "indent with spaces");
        assert_eq!(complaint.to_string(), "a/b.rs:3: a tab; indent with spaces");
    }
}
