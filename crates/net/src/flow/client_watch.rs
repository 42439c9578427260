//! Noticing that a client has left while nothing is sent to it.
//!
//! A client that breaks its connection is noticed at once: the reset makes the socket report an
//! error. One that only closes its sending side may still read (RFC 9112 §9.6), as `nc` does; a
//! program that has ended looks the same until the next byte is sent to it. So it is served on for
//! a while, and as long as something moves.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::Cell;
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::sleep;

/// How a client left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It broke the connection, or the path to it is dead.
    Reset,
    /// It closed its sending side, and nothing has moved since for the time that is allowed.
    HalfClosed,
}

/// Ready when the client has left. `moved` changes whenever a byte of the response has moved;
/// `half_closed` is for how long a client that has closed its sending side is served while it does
/// not.
pub async fn left(client: &TcpStream, half_closed: Duration, moved: &Cell<u64>) -> Left {
    tokio::select! {
        biased;
        // an error of the reactor is the end of the runtime: whoever waits here ends with it
        _ = client.ready(Interest::ERROR) => Left::Reset,
        () = stays_half_closed(client, half_closed, moved) => Left::HalfClosed,
    }
}

/// Ready when the client has had its sending side closed for `limit` while nothing moved; a look
/// too late at most.
///
/// Looked at now and then, as no event would do: a request that was sent ahead would hide it.
async fn stays_half_closed(client: &TcpStream, limit: Duration, moved: &Cell<u64>) {
    let between = (limit / LOOKS).max(LOOKS_APART_MIN);
    let mut closed_for = None;
    let mut seen = moved.get();
    loop {
        sleep(between).await;
        let still = seen == moved.get();
        seen = moved.get();
        closed_for = match closed_for {
            Some(length) if still => Some(length + between),
            _ if still && is_half_closed(client) => Some(Duration::ZERO),
            _ => None,
        };
        if closed_for.is_some_and(|length| length >= limit) {
            return;
        }
    }
}

/// Whether the client has closed its sending side, whatever it sent before.
pub fn is_half_closed(client: &TcpStream) -> bool {
    let mut sockets = [PollFd::from_borrowed_fd(client.as_fd(), PollFlags::RDHUP)];
    poll(&mut sockets, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Looks within the time that is allowed.
const LOOKS: u32 = 4;

/// Looking more often would be busy waiting.
const LOOKS_APART_MIN: Duration = Duration::from_millis(50);
