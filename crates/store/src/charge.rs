//! What an allocation really costs.

/// Bytes the allocator sets aside for a request of `bytes`: general-purpose allocators round up to
/// size classes spaced an eighth of a power of two apart (mimalloc, jemalloc), with a smallest step
/// of 16 bytes. An upper bound, so that a budget kept in these units is kept.
#[must_use]
pub const fn allocated_bytes(bytes: usize) -> usize {
    if bytes == 0 {
        return 0;
    }
    let step = match bytes.next_power_of_two() / 8 {
        step if step > 16 => step,
        _ => 16,
    };
    bytes.div_ceil(step) * step
}

/// Bytes of the two reference counts in front of what an `Arc` holds.
pub(crate) const COUNTS_BYTES: usize = 2 * size_of::<usize>();

/// Bytes the allocator sets aside for a shared block of `len` bytes.
pub(crate) const fn block_bytes(len: usize) -> usize {
    allocated_bytes(COUNTS_BYTES + len)
}

#[cfg(test)]
mod tests {
    use super::allocated_bytes;

    #[test]
    fn allocation_charge_exceeds_the_request_by_at_most_a_quarter_plus_16_bytes() {
        for bytes in 1..100_000_usize {
            let charged = allocated_bytes(bytes);
            assert!(charged >= bytes);
            assert!(charged <= bytes + bytes / 4 + 16, "{bytes} -> {charged}");
        }
        assert_eq!(allocated_bytes(0), 0);
        assert_eq!(allocated_bytes(65_536), 65_536);
    }
}
