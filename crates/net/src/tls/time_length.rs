//! Lengths of time as people read them.

/// A length of time in whole days or hours.
pub(super) fn length(seconds: u64) -> String {
    const DAY_S: u64 = 24 * 3600;
    let (number, unit) = match seconds {
        DAY_S.. => (seconds / DAY_S, "day"),
        _ => (seconds.div_ceil(3600), "hour"),
    };
    match number {
        1 => format!("1 {unit}"),
        _ => format!("{number} {unit}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_of_one_is_no_plural() {
        for (seconds, expected) in [
            (1, "1 hour"),
            (3601, "2 hours"),
            (24 * 3600, "1 day"),
            (48 * 3600, "2 days"),
        ] {
            assert_eq!(length(seconds), expected);
        }
    }
}
