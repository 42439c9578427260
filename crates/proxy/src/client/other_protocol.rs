//! Clients that speak TLS or HTTP/2 to a listener of HTTP/1.1 in clear, or HTTP in clear to one
//! with TLS: what they and the operator are told.

use crate::config::LogClients;
use crate::log::client::{ClientFacts, ForPeers, HttpVersions, ListenerFacts};
use crate::log::module_log::RefusalKind;
use crate::worker::core::Worker;
use std::net::SocketAddr;

/// The type of a record of a handshake.
const HANDSHAKE_RECORD: u8 = 22;

/// The first line of a connection of HTTP/2 (RFC 9113 §3.4).
const HTTP2_LINE: &[u8] = b"PRI * HTTP/2.0\r\n";

/// What a client is told whose `input` is no request of HTTP/1.1, but begins another protocol; the
/// operator gets a line of it.
pub(super) fn refuse(
    worker: &Worker,
    client: ClientFacts<'_>,
    input: &[u8],
) -> Option<&'static str> {
    let listener = client.listener;
    let (what, told) = if is_handshake(input) {
        (
            "begins TLS, and this listener takes HTTP in clear: URLs begin with http://, or the listener needs `tls`",
            "this port takes HTTP in clear and no TLS: use an http:// URL, or http:// for the proxy",
        )
    } else if input.starts_with(HTTP2_LINE) && may_permit_http2(listener) {
        (
            "begins HTTP/2, and this listener takes HTTP/1.1 alone: `http2 = true` in its [[listener]] table permits both",
            "this port takes HTTP/1.1 and no HTTP/2",
        )
    } else {
        return None;
    };
    tell_other_protocol(worker, listener, client.peer, what);
    Some(told)
}

/// Whether a setting of this listener would have let a client begin HTTP/2 in clear.
fn may_permit_http2(listener: &ListenerFacts) -> bool {
    let is_for_clients = listener.peers == ForPeers::No;
    is_for_clients && !listener.is_tls() && matches!(listener.versions, HttpVersions::Http1)
}

/// Whether what a client of a listener in clear has sent is the first record of a TLS handshake
/// (RFC 8446 §5.1).
fn is_handshake(input: &[u8]) -> bool {
    input.starts_with(&[HANDSHAKE_RECORD, 3])
}

/// Tells the operator of a client that speaks HTTP in clear to a listener with TLS.
pub(super) fn tell_http_in_clear(worker: &Worker, listener: &ListenerFacts, peer: SocketAddr) {
    let what = "speaks HTTP in clear, and this listener takes TLS: URLs begin with https://";
    tell_other_protocol(worker, listener, peer, what);
}

/// Tells the operator of a client whose protocol is not that of its listener.
fn tell_other_protocol(worker: &Worker, listener: &ListenerFacts, peer: SocketAddr, what: &str) {
    let settings = worker.settings();
    let client = match settings.config.log.clients {
        LogClients::Full => format!("client {}", peer.ip().to_canonical()),
        LogClients::Hash => "client".to_owned(),
    };
    let log = &worker.shared.module_log;
    log.write_refusal(worker.now().tick, RefusalKind::OtherProtocol, || {
        let to = &listener.default;
        let port = to.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("a {client} of {}{port} {what}", to.host.as_str())
    });
}
