//! Numbers in paths and entity tags.

/// The number in decimal between `front` and `end`, wherever in the path `front` stands last.
pub(super) fn decimal(path: &[u8], front: &[u8], end: &[u8]) -> Option<u64> {
    let digits = after_last(path, front)?.strip_suffix(end)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The number in hexadecimal between the last `front` and the first `end` after it.
pub(super) fn hexadecimal(path: &[u8], front: &[u8], end: &[u8]) -> Option<u64> {
    let rest = after_last(path, front)?;
    let length = rest.windows(end.len()).position(|window| window == end)?;
    read_hexadecimal(&rest[..length])
}

/// 1 to 16 lower-case hexadecimal digits.
pub(super) fn read_hexadecimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(value))
    })
}

/// Without leading zeros.
pub(super) fn write_hexadecimal(number: u64, out: &mut Vec<u8>) {
    let digits = (64 - (number | 1).leading_zeros()).div_ceil(4);
    for place in (0..digits).rev() {
        let value = (number >> (4 * place)) & 0xf;
        out.push(b"0123456789abcdef"[usize::try_from(value).unwrap_or(0)]);
    }
}

pub(super) fn write_decimal(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn after_last<'p>(path: &'p [u8], front: &[u8]) -> Option<&'p [u8]> {
    let at = path
        .windows(front.len())
        .rposition(|window| window == front)?;
    Some(&path[at + front.len()..])
}
