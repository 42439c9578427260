//! How a run fails: what could not be done, why, and what to do about it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::path::Path;
use weir_workload::output;

/// The cause: usage or environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureKind {
    /// The operator's: a scenario that cannot be used, an address that makes no sense. Nothing was
    /// started.
    Usage,
    /// The outside's: an address in use, a participant that went away, a file that cannot be
    /// written.
    Outside,
}

/// A failure with cause and advice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The cause: usage or environment.
    pub kind: FailureKind,
    /// What could not be done: a fragment after `error: `.
    pub what: String,
    /// Why: a fragment after `caused by: `.
    pub cause: String,
    /// What to do about it: a fragment after `hint: `.
    pub hint: Option<String>,
}

impl Failure {
    /// The operator's request is impossible.
    pub fn usage(what: impl Into<String>, cause: impl fmt::Display) -> Self {
        Self::new(FailureKind::Usage, what, &cause)
    }

    /// Something outside of us failed.
    pub fn outside(what: impl Into<String>, cause: impl fmt::Display) -> Self {
        Self::new(FailureKind::Outside, what, &cause)
    }

    /// A file could not be written.
    pub fn output(what: impl Into<String>, path: &Path, error: &io::Error) -> Self {
        Self {
            hint: output::hint(path, error),
            ..Self::outside(what, error)
        }
    }

    /// The same failure with an advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn new(kind: FailureKind, what: impl Into<String>, cause: &dyn fmt::Display) -> Self {
        Self {
            kind,
            what: what.into(),
            cause: cause.to_string(),
            hint: None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.cause)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_text_states_the_action_and_its_cause() {
        let failure = Failure::outside("cannot listen on 127.0.0.1:80", "permission denied")
            .with_hint("ports below 1024 want privileges");
        assert_eq!(
            failure.to_string(),
            "cannot listen on 127.0.0.1:80: permission denied"
        );
        assert_eq!(failure.kind, FailureKind::Outside);
        assert_eq!(Failure::usage("x", "y").kind, FailureKind::Usage);
    }
}
