//! Heads that `weir-wire` refuses, brought into the form that it reads.
//!
//! A proxy must not repair what two recipients may read differently (RFC 9112 §11.2). Here the two
//! have already agreed on some reading and the bytes have passed; the question is only what was
//! probably meant. So lines may end in LF alone, folded lines are joined, space before a colon
//! goes, lines without a colon are left out, and a request target with spaces or bytes beyond ASCII
//! is percent-encoded.

/// No head has more lines that mean something; `weir-wire` has room for as many.
const LINES_MAX: usize = weir_wire::FIELDS_CAPACITY;

/// Where the head ends: after its first empty line, which ends in CRLF or LF. Empty lines at the
/// very beginning are no end.
pub(super) fn end_of_head(text: &[u8]) -> Option<usize> {
    let start = text
        .iter()
        .position(|byte| !matches!(byte, b'\r' | b'\n'))?;
    let mut from = start;
    loop {
        let line_end = from + text[from..].iter().position(|&byte| byte == b'\n')? + 1;
        match text[line_end..] {
            [b'\n', ..] => return Some(line_end + 1),
            [b'\r', b'\n', ..] => return Some(line_end + 2),
            _ => from = line_end,
        }
    }
}

/// A whole head in a form that `weir-wire` reads, if there is any sense in it.
pub(super) fn repaired(head: &[u8], is_request: bool) -> Option<Vec<u8>> {
    let mut lines = head
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .skip_while(|line| line.is_empty());
    let mut out = Vec::with_capacity(head.len() + 16);
    start_line(lines.next()?, is_request, &mut out)?;
    let mut fields: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for line in lines {
        if matches!(line.first(), Some(b' ' | b'\t')) {
            if let Some((_, value)) = fields.last_mut() {
                value.push(b' ');
                value.extend_from_slice(line.trim_ascii());
            }
            continue;
        }
        let Some(colon) = line.iter().position(|&byte| byte == b':') else {
            continue;
        };
        let name = line[..colon].trim_ascii();
        if weir_semantics::is_token(name) && fields.len() < LINES_MAX {
            fields.push((name.to_vec(), line[colon + 1..].trim_ascii().to_vec()));
        }
    }
    for (name, value) in fields {
        out.extend_from_slice(&name);
        out.extend_from_slice(b": ");
        out.extend(value.into_iter().map(|byte| match byte {
            b'\t' | b' '.. if byte != 0x7f => byte,
            _ => b' ',
        }));
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    Some(out)
}

/// Appends the first line, if it is one.
fn start_line(line: &[u8], is_request: bool, out: &mut Vec<u8>) -> Option<()> {
    let line = line.trim_ascii();
    if is_request {
        let first_space = line.iter().position(|&byte| byte == b' ')?;
        let last_space = line.iter().rposition(|&byte| byte == b' ')?;
        let (method, version) = (&line[..first_space], &line[last_space + 1..]);
        let target = line.get(first_space..last_space)?.trim_ascii();
        if target.is_empty() || !weir_semantics::is_token(method) {
            return None;
        }
        out.extend_from_slice(method);
        out.push(b' ');
        for &byte in target {
            if byte.is_ascii_graphic() {
                out.push(byte);
            } else {
                out.extend_from_slice(format!("%{byte:02X}").as_bytes());
            }
        }
        out.push(b' ');
        out.extend_from_slice(version_of(version)?);
    } else {
        let mut words = line.splitn(3, |&byte| byte == b' ');
        let (version, status) = (words.next()?, words.next()?);
        out.extend_from_slice(version_of(version)?);
        out.push(b' ');
        out.extend_from_slice(status);
        // the reason says nothing, and may hold anything
        out.push(b' ');
    }
    out.extend_from_slice(b"\r\n");
    Some(())
}

/// The version that is meant; there are servers that write `HTTP/1.2` or `http/1.1`.
fn version_of(word: &[u8]) -> Option<&'static [u8]> {
    let number = word
        .get(..5)
        .filter(|name| name.eq_ignore_ascii_case(b"HTTP/"))?;
    match &word[number.len()..] {
        b"1.0" => Some(b"HTTP/1.0"),
        [b'1', b'.', digit] if digit.is_ascii_digit() => Some(b"HTTP/1.1"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &[u8], is_request: bool, expected: Option<&[u8]>) {
        assert_eq!(
            end_of_head(head),
            Some(head.len()),
            "{}",
            head.escape_ascii()
        );
        let repaired = repaired(head, is_request);
        assert_eq!(repaired.as_deref(), expected, "{}", head.escape_ascii());
    }

    #[test]
    fn ambiguous_header_section_is_normalised_to_valid_http() {
        check(
            b"GET /a b\xe4 HTTP/1.0\nHost : x\n folded\n\n",
            true,
            Some(b"GET /a%20b%E4 HTTP/1.0\r\nHost: x folded\r\n\r\n"),
        );
        check(
            b"HTTP/1.1 200\nA: b\x01\r\nno field\n\r\n",
            false,
            Some(b"HTTP/1.1 200 \r\nA: b \r\n\r\n"),
        );
    }

    #[test]
    fn non_http_header_section_is_not_repaired() {
        check(b"SSH-2.0-x\n\n", true, None);
        check(b"GET / SIP/2.0\n\n", true, None);
        check(b"ICY 200 OK\n\n", false, None);
    }

    #[test]
    fn end_of_header_section_is_after_its_first_empty_line() {
        assert_eq!(end_of_head(b"\r\n\r\nGET / HTTP/1.0\r\n"), None);
        assert_eq!(end_of_head(b"a\n\r"), None);
        assert_eq!(end_of_head(b"a\r\n\r\nb"), Some(5));
        assert_eq!(end_of_head(b""), None);
    }
}
