//! Notices that the client of a stream has disconnected.

#[cfg(feature = "multiplexed-double")]
use super::double::DoubleResponse;
use super::http2::Http2Disconnect;
use crate::client::{ClientDisconnect, DisconnectCause, disconnected};
use std::cell::Cell;
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// What a disconnect of a stream's client is noticed by.
#[derive(Clone)]
pub enum DisconnectSource<'c> {
    /// The connection, which the stream has for itself.
    Http1(&'c TcpStream),
    /// A stream of HTTP/2.
    Http2(Http2Disconnect),
    /// A stream of the test double.
    #[cfg(feature = "multiplexed-double")]
    Double(DoubleResponse),
}

impl DisconnectSource<'_> {
    /// Ready when the client has reset the stream, also while bytes that it has sent are not
    /// received.
    pub async fn reset(&self) {
        match self {
            // an error of the reactor is the end of the runtime, and of this task
            Self::Http1(socket) => drop(socket.ready(Interest::ERROR).await),
            Self::Http2(stream) => poll_fn(|cx| stream.poll(cx)).await,
            #[cfg(feature = "multiplexed-double")]
            Self::Double(response) => {
                poll_fn(|cx| response.poll_disconnect(cx)).await;
            }
        }
    }

    /// Ready when the client has disconnected, whatever it has sent. `moved` changes whenever a
    /// byte of the response has moved (see [`disconnected`]).
    pub async fn disconnected(&self, half_closed: Duration, moved: &Cell<u64>) -> DisconnectCause {
        match self {
            Self::Http1(socket) => disconnected(socket, half_closed, moved).await,
            Self::Http2(_) => {
                self.reset().await;
                DisconnectCause::Reset
            }
            #[cfg(feature = "multiplexed-double")]
            Self::Double(_) => {
                self.reset().await;
                DisconnectCause::Reset
            }
        }
    }
}

/// Waits for the disconnect of a stream's client while there is nothing to send to it.
pub struct Disconnect<'c> {
    source: DisconnectSource<'c>,
    presence: ClientDisconnect,
}

impl<'c> Disconnect<'c> {
    pub(super) fn new(source: DisconnectSource<'c>, half_closed: Duration) -> Self {
        Self {
            source,
            presence: ClientDisconnect::new(half_closed),
        }
    }

    /// Ready once the client has disconnected, and from then on.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &self.source {
            DisconnectSource::Http1(socket) => self.presence.poll(socket, cx),
            DisconnectSource::Http2(stream) => stream.poll(cx),
            #[cfg(feature = "multiplexed-double")]
            DisconnectSource::Double(response) => response.poll_disconnect(cx),
        }
    }

    /// Bytes were sent: the time of a half-closed client starts again.
    pub fn moved(&mut self) {
        self.presence.moved();
    }
}
