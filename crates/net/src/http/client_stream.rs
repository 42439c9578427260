//! One request of a client, and the response to it.

use super::http1::{Http1Content, Http1Response};
use super::http2::{self, Http2Stream};
use super::next_hop_stream::NextHopStream;
use super::request_content::{self, RequestContent};
use super::response_sender::ResponseSender;
use crate::client::ClientSocket;
use crate::deadline::Deadline;
use crate::next_hops::{DistinctPeers, HopKey};
use crate::tunnel::{self, Side, TunnelEnd, TunnelReport};
use std::cell::Cell;
use std::io;
use std::time::Duration;
use weir_semantics::NamedFields;
use weir_wire::{BodyLength, HeadLimits};

/// One request of a client, whose head was read, and the response to it.
///
/// The two halves are fields, so that content can be received while the response is sent.
pub struct ClientStream<'c> {
    /// The content of the request.
    pub content: RequestContent<'c>,
    /// Takes the response.
    pub response: ResponseSender<'c>,
    /// A limit on the waits of this request.
    pub deadline: &'c mut Deadline,
    next_hops: &'c Cell<DistinctPeers>,
}

/// What a stream of an HTTP/1.1 connection is made from.
pub struct Http1Client<'c> {
    /// The connection.
    pub socket: &'c ClientSocket,
    /// Bytes that were read behind the request head. What follows the content is left there.
    pub unread: &'c mut Vec<u8>,
    /// How long the content of the request is.
    pub length: BodyLength,
    /// Limits of its trailer section.
    pub trailers: HeadLimits,
    /// Fields of that which its head names in `Connection`.
    pub named: NamedFields,
    /// The client understands HTTP/1.1: chunks, interim responses.
    pub http11: bool,
    /// The client takes another response on the connection.
    pub is_persistent: bool,
    /// The limit on waits of the connection.
    pub deadline: &'c mut Deadline,
    /// The next hops that requests of the connection were sent to.
    pub next_hops: &'c Cell<DistinctPeers>,
}

impl<'c> ClientStream<'c> {
    /// The stream of a request on an HTTP/1.1 connection, which carries no other until this one has
    /// ended.
    #[must_use]
    pub fn http1(client: Http1Client<'c>) -> Self {
        let Http1Client {
            socket,
            unread,
            length,
            trailers,
            named,
            http11,
            is_persistent,
            deadline,
            next_hops,
        } = client;
        let content = Http1Content::new(socket, unread, length, (trailers, named));
        let response = Http1Response::new(socket, http11, is_persistent);
        Self {
            content: RequestContent::http1(content),
            response: ResponseSender::http1(response),
            deadline,
            next_hops,
        }
    }

    /// A stream of HTTP/2. Its request has content of `length`; of its trailer section the limits
    /// and the fields that are left out.
    #[must_use]
    pub fn http2(
        stream: Http2Stream,
        length: BodyLength,
        trailers: (HeadLimits, NamedFields),
        deadline: &'c mut Deadline,
        next_hops: &'c Cell<DistinctPeers>,
    ) -> Self {
        let (content, response) = stream.split(length, trailers);
        Self {
            content: RequestContent::http2(content),
            response: ResponseSender::http2(response),
            deadline,
            next_hops,
        }
    }

    /// A stream of the test double.
    #[cfg(feature = "multiplexed-double")]
    #[must_use]
    pub fn double(
        stream: super::double::DoubleStream,
        deadline: &'c mut Deadline,
        next_hops: &'c Cell<DistinctPeers>,
    ) -> Self {
        Self {
            content: RequestContent::double(stream.content()),
            response: ResponseSender::double(stream.response()),
            deadline,
            next_hops,
        }
    }

    /// Enters `hop` among the next hops of the connection's requests; returns whether it is a new
    /// one.
    pub fn is_new_next_hop(&self, hop: &HopKey) -> bool {
        let mut next_hops = self.next_hops.take();
        let is_new = next_hops.insert_hop(hop);
        self.next_hops.set(next_hops);
        is_new
    }

    /// Whether the response is whole and the connection can carry another request behind this one.
    #[must_use]
    pub fn is_persistent(&self) -> bool {
        self.response.is_complete() && self.response.is_persistent() && self.content.is_ended()
    }

    /// Ends HTTP on this stream: sends `head`, which is complete, then `surplus`, then relays bytes
    /// both ways between the client and `next_hop` (see [`tunnel::relay`]), which has a connection
    /// for itself. The bytes of head and tunnel are in the report, and the response counts none of
    /// them.
    pub async fn tunnel(
        &mut self,
        next_hop: &mut NextHopStream,
        (head, surplus): (&[u8], &[u8]),
        idle_limit: Duration,
        drain: impl Future<Output = ()>,
    ) -> TunnelReport {
        let unsupported = |side| TunnelReport {
            head_bytes: 0,
            to_client_bytes: 0,
            to_next_hop_bytes: 0,
            end: TunnelEnd::Error(side, io::ErrorKind::Unsupported),
        };
        let Some(next_hop) = next_hop.tunnel_end() else {
            return unsupported(Side::NextHop);
        };
        match &mut self.content.kind {
            request_content::Kind::Http1(content) => {
                let (socket, behind) = content.release();
                let first = [head, surplus].concat();
                let firsts = (&*behind, &*first);
                let relay = tunnel::relay_over(socket.into(), next_hop, firsts, idle_limit, drain);
                relay.await.behind_head(head)
            }
            request_content::Kind::Http2(content) => {
                let Some(response) = self.response.http2_mut() else {
                    return unsupported(Side::Client);
                };
                let halves = (content, response);
                http2::tunnel::relay(halves, next_hop, (head, surplus), idle_limit, drain).await
            }
            #[cfg(feature = "multiplexed-double")]
            request_content::Kind::Double(content) => {
                content
                    .tunnel(next_hop.end.tcp(), (head, surplus), drain)
                    .await
            }
        }
    }
}
