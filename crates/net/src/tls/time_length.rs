//! Lengths of time as people read them.

/// A length of time in whole days or hours.
pub(super) fn length(seconds: u64) -> String {
    const DAY_S: u64 = 24 * 3600;
    match seconds {
        DAY_S.. => format!("{} days", seconds / DAY_S),
        _ => format!("{} hours", seconds.div_ceil(3600)),
    }
}
