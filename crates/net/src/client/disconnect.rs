//! Polling for the disconnect of a client in a task that also waits for other things.
//!
//! A reset is a disconnect at once. After a FIN the client may still read: it is served for a
//! limited time without progress, and then counts as disconnected. After a FIN, or the next
//! request, the socket reports nothing more until something is written.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// What is known of a client to which nothing is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Presence {
    /// It is connected, as far as the socket shows.
    #[default]
    Here,
    /// It has sent a FIN: it may still read.
    HalfClosed,
    /// It has sent its next request, which hides a FIN behind it.
    Pipelined,
    /// It has reset the connection.
    Gone,
}

impl Presence {
    /// Looks at the socket; the task is woken when that may have changed.
    fn poll(&mut self, stream: &TcpStream, cx: &mut Context<'_>) -> Self {
        if *self == Self::Here {
            let mut byte = [0];
            *self = match stream.poll_peek(cx, &mut ReadBuf::new(&mut byte)) {
                Poll::Pending => Self::Here,
                Poll::Ready(Ok(0)) => Self::HalfClosed,
                Poll::Ready(Ok(_)) => Self::Pipelined,
                Poll::Ready(Err(_)) => Self::Gone,
            };
        }
        *self
    }
}

/// Waits for the disconnect of a client while there is nothing to send to it.
#[derive(Debug)]
pub struct ClientDisconnect {
    presence: Presence,
    half_closed: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl ClientDisconnect {
    /// A client that has closed its sending side counts as disconnected after `half_closed`.
    pub fn new(half_closed: Duration) -> Self {
        Self {
            presence: Presence::Here,
            half_closed,
            timer: None,
        }
    }

    /// Ready once it has disconnected, and from then on.
    pub fn poll(&mut self, stream: &TcpStream, cx: &mut Context<'_>) -> Poll<()> {
        match self.presence.poll(stream, cx) {
            Presence::Gone => Poll::Ready(()),
            Presence::HalfClosed => {
                let after = self.half_closed;
                let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(after)));
                timer.as_mut().poll(cx)
            }
            Presence::Here | Presence::Pipelined => Poll::Pending,
        }
    }

    /// Bytes were sent: the time of a half-closed client starts again.
    pub fn moved(&mut self) {
        self.timer = None;
    }
}
