//! One request to a next hop, and the response to it.

#[cfg(feature = "multiplexed-double")]
use super::double::DoubleExchange;
use super::http1::Http1NextHop;
use super::http2::next_hop::{self, ConnectionNeed, Http2NextHop, Opened};
use super::next_hop_facts::NextHopFacts;
use super::request_sender::RequestSender;
use super::response_receiver::{self, ResponseReceiver};
use crate::filter::ReceivedFilter;
use crate::next_hops::{
    ClientUse, ConnectFailure, Connection, ConnectionRules, Destination, obtain,
};
use crate::tunnel::NextHopEnd;
use crate::workers::Worker;
use std::any::Any;
use std::net::IpAddr;
use std::sync::Arc;
use weir_measure::Counters;
use weir_policy::Digest;

/// One request to a next hop, and the response to it. Dropping it before the response is whole
/// stops the response.
pub struct NextHopStream {
    kind: Kind,
    /// What the content of the response passes.
    filter: Option<Box<ReceivedFilter>>,
    /// Dropped when it ends.
    held: Option<Box<dyn Any>>,
    /// What it takes of its client's share of the connections.
    _client_use: Option<Box<ClientUse>>,
}

enum Kind {
    /// On an HTTP/1.1 connection, which it has for itself.
    Http1(Box<Http1NextHop>),
    /// On a stream of HTTP/2.
    Http2(Box<Http2NextHop>),
    /// Of the test double.
    #[cfg(feature = "multiplexed-double")]
    Double(DoubleExchange),
}

impl NextHopStream {
    /// A stream on a connection as [`obtain`] finds or opens one, or of HTTP/2 where the next hop
    /// speaks that, as the request needs it.
    ///
    /// Behind a link, which counts by connection, HTTP/1.1 is spoken. It waits while the client has
    /// its share of requests to that next hop.
    ///
    /// # Errors
    ///
    /// As [`obtain`], or the client has its share of the connections.
    pub async fn open(
        worker: &Worker,
        rules: &Arc<ConnectionRules>,
        destination: &Destination,
        need: ConnectionNeed,
    ) -> Result<Self, ConnectFailure> {
        #[cfg(feature = "multiplexed-double")]
        if let Some(double) = super::double::at(&destination.hop) {
            return Ok(Self::of(Kind::Double(double.open().owned())));
        }
        if !destination.hop.http2 || rules.links.of(&destination.hop).is_some() {
            return Self::open_http1(worker, rules, destination, need).await;
        }
        let open = worker.network().open_connections();
        let client_use = open.begin_use(worker, rules, destination).await?;
        // boxed: it is to cost requests by HTTP/1.1 nothing
        let opened = Box::pin(next_hop::open(worker, rules, destination, need)).await?;
        let stream = match opened {
            Opened::Http1(connection) => {
                connection.check_silent()?;
                Self::http1(connection)
            }
            Opened::Http2(stream) => Self::of(Kind::Http2(stream)),
        };
        Ok(Self {
            _client_use: Some(Box::new(client_use)),
            ..stream
        })
    }

    /// The same by HTTP/1.1, whatever else the next hop speaks: for a request that is to switch
    /// protocols, or has a target that HTTP/2 does not have.
    ///
    /// # Errors
    ///
    /// As [`obtain`].
    pub async fn open_http1(
        worker: &Worker,
        rules: &Arc<ConnectionRules>,
        destination: &Destination,
        need: ConnectionNeed,
    ) -> Result<Self, ConnectFailure> {
        let fresh = need.is_fresh();
        let open = worker.network().open_connections();
        let client_use = open.begin_use(worker, rules, destination).await?;
        let connection = match destination.hop.http2 {
            false => obtain(worker, rules, destination, fresh).await?,
            true => {
                let by_http1 = Destination {
                    hop: destination.hop.clone().by_http1(),
                    ..destination.clone()
                };
                // boxed: it is to cost others nothing
                Box::pin(async move { obtain(worker, rules, &by_http1, fresh).await }).await?
            }
        };
        connection.check_silent()?;
        Ok(Self {
            _client_use: Some(Box::new(client_use)),
            ..Self::http1(connection)
        })
    }

    /// The stream of a tunnel.
    #[must_use]
    pub fn of_tunnel((connection, client_use): (Connection, ClientUse)) -> Self {
        Self {
            _client_use: Some(Box::new(client_use)),
            ..Self::http1(connection)
        }
    }

    /// The stream of a request on an HTTP/1.1 connection.
    #[must_use]
    pub fn http1(connection: Connection) -> Self {
        // memory first, so that it is made there
        let room = Box::new_uninit();
        let stream = Box::write(room, Http1NextHop::new(connection));
        Self::of(Kind::Http1(stream))
    }

    const fn of(kind: Kind) -> Self {
        Self {
            kind,
            filter: None,
            held: None,
            _client_use: None,
        }
    }

    /// Keeps `value` until it ends, wherever it is then: for a caller that counts what its next hop
    /// has to do.
    pub fn hold(&mut self, value: Box<dyn Any>) {
        self.held = Some(value);
    }

    /// What is known of its connection.
    #[must_use]
    pub fn facts(&self) -> NextHopFacts<'_> {
        match &self.kind {
            Kind::Http1(stream) => stream.facts(),
            Kind::Http2(stream) => stream.facts(),
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(stream) => stream.facts(),
        }
    }

    /// Whether the next hop has refused the request, or was not sent it: it has not acted upon it
    /// and will not (RFC 9113 §8.7).
    #[must_use]
    pub fn is_unprocessed(&self) -> bool {
        match &self.kind {
            Kind::Http1(_) => false,
            Kind::Http2(stream) => stream.is_unprocessed(),
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(_) => false,
        }
    }

    /// Whether its connection, which has carried other requests, too, has ended without an answer
    /// to this one.
    #[must_use]
    pub fn has_shared_connection_broken(&self) -> bool {
        match &self.kind {
            Kind::Http1(_) => false,
            Kind::Http2(stream) => stream.has_shared_connection_broken(),
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(_) => false,
        }
    }

    /// What its repetition needs, if it gets no answer.
    #[must_use]
    pub fn repetition_need(&self) -> ConnectionNeed {
        match &self.kind {
            Kind::Http1(_) => ConnectionNeed::Fresh,
            Kind::Http2(stream) => stream.repetition_need(),
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(_) => ConnectionNeed::Fresh,
        }
    }

    /// Whether HTTP/2 is spoken on it.
    #[must_use]
    pub const fn is_http2(&self) -> bool {
        matches!(self.kind, Kind::Http2(_))
    }

    /// Whether it has its connection for itself: to stop its response is to close that.
    #[must_use]
    pub const fn has_own_connection(&self) -> bool {
        match &self.kind {
            Kind::Http1(_) => true,
            Kind::Http2(_) => false,
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(_) => false,
        }
    }

    /// Counts that it carries a request of the client at `client`.
    pub fn count_request(&mut self, counters: &Counters, client: IpAddr) {
        match &mut self.kind {
            Kind::Http1(stream) => stream.count_request(counters, client),
            Kind::Http2(stream) => stream.count_request(counters, client),
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(stream) => stream.count_request(counters, client),
        }
    }

    /// Its two halves, which are used at once.
    pub fn split(&mut self) -> (RequestSender<'_>, ResponseReceiver<'_>) {
        match &mut self.kind {
            Kind::Http1(stream) => {
                let (request, response) = stream.split();
                let response = response_receiver::Kind::Http1(response);
                (
                    RequestSender::Http1(request),
                    ResponseReceiver::new(response, &mut self.filter),
                )
            }
            Kind::Http2(stream) => {
                let (request, response) = stream.split();
                let response = response_receiver::Kind::Http2(response);
                (
                    RequestSender::Http2(request),
                    ResponseReceiver::new(response, &mut self.filter),
                )
            }
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(stream) => {
                let response = response_receiver::Kind::Double(stream.half());
                (
                    RequestSender::Double(stream.half()),
                    ResponseReceiver::new(response, &mut self.filter),
                )
            }
        }
    }

    /// The half that receives the response.
    pub fn response(&mut self) -> ResponseReceiver<'_> {
        self.split().1
    }

    /// Ends it: its connection is given back if it can carry another request. That takes a request
    /// and a response which are whole, and a next hop that was not offered more than
    /// `offered_bytes_max` of the next response. Whether it was.
    pub fn release(self, worker: &Worker, offered_bytes_max: u64) -> bool {
        match self.kind {
            Kind::Http1(stream) => stream.release(worker, offered_bytes_max),
            Kind::Http2(stream) => stream.release(),
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(_) => true,
        }
    }

    /// Says whether no client waits for what it brings: others go first over its link.
    pub fn set_background(&mut self, is_background: bool) {
        match &mut self.kind {
            Kind::Http1(stream) => stream.set_background(is_background),
            // it is over no link
            Kind::Http2(_) => {}
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(_) => {}
        }
    }

    /// Whether it is over a link that has nothing for what no client waits for.
    #[must_use]
    pub fn is_link_scarce(&self) -> bool {
        match &self.kind {
            Kind::Http1(stream) => stream.is_link_scarce(),
            Kind::Http2(_) => false,
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(_) => false,
        }
    }

    /// Says that what it brings is a range, of this target and for this client: all such ranges
    /// together are as large to its link as one response.
    pub fn set_range_of(&mut self, of: Digest) {
        match &mut self.kind {
            Kind::Http1(stream) => stream.set_range_of(of),
            Kind::Http2(_) => {}
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(_) => {}
        }
    }

    /// Gives its connection back, on which nothing was sent.
    pub fn release_unused(self, worker: &Worker) {
        match self.kind {
            Kind::Http1(stream) => stream.release_unused(worker),
            Kind::Http2(_) => {}
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(_) => {}
        }
    }

    /// Its connection is not used for HTTP any more: it counts as a tunnel, and is not pooled.
    /// Returns the bytes received behind the head.
    pub fn become_tunnel(&mut self) -> Vec<u8> {
        match &mut self.kind {
            Kind::Http1(stream) => stream.become_tunnel(),
            Kind::Http2(_) => Vec::new(),
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(_) => Vec::new(),
        }
    }

    /// The connection with its link, if the stream has one for itself.
    pub(super) fn tunnel_end(&mut self) -> Option<NextHopEnd<'_>> {
        match &mut self.kind {
            Kind::Http1(stream) => Some(stream.tunnel_end()),
            Kind::Http2(_) => None,
            #[cfg(feature = "multiplexed-double")]
            Kind::Double(_) => None,
        }
    }
}
