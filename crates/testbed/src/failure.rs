//! Failures of `weir bench`, as those of a chore.

use weir_bench::failure::{Failure, Whose};

/// The same failure with its hint.
pub(crate) fn of_bench(failure: Failure) -> xtask::failure::Failure {
    let hint = failure.hint.as_ref();
    let hint = hint.map_or_else(String::new, |hint| format!("\nhint: {hint}"));
    let text = format!("{failure}{hint}");
    match failure.whose {
        Whose::Usage => xtask::failure::Failure::Usage(text),
        Whose::Outside => xtask::failure::Failure::Outside(text),
    }
}
