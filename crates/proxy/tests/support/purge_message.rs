//! Messages of members about purges.

use super::client::RawClient;
use std::net::SocketAddr;

/// Has the node with this peer listener validate all that it has, as member `a` tells it to.
pub(crate) fn tell_to_validate(peer_listener: SocketAddr) {
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
    let session = text.split_whitespace().nth(2).expect("a session");
    let answer = tell(session, 1000);
    assert_eq!(answer.status(), 200);
    assert!(answer.text().contains("durable"), "{}", answer.text());
}
