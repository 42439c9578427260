//! The handshake with a client, and what it may take.

use super::tls_server::{ClientName, TlsServer};
use crate::tls::stream::{HandshakeStop, TlsStream};
use rustls::HandshakeKind;
use rustls::server::UnbufferedServerConnection;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use weir_measure::{Counters, Metric, TlsHandshakeEnd};

/// Bytes that a client may send for a handshake: a hello with the largest key share and an
/// encrypted inner hello has 4 KiB.
const CLIENT_BYTES_MAX: usize = 32 * 1024;

/// What a handshake may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeRules {
    /// Time for the whole.
    pub time: Duration,
    /// Handshakes under way at once, of a worker.
    pub most: usize,
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
///
/// When there are as many as are allowed, the oldest makes room for a new one: a client that is
/// served takes a few round trips, and those that hold handshakes open are the oldest.
#[derive(Debug, Default)]
pub struct Handshakes {
    under_way: RefCell<BTreeMap<u64, Rc<Place>>>,
    next: Cell<u64>,
}

#[derive(Debug, Default)]
struct Place {
    is_displaced: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Handshakes {
    /// Has the handshake of `client` with `server`.
    ///
    /// # Errors
    ///
    /// It does not come about, within what `rules` permit.
    pub async fn accept(
        &self,
        client: TcpStream,
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
        client: TcpStream,
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
        let place = self.enter(rules.most);
        let mut read = 0;
        let handshake = poll_fn(|cx| {
            if place.poll_displaced(cx).is_ready() {
                return Poll::Ready(Err(TlsHandshakeEnd::Displaced));
            }
            let done = stream.poll_handshake(cx, (&mut read, CLIENT_BYTES_MAX));
            done.map(|done| done.map_err(|stop| end_of(&stop)))
        });
        let done = timeout(rules.time, handshake).await;
        drop(place);
        match done.unwrap_or(Err(TlsHandshakeEnd::Timeout)) {
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

    /// One more is under way.
    fn enter(&self, most: usize) -> PlaceGuard<'_> {
        let number = self.next.get();
        self.next.set(number + 1);
        let place = Rc::new(Place::default());
        let mut under_way = self.under_way.borrow_mut();
        under_way.insert(number, Rc::clone(&place));
        while under_way.len() > most.max(1) {
            if let Some((_, oldest)) = under_way.pop_first() {
                oldest.is_displaced.set(true);
                if let Some(waker) = oldest.waker.take() {
                    waker.wake();
                }
            }
        }
        PlaceGuard {
            all: self,
            number,
            place,
        }
    }
}

/// A handshake under way, until this is dropped.
struct PlaceGuard<'h> {
    all: &'h Handshakes,
    number: u64,
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
        self.all.under_way.borrow_mut().remove(&self.number);
    }
}

fn end_of(stop: &HandshakeStop) -> TlsHandshakeEnd {
    use rustls::Error;
    match stop {
        HandshakeStop::Disconnected => TlsHandshakeEnd::Disconnected,
        HandshakeStop::TooLarge => TlsHandshakeEnd::TooLarge,
        HandshakeStop::Http => TlsHandshakeEnd::Http,
        HandshakeStop::Failed(Error::AlertReceived(_)) => TlsHandshakeEnd::Alert,
        HandshakeStop::Failed(Error::PeerIncompatible(_) | Error::NoApplicationProtocol) => {
            TlsHandshakeEnd::Incompatible
        }
        HandshakeStop::Failed(Error::General(_)) => TlsHandshakeEnd::NoCertificate,
        HandshakeStop::Failed(_) => TlsHandshakeEnd::Failed,
    }
}
