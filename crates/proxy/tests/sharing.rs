//! One response for many: who waits for whom, who reads what arrives, and who goes alone (RFC 9111
//! §4, RFC 9211 §2.6).
//!
//! The next hop is played by hand, so that it holds its head, or its content, until all are known
//! to be where the test wants them.

mod support;

#[path = "sharing/alone.rs"]
mod alone;
#[path = "sharing/arriving.rs"]
mod arriving;
#[path = "sharing/crowd.rs"]
mod crowd;
#[path = "sharing/cut.rs"]
mod cut;
#[path = "sharing/failure.rs"]
mod failure;
#[path = "sharing/herd.rs"]
mod herd;
#[path = "sharing/leaving.rs"]
mod leaving;
#[path = "sharing/off.rs"]
mod off;
#[path = "sharing/passing.rs"]
mod passing;
#[path = "sharing/purge.rs"]
mod purge;
#[path = "sharing/shutdown.rs"]
mod shutdown;
#[path = "sharing/stopped.rs"]
mod stopped;
#[path = "sharing/terms.rs"]
mod terms;
#[path = "sharing/vary.rs"]
mod vary;

/// The begin of a response that is fresh for a minute; framing and the empty line are to follow.
const FRESH: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";

/// `content` behind a head with `fields`, each with its CRLF, and its length.
fn with_length(fields: &str, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let mut bytes =
        format!("{FRESH}{fields}Content-Length: {}\r\n\r\n", content.len()).into_bytes();
    bytes.extend_from_slice(content);
    bytes
}

/// One chunk.
fn chunk(content: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{:x}\r\n", content.len()).into_bytes();
    bytes.extend_from_slice(content);
    bytes.extend_from_slice(b"\r\n");
    bytes
}
