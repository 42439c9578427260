//! Request lines and status lines (RFC 3507 §4.2, §4.3.3).

use alloc::vec::Vec;

use weir_semantics::is_token;
use weir_wire::write;

use crate::message::error::MessageError;
use crate::message::method::Method;
use crate::message::service_uri::ServiceUri;

const VERSION: &[u8] = b"ICAP/1.0";

/// Reads a request line without its line end.
pub(crate) fn parse_request_line(line: &[u8]) -> Result<(Method, ServiceUri), MessageError> {
    let mut parts = line.splitn(3, |&byte| byte == b' ');
    let (Some(method), Some(uri), Some(version)) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(MessageError::RequestLine);
    };
    if !is_token(method) || uri.is_empty() {
        return Err(MessageError::RequestLine);
    }
    check_version(version, MessageError::RequestLine)?;
    let method = Method::parse(method).ok_or(MessageError::UnknownMethod)?;
    let uri = ServiceUri::parse(uri).map_err(MessageError::ServiceUri)?;
    Ok((method, uri))
}

/// Reads a status line without its line end: the status, 100 to 599.
pub(crate) fn parse_status_line(line: &[u8]) -> Result<u16, MessageError> {
    let mut parts = line.splitn(3, |&byte| byte == b' ');
    let (Some(version), Some(code)) = (parts.next(), parts.next()) else {
        return Err(MessageError::StatusLine);
    };
    check_version(version, MessageError::StatusLine)?;
    let [b'1'..=b'5', b'0'..=b'9', b'0'..=b'9'] = code else {
        return Err(MessageError::StatusLine);
    };
    let is_text = |&byte: &u8| matches!(byte, b'\t' | b' '..=b'~' | 0x80..);
    if !parts.next().unwrap_or_default().iter().all(is_text) {
        return Err(MessageError::StatusLine);
    }
    let digits = code.iter().map(|digit| u16::from(digit - b'0'));
    Ok(digits.fold(0, |status, digit| status * 10 + digit))
}

fn check_version(version: &[u8], malformed: MessageError) -> Result<(), MessageError> {
    match version {
        VERSION => Ok(()),
        [b'I', b'C', b'A', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Err(MessageError::UnsupportedVersion)
        }
        _ => Err(malformed),
    }
}

pub(crate) fn write_request_line(out: &mut Vec<u8>, method: Method, uri: &ServiceUri) {
    out.extend_from_slice(method.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(uri.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(VERSION);
    out.extend_from_slice(b"\r\n");
}

pub(crate) fn write_status_line(out: &mut Vec<u8>, status: u16, reason: &str) {
    out.extend_from_slice(VERSION);
    out.push(b' ');
    write::decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason.as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::service_uri::ServiceUriError;

    #[test]
    fn request_line_is_method_uri_and_version_with_single_spaces() {
        let line = b"REQMOD icap://e/a?b ICAP/1.0";
        let (method, uri) = parse_request_line(line).unwrap();
        assert_eq!((method, uri.as_str()), (Method::Reqmod, "icap://e/a?b"));
        let mut written = Vec::new();
        write_request_line(&mut written, method, &uri);
        assert_eq!(written, [&line[..], b"\r\n"].concat());
        for (line, expected) in [
            ("", MessageError::RequestLine),
            ("OPTIONS", MessageError::RequestLine),
            ("OPTIONS icap://e/", MessageError::RequestLine),
            ("OPTIONS  icap://e/ ICAP/1.0", MessageError::RequestLine),
            ("OPTIONS icap://e/  ICAP/1.0", MessageError::RequestLine),
            ("OPTIONS icap://e/ ICAP/1.0 ", MessageError::RequestLine),
            ("OPTIONS icap://e/ icap/1.0", MessageError::RequestLine),
            ("OPTIONS icap://e/ HTTP/1.1", MessageError::RequestLine),
            ("OPT\tIONS icap://e/ ICAP/1.0", MessageError::RequestLine),
            (
                "OPTIONS icap://e/ ICAP/1.1",
                MessageError::UnsupportedVersion,
            ),
            (
                "OPTIONS icap://e/ ICAP/2.0",
                MessageError::UnsupportedVersion,
            ),
            ("options icap://e/ ICAP/1.0", MessageError::UnknownMethod),
            ("LOGMOD icap://e/ ICAP/1.0", MessageError::UnknownMethod),
            (
                "OPTIONS /echo ICAP/1.0",
                MessageError::ServiceUri(ServiceUriError::Scheme),
            ),
        ] {
            let result = parse_request_line(line.as_bytes());
            assert_eq!(result.unwrap_err(), expected, "{line}");
        }
    }

    #[test]
    fn status_line_is_version_three_digits_and_reason() {
        for (line, expected) in [
            ("ICAP/1.0 200 OK", Ok(200)),
            ("ICAP/1.0 204 No Content Needed", Ok(204)),
            ("ICAP/1.0 100 ", Ok(100)),
            ("ICAP/1.0 100", Ok(100)),
            ("ICAP/1.1 200 OK", Err(MessageError::UnsupportedVersion)),
            ("HTTP/1.1 200 OK", Err(MessageError::StatusLine)),
            ("ICAP/1.0  200 OK", Err(MessageError::StatusLine)),
            ("ICAP/1.0 20 OK", Err(MessageError::StatusLine)),
            ("ICAP/1.0 2000 OK", Err(MessageError::StatusLine)),
            ("ICAP/1.0 099 OK", Err(MessageError::StatusLine)),
            ("ICAP/1.0 600 OK", Err(MessageError::StatusLine)),
            ("ICAP/1.0 +20 OK", Err(MessageError::StatusLine)),
            ("ICAP/1.0 200 O\rK", Err(MessageError::StatusLine)),
            ("ICAP/1.0", Err(MessageError::StatusLine)),
        ] {
            assert_eq!(parse_status_line(line.as_bytes()), expected, "{line}");
        }
    }
}
