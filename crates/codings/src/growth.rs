//! How much content may grow when it is decoded or changed.

/// Bytes that a decoder or a module may put out whatever it was given.
pub const GROWTH_FREE_BYTES: u64 = 1024 * 1024;

/// Beyond that it may put out so many bytes for each byte that it was given.
pub const GROWTH_MAX: u64 = 100;

/// Whether `put_bytes` are more than may be made of `given_bytes`.
#[must_use]
pub const fn is_excessive(given_bytes: u64, put_bytes: u64) -> bool {
    put_bytes.saturating_sub(GROWTH_FREE_BYTES) > given_bytes.saturating_mul(GROWTH_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_may_grow_a_hundredfold_beyond_a_mebibyte() {
        assert!(!is_excessive(0, GROWTH_FREE_BYTES));
        assert!(is_excessive(0, GROWTH_FREE_BYTES + 1));
        assert!(!is_excessive(7, GROWTH_FREE_BYTES + 700));
        assert!(is_excessive(7, GROWTH_FREE_BYTES + 701));
        assert!(!is_excessive(u64::MAX, u64::MAX));
    }
}
