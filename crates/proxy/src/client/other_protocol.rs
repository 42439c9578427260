//! Clients that speak TLS to a listener in clear, or HTTP in clear to one with TLS: what they and
//! the operator are told.

use crate::config::LogClients;
use crate::log::client::{ClientFacts, ListenerFacts};
use crate::log::module_log::RefusalKind;
use crate::worker::core::Worker;
use std::net::SocketAddr;

/// The type of a record of a handshake.
const HANDSHAKE_RECORD: u8 = 22;

/// Whether what a client of a listener in clear has sent is the first record of a TLS handshake
/// (RFC 8446 §5.1).
pub(super) fn is_handshake(input: &[u8]) -> bool {
    input.starts_with(&[HANDSHAKE_RECORD, 3])
}

/// Tells the operator of a client that begins such a handshake; what it is told itself.
pub(super) fn refuse_handshake(worker: &Worker, client: ClientFacts<'_>) -> &'static str {
    let what = "begins TLS, and this listener takes HTTP in clear: URLs begin with http://, or the listener needs `tls`";
    tell_other_protocol(worker, client.listener, client.peer, what);
    "this port takes HTTP in clear and no TLS: use an http:// URL, or http:// for the proxy"
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
