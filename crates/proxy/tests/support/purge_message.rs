//! Messages of members about purges.

use super::client::RawClient;
use std::net::SocketAddr;

/// Has the node with this peer listener validate all that it has, as member `a` tells it to;
/// whether that survives a crash, as it says.
pub(crate) fn tell_to_validate(peer_listener: SocketAddr) -> bool {
    let mut peer = RawClient::connect(peer_listener);
    let mut tell = |session: &str, number: u64| {
        let text = format!("purges 1 {session} {number}\nbehind x\nvalidate 0\n");
        let known = match session {
            "-" => String::new(),
            session => format!(", session=:{session}:"),
        };
        peer.ask(format!(
            "PUT /weir/purges HTTP/1.1\r\nHost: c\r\n\
             Weir-Peer: node=a, mode=purges{known}, number={number}\r\n\
             Content-Length: {}\r\n\r\n{text}",
            text.len()
        ))
    };
    let refused = tell("-", 1);
    assert_eq!(refused.status(), 409);
    let text = refused.text();
    let mut words = text.split_whitespace().skip(2);
    let session = words.next().expect("a session");
    let last = words.next().and_then(|last| last.parse::<u64>().ok());
    let answer = tell(session, last.expect("a number") + 1);
    assert_eq!(answer.status(), 200);
    let text = answer.text();
    let is_durable = text.contains("\ndurable 0");
    assert!(is_durable || text.contains("\nin-force 0"), "{text}");
    is_durable
}
