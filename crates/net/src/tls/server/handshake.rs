//! The handshake with a client, and what it may take.

use super::tls_server::{ClientName, TlsServer};
use super::validations::ACME_TLS;
use crate::tls::stream::{HandshakeStop, TlsStream};
use rustls::HandshakeKind;
use rustls::server::UnbufferedServerConnection;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::net::IpAddr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use weir_measure::{Counters, Metric, TlsHandshakeEnd};
use weir_policy::connections::{HandshakeId, HandshakeLimits, HandshakePlaces};
use weir_policy::destination::ClientNetwork;

/// Bytes that a client may send for a handshake: a hello with the largest key share and an
/// encrypted inner hello has 4 KiB.
const CLIENT_BYTES_MAX: usize = 32 * 1024;

/// What a handshake may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeRules {
    /// Time for the whole.
    pub time: Duration,
    /// Handshakes under way at once, of a worker.
    pub places: HandshakeLimits,
}

/// Why a connection has no TLS.
#[derive(Debug)]
pub enum HandshakeFailure {
    /// The client has begun with HTTP in clear: the connection, from which no more than that
    /// begin was read.
    Http(TcpStream),
    /// Something else, which was counted; the connection is closed.
    Closed,
}

/// The handshakes under way of a worker.
#[derive(Debug, Default)]
pub struct Handshakes {
    places: RefCell<HandshakePlaces>,
    under_way: RefCell<HashMap<HandshakeId, Rc<Place>>>,
}

#[derive(Debug, Default)]
struct Place {
    is_displaced: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Handshakes {
    /// Has the handshake with `server` of a client, whose address this is.
    ///
    /// # Errors
    ///
    /// It does not come about, within what `rules` permit.
    pub async fn accept(
        &self,
        client: (TcpStream, IpAddr),
        server: &TlsServer,
        rules: HandshakeRules,
        counters: &Counters,
    ) -> Result<(TlsStream, ClientName), HandshakeFailure> {
        let (end, accepted) = self.attempt(client, server, rules).await;
        counters.inc(Metric::TlsHandshakes(end));
        accepted
    }

    async fn attempt(
        &self,
        (client, address): (TcpStream, IpAddr),
        server: &TlsServer,
        rules: HandshakeRules,
    ) -> (
        TlsHandshakeEnd,
        Result<(TlsStream, ClientName), HandshakeFailure>,
    ) {
        let (config, certificate) = server.for_connection();
        let Ok(side) = UnbufferedServerConnection::new(config) else {
            return (TlsHandshakeEnd::Failed, Err(HandshakeFailure::Closed));
        };
        let stream = TlsStream::new(client, side);
        let place = self.enter(ClientNetwork::of(address), rules.places);
        let mut read = 0;
        let handshake = poll_fn(|cx| {
            if place.poll_displaced(cx).is_ready() {
                return Poll::Ready(Err(TlsHandshakeEnd::Displaced));
            }
            let done = stream.poll_handshake(cx, (&mut read, CLIENT_BYTES_MAX));
            done.map(|done| done.map_err(|stop| end_of(&stop, certificate.is_lacking())))
        });
        let done = timeout(rules.time, handshake).await;
        drop(place);
        match done.unwrap_or(Err(TlsHandshakeEnd::Timeout)) {
            // the certificate is all that an authority wants (RFC 8737 §3)
            Ok(()) if stream.has_protocol(ACME_TLS) => {
                stream.announce_end();
                (TlsHandshakeEnd::Validation, Err(HandshakeFailure::Closed))
            }
            Ok(()) => {
                let kind = stream.with_side(|side| side.handshake_kind());
                let end = match kind {
                    Some(HandshakeKind::Resumed) => TlsHandshakeEnd::Resumed,
                    _ => TlsHandshakeEnd::Full,
                };
                (end, Ok((stream, ClientName::new(certificate))))
            }
            Err(TlsHandshakeEnd::Http) => {
                let client = stream.into_tcp();
                (TlsHandshakeEnd::Http, Err(HandshakeFailure::Http(client)))
            }
            Err(end) => (end, Err(HandshakeFailure::Closed)),
        }
    }

    /// One more is under way; others make room for it.
    fn enter(&self, client: ClientNetwork, limits: HandshakeLimits) -> PlaceGuard<'_> {
        let mut places = self.places.borrow_mut();
        let mut under_way = self.under_way.borrow_mut();
        let id = places.enter(client);
        let place = Rc::new(Place::default());
        under_way.insert(id, Rc::clone(&place));
        while let Some(displaced) = places.displaced(client, limits) {
            if let Some(displaced) = under_way.remove(&displaced) {
                displaced.is_displaced.set(true);
                if let Some(waker) = displaced.waker.take() {
                    waker.wake();
                }
            }
        }
        PlaceGuard {
            all: self,
            id,
            place,
        }
    }
}

/// A handshake under way, until this is dropped.
struct PlaceGuard<'h> {
    all: &'h Handshakes,
    id: HandshakeId,
    place: Rc<Place>,
}

impl PlaceGuard<'_> {
    /// Ready once it is to make room.
    fn poll_displaced(&self, cx: &Context<'_>) -> Poll<()> {
        if self.place.is_displaced.get() {
            return Poll::Ready(());
        }
        *self.place.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for PlaceGuard<'_> {
    fn drop(&mut self) {
        self.all.places.borrow_mut().leave(self.id);
        self.all.under_way.borrow_mut().remove(&self.id);
    }
}

/// `is_lacking`: there is no certificate for the client.
fn end_of(stop: &HandshakeStop, is_lacking: bool) -> TlsHandshakeEnd {
    use rustls::Error;
    match stop {
        HandshakeStop::Disconnected => TlsHandshakeEnd::Disconnected,
        HandshakeStop::TooLarge => TlsHandshakeEnd::TooLarge,
        HandshakeStop::Http => TlsHandshakeEnd::Http,
        HandshakeStop::Failed(_) if is_lacking => TlsHandshakeEnd::NoCertificate,
        HandshakeStop::Failed(Error::AlertReceived(_)) => TlsHandshakeEnd::Alert,
        HandshakeStop::Failed(Error::PeerIncompatible(_) | Error::NoApplicationProtocol) => {
            TlsHandshakeEnd::Incompatible
        }
        HandshakeStop::Failed(_) => TlsHandshakeEnd::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_without_a_kind_is_no_lack_of_a_certificate() {
        let stop = HandshakeStop::Failed(rustls::Error::General("something else".into()));
        assert_eq!(end_of(&stop, false), TlsHandshakeEnd::Failed);
        assert_eq!(end_of(&stop, true), TlsHandshakeEnd::NoCertificate);
    }
}
