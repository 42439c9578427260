//! Failures of the benchmark as the command line tells them.

use crate::messages::{Exit, Failure};
use weir_bench::failure::FailureKind;
use weir_workload::ScenarioError;

impl From<weir_bench::failure::Failure> for Failure {
    fn from(failure: weir_bench::failure::Failure) -> Self {
        Self {
            exit: match failure.kind {
                FailureKind::Usage => Exit::BadUsage,
                FailureKind::Outside => Exit::OutsideFailed,
            },
            what: failure.what,
            cause: failure.cause,
            hint: failure.hint,
        }
    }
}

/// A scenario that cannot be used.
pub(super) fn scenario(name: &str, error: &ScenarioError) -> Failure {
    Failure {
        exit: Exit::BadUsage,
        what: format!("cannot use scenario `{name}`"),
        cause: error.to_string(),
        hint: error.hint.clone(),
    }
}

/// Bad usage.
pub(super) fn usage(what: impl Into<String>, cause: impl ToString) -> Failure {
    Failure {
        exit: Exit::BadUsage,
        what: what.into(),
        cause: cause.to_string(),
        hint: None,
    }
}
