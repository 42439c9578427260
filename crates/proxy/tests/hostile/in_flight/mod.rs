//! In-flight responses, as an adversary would have them: next hops that stop or change
//! their mind, clients that stop, leave, or want what is not theirs to share.

mod disconnect;
mod followers;
mod readers;

use crate::support::{OriginConnection, RawClient, Running, ScriptedOrigin};
use std::ops::Range;
use weir_proxy::config::Config;

/// A gateway, and what it is before.
fn gateway(change: impl FnOnce(&mut Config)) -> (Running, ScriptedOrigin) {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway_with(origin.address(), change);
    (proxy, origin)
}

/// A request for the target of these tests.
fn get(fields: &str) -> String {
    format!("GET /x HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n")
}

/// A client that has sent one.
fn ask(proxy: &Running, fields: &str) -> RawClient {
    let mut client = proxy.client();
    client.send(get(fields));
    client
}

/// The head of a whole response of `length` bytes that may be stored, with a strong entity tag.
fn whole(length: usize) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Length: {length}\r\n\r\n"
    )
}

/// The same without a length.
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\n\
    Transfer-Encoding: chunked\r\n\r\n";

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// A part of `content`.
fn part(content: &[u8], range: Range<usize>) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\n\
         Content-Range: bytes {}-{}/{}\r\nContent-Length: {}\r\n\r\n",
        range.start,
        range.end - 1,
        content.len(),
        range.len()
    );
    [head.as_bytes(), &content[range]].concat()
}

/// The `Range` field for it.
fn range(range: Range<usize>) -> String {
    format!("Range: bytes={}-{}\r\n", range.start, range.end - 1)
}

/// A client that reads the whole response, of which `begin` has come, and the next hop that sends
/// it.
fn begun(
    proxy: &Running,
    origin: &ScriptedOrigin,
    head: &str,
    begin: &[u8],
) -> (RawClient, OriginConnection) {
    let mut client = ask(proxy, "");
    let (hop, _) = origin.answer([head.as_bytes(), begin].concat());
    assert_eq!(client.read_head().status(), 200);
    assert!(client.read_exactly(begin.len()) == begin);
    (client, hop)
}
