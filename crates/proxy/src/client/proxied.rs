//! Connections that balancers hand on, each behind a header that says whose it is.

use super::protocol::{self, DetectedProtocol};
use crate::config::LogClients;
use crate::log::client::ListenerFacts;
use crate::log::module_log::RefusalKind;
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
pub(crate) async fn begin(
    mut accepted: Accepted<ListenerFacts>,
    worker: Rc<Worker>,
) -> DetectedProtocol {
    let (end, client) = read(&mut accepted).await;
    worker.counters().inc(Metric::ProxyHeaders(end));
    match (end, client) {
        (ProxyHeaderEnd::Client, Some(client)) => accepted.peer = client,
        (ProxyHeaderEnd::Own, _) => {}
        // what follows is of no client that is known
        _ => {
            say(&accepted, &worker, end);
            return DetectedProtocol::Ended;
        }
    }
    protocol::detect(accepted, worker).await
}

/// Tells the operator why a connection was closed without an answer.
fn say(accepted: &Accepted<ListenerFacts>, worker: &Worker, end: ProxyHeaderEnd) {
    let why = match end {
        ProxyHeaderEnd::Refused => "its address is not in listener[].proxy_protocol",
        ProxyHeaderEnd::Malformed => "it does not begin with a PROXY header",
        ProxyHeaderEnd::Timeout => "it has sent no PROXY header in time",
        // such as a check of health
        _ => return,
    };
    let settings = worker.settings();
    let from = match settings.config.log.clients {
        LogClients::Full => format!(" from {}", accepted.peer.ip().to_canonical()),
        // it may be a client that has found the port
        LogClients::Hash => String::new(),
    };
    let log = &worker.shared.module_log;
    log.write_refusal(worker.now().tick, RefusalKind::Balancer, || {
        let to = &accepted.listener.default;
        let port = to.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!(
            "refused a connection{from} to {}{port}: {why}",
            to.host.as_str()
        )
    });
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
