//! Failures of `weir bench`, as those of a chore.

use weir_bench::failure::{Failure, FailureKind};

/// The same failure with its hint.
pub(crate) fn of_bench(failure: Failure) -> xtask::failure::Failure {
    let hint = failure.hint.as_ref();
    let hint = hint.map_or_else(String::new, |hint| format!("\nhint: {hint}"));
    let text = format!("{failure}{hint}");
    match failure.kind {
        FailureKind::Usage => xtask::failure::Failure::Usage(text),
        FailureKind::Outside => xtask::failure::Failure::Outside(text),
    }
}
