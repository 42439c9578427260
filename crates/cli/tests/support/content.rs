//! Content whose every byte depends on its place, so that a shifted, doubled or lost piece shows.

/// `length` bytes, other ones for each `seed`.
pub(crate) fn content(seed: u32, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut bytes = Vec::with_capacity(length + 4);
    while bytes.len() < length {
        // xorshift32 (Marsaglia 2003)
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
