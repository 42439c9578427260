//! Connections that balancers hand on, each behind a header that says whose it is.

use super::begun::{self, Begun};
use crate::log::client::ListenerFacts;
use crate::worker::core::Worker;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::timeout;
use weir_measure::{Metric, ProxyHeaderEnd};
use weir_net::client::{ProxyHeaderError, read_proxy_header};
use weir_net::workers::Accepted;

/// Longest time until a header is complete: a balancer sends it as it connects.
const HEADER_TIME_MAX: Duration = Duration::from_secs(5);

/// Takes the header of a connection of a listener that has balancers in front, and finds out what
/// follows.
pub(crate) async fn begin(mut accepted: Accepted<ListenerFacts>, worker: Rc<Worker>) -> Begun {
    let (end, client) = read(&mut accepted).await;
    worker.counters().inc(Metric::ProxyHeaders(end));
    match (end, client) {
        (ProxyHeaderEnd::Client, Some(client)) => accepted.peer = client,
        (ProxyHeaderEnd::Own, _) => {}
        // what follows is of no client that is known
        _ => return Begun::Ended,
    }
    begun::begin(accepted, worker).await
}

/// Reads the header; the client that it names.
async fn read(accepted: &mut Accepted<ListenerFacts>) -> (ProxyHeaderEnd, Option<SocketAddr>) {
    // whose word is not believed gets no answer: it may be a client that has found the port
    if !accepted.listener.has_balancer(accepted.peer.ip()) {
        return (ProxyHeaderEnd::Refused, None);
    }
    let header = read_proxy_header(&mut accepted.stream);
    match timeout(HEADER_TIME_MAX, header).await {
        Ok(Ok(Some(client))) => {
            let client = SocketAddr::new(client.ip().to_canonical(), client.port());
            (ProxyHeaderEnd::Client, Some(client))
        }
        Ok(Ok(None)) => (ProxyHeaderEnd::Own, None),
        Ok(Err(ProxyHeaderError::Malformed)) => (ProxyHeaderEnd::Malformed, None),
        Ok(Err(ProxyHeaderError::Disconnected)) => (ProxyHeaderEnd::Disconnected, None),
        Err(_) => (ProxyHeaderEnd::Timeout, None),
    }
}
