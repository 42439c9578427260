//! Noticing that a client has gone while nothing is sent to it.
//!
//! A reset says so at once. A FIN may be half of a close only, whose client still reads: it is
//! served on for a limited time without progress, and then counts as gone. Once a FIN, or the next
//! request, has been seen, looking tells nothing more: what is written tells then.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// What is known of a client that is not being written to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Presence {
    /// It is there, as far as can be told.
    #[default]
    Here,
    /// It has sent a FIN: it may still read.
    HalfClosed,
    /// It has sent its next request: there is no looking past it.
    Ahead,
    /// It has reset the connection.
    Gone,
}

impl Presence {
    /// Looks, and is woken when there is news.
    fn poll(&mut self, stream: &TcpStream, cx: &mut Context<'_>) -> Self {
        if *self == Self::Here {
            let mut byte = [0];
            *self = match stream.poll_peek(cx, &mut ReadBuf::new(&mut byte)) {
                Poll::Pending => Self::Here,
                Poll::Ready(Ok(0)) => Self::HalfClosed,
                Poll::Ready(Ok(_)) => Self::Ahead,
                Poll::Ready(Err(_)) => Self::Gone,
            };
        }
        *self
    }
}

/// Waits for a client to leave while there is nothing to send to it.
#[derive(Debug)]
pub struct ClientDisconnect {
    presence: Presence,
    half_closed: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl ClientDisconnect {
    /// A client that has closed one side is waited for `half_closed` long.
    pub fn new(half_closed: Duration) -> Self {
        Self {
            presence: Presence::Here,
            half_closed,
            timer: None,
        }
    }

    /// Ready once it has gone.
    pub fn poll(&mut self, stream: &TcpStream, cx: &mut Context<'_>) -> Poll<()> {
        match self.presence.poll(stream, cx) {
            Presence::Gone => Poll::Ready(()),
            Presence::HalfClosed => {
                let after = self.half_closed;
                let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(after)));
                timer.as_mut().poll(cx)
            }
            Presence::Here | Presence::Ahead => Poll::Pending,
        }
    }

    /// Something was sent: the time begins anew.
    pub fn moved(&mut self) {
        self.timer = None;
    }
}
