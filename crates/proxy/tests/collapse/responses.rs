//! Responses that next hops send.

/// The begin of a response that is fresh for a minute; framing and the empty line are to follow.
pub(crate) const FRESH: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";

/// `content` behind a head with `fields`, each with its CRLF, and its length.
pub(crate) fn with_length(fields: &str, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let mut bytes =
        format!("{FRESH}{fields}Content-Length: {}\r\n\r\n", content.len()).into_bytes();
    bytes.extend_from_slice(content);
    bytes
}

/// One chunk.
pub(crate) fn chunk(content: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{:x}\r\n", content.len()).into_bytes();
    bytes.extend_from_slice(content);
    bytes.extend_from_slice(b"\r\n");
    bytes
}
