//! What a connection speaks, which its first bytes say: TLS and what the handshake chooses, or in
//! clear one of two versions of HTTP.

use super::connection::AcceptedClient;
use super::{http2, tls};
use crate::log::client::{HttpVersions, ListenerFacts};
use crate::worker::core::Worker;
use std::rc::Rc;
use weir_net::workers::Accepted;

/// What a connection speaks, as far as its first bytes say.
pub(crate) enum DetectedProtocol {
    /// It has ended.
    Ended,
    /// It speaks HTTP/1.1.
    Http1(AcceptedClient),
    /// It speaks HTTP/2.
    Http2(AcceptedClient),
}

/// Finds out what a connection speaks.
pub(crate) async fn detect(
    client: Accepted<ListenerFacts>,
    worker: Rc<Worker>,
) -> DetectedProtocol {
    match (client.listener.is_tls(), client.listener.versions) {
        (true, _) => tls::begin(client, worker).await,
        (false, HttpVersions::Http1) => DetectedProtocol::Http1(client.into()),
        (false, _) => http2::detect_in_clear(client, worker).await,
    }
}
