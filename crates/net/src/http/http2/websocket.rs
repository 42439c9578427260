//! WebSockets on streams (RFC 8441): an extended CONNECT becomes the request of HTTP/1.1 that opens
//! a WebSocket (RFC 6455 §4.1), and the 101 that answers it becomes a 200.
//!
//! HTTP/2 has no `Sec-WebSocket-Key` and `Sec-WebSocket-Accept` (RFC 8441 §5). The key is made
//! here, and that the server has it is checked here.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use weir_semantics::{FieldLine, line_named};
use weir_wire::write;

/// The name of the protocol, in `:protocol` and in `Upgrade`.
pub(super) const PROTOCOL: &str = "websocket";

/// The field with the key.
pub(super) const KEY: &str = "sec-websocket-key";

/// The field by which a server shows that it has the key.
const ACCEPT: &str = "sec-websocket-accept";

/// What a server puts behind the key (RFC 6455 §1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Writes what requests a WebSocket by HTTP/1.1, with a key of its own; `None` if the system has no
/// random bytes.
pub(super) fn write_upgrade(out: &mut Vec<u8>) -> Option<()> {
    let mut key = [0; 16];
    rand::fill(&mut key).ok()?;
    write::field(out, "Connection", b"Upgrade");
    write::field(out, "Upgrade", PROTOCOL.as_bytes());
    write::field(out, KEY, BASE64.encode(key).as_bytes());
    Some(())
}

/// Whether a server that answers with the fields `answer` has the key of the `request` (RFC 6455
/// §4.2.2).
#[must_use]
pub fn is_websocket_accepted(request: &[FieldLine<'_>], answer: &[FieldLine<'_>]) -> bool {
    let (Some(key), Some(accept)) = (line_named(request, KEY), line_named(answer, ACCEPT)) else {
        return false;
    };
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, GUID].concat());
    BASE64.encode(digest).as_bytes() == accept
}

/// The head of a 101 as a stream has it: 200, and no field of HTTP/1.1's handshake. `head` is
/// complete; its fields of the connection are left out later.
pub(super) fn established(head: &[u8]) -> Vec<u8> {
    let mut out = b"HTTP/1.1 200 OK\r\n".to_vec();
    for line in head.split_inclusive(|byte| *byte == b'\n').skip(1) {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        if !name.eq_ignore_ascii_case(ACCEPT.as_bytes()) {
            out.extend_from_slice(line);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_has_the_key_if_it_answers_with_its_digest() {
        // the example of RFC 6455 §1.3
        let request = [FieldLine::new(
            "Sec-WebSocket-Key",
            b"dGhlIHNhbXBsZSBub25jZQ==",
        )];
        let check = |value: &str, expected: bool| {
            let answer = [FieldLine::new("sec-websocket-accept", value.as_bytes())];
            assert_eq!(
                is_websocket_accepted(&request, &answer),
                expected,
                "{value}"
            );
        };
        check("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", true);
        check("s3pPLMBiTxaQ9kYGzzhZRbK+xOO=", false);
        check("", false);
        assert!(!is_websocket_accepted(&request, &[]));
        let answer = [FieldLine::new(
            "sec-websocket-accept",
            b"Kfh9QIsMVZcl6xEPYxPHzW8SZ8w=",
        )];
        assert!(!is_websocket_accepted(&[], &answer));
    }

    #[test]
    fn head_of_a_switch_becomes_that_of_a_stream() {
        let head = b"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: a\r\nSec-WebSocket-Protocol: b\r\n\r\n";
        let expected = "HTTP/1.1 200 OK\r\nSec-WebSocket-Protocol: b\r\n\r\n";
        assert_eq!(String::from_utf8(established(head)).unwrap(), expected);
    }
}
