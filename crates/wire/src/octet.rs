//! Classes of octets (RFC 9110 §5.6).

/// Is `byte` a tchar (RFC 9110 §5.6.2)?
pub(crate) const fn is_tchar(byte: u8) -> bool {
    matches!(byte,
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.'
        | b'^' | b'_' | b'`' | b'|' | b'~')
}

/// Is `bytes` a token (RFC 9110 §5.6.2)?
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().copied().all(is_tchar)
}

/// May `byte` stand in a quoted-string without a backslash (RFC 9110 §5.6.4)?
pub(crate) const fn is_qdtext(byte: u8) -> bool {
    is_field_byte(byte) && byte != b'"' && byte != b'\\'
}

/// May `byte` stand in a field value (RFC 9110 §5.5): HTAB, SP, VCHAR or obs-text?
pub(crate) const fn is_field_byte(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=0x7e | 0x80..=0xff)
}

/// Is there a line feed without a carriage return before it?
///
/// Written without a branch in the loop, so that the compiler looks at many bytes at once.
pub(crate) fn has_bare_lf(bytes: &[u8]) -> bool {
    let Some((first, rest)) = bytes.split_first() else {
        return false;
    };
    let found = bytes
        .iter()
        .zip(rest)
        .fold(0_u8, |found, (&before, &byte)| {
            found | u8::from((byte == b'\n') & (before != b'\r'))
        });
    (*first == b'\n') | (found != 0)
}

/// Where the first line feed without a carriage return before it is.
pub(crate) fn find_bare_lf(bytes: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'\n', bytes).find(|&at| at == 0 || bytes[at - 1] != b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_feed_without_carriage_return_is_found() {
        for (bytes, expected) in [
            (&b""[..], None),
            (b"\n", Some(0)),
            (b"\r\n", None),
            (b"\r\n\n", Some(2)),
            (b"\n\r", Some(0)),
            (b"a\nb", Some(1)),
            (b"0123456789abcdef0123456789abcdef\n", Some(32)),
            (b"0123456789abcdef0123456789abcdef\r\n", None),
            (b"0123456789abcdef\r\n0123456789abcdef\r\n\n", Some(36)),
        ] {
            assert_eq!(find_bare_lf(bytes), expected, "{bytes:?}");
            assert_eq!(has_bare_lf(bytes), expected.is_some(), "{bytes:?}");
        }
    }
}
