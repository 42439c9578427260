//! Why numbers are not as published, as far as experiments have shown: docs/proxim.md has the experiments.

use super::experiment::Kind;

/// The reason for a line's number of a trace not to be as published; none where nobody knows.
pub(super) fn why(key: &str, kind: Kind) -> Option<&'static str> {
    let _ = (key, kind);
    None
}
