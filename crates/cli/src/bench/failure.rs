//! Failures of the benchmark as the command line prints them.

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
    Failure::usage(format!("cannot use scenario `{name}`"), error).hint_if(error.hint.clone())
}
