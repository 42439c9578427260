//! Waiting for the disconnect of a client, whatever it has sent.
//!
//! A client that breaks its connection is noticed at once: the reset makes the socket report an
//! error. One that only closes its sending side may still read (RFC 9112 §9.6), as `nc` does; a
//! program that has ended looks the same until the next byte is sent to it. So it is served on for
//! a while, and as long as bytes move.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::Cell;
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::sleep;

/// Why a client counts as disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectCause {
    /// It broke the connection, or the path to it is dead.
    Reset,
    /// It closed its sending side, and made no progress since for the permitted time.
    HalfClosed,
}

/// Ready when the client has disconnected. `moved` changes with every byte of the response that is
/// sent; a client that has closed its sending side is served for `half_closed` while it does not
/// change.
pub async fn disconnected(
    client: &TcpStream,
    half_closed: Duration,
    moved: &Cell<u64>,
) -> DisconnectCause {
    tokio::select! {
        biased;
        // an error of the reactor is the end of the runtime, and of this task
        _ = client.ready(Interest::ERROR) => DisconnectCause::Reset,
        () = stays_half_closed(client, half_closed, moved) => DisconnectCause::HalfClosed,
    }
}

/// Ready when the client has had its sending side closed for `limit` without progress; at most one
/// poll interval later.
///
/// The state is polled, as no event tells of it: a pipelined request would hide the end.
async fn stays_half_closed(client: &TcpStream, limit: Duration, moved: &Cell<u64>) {
    let between = between_looks(limit);
    let mut closed_for = None;
    let mut seen = moved.get();
    loop {
        sleep(between).await;
        let still = seen == moved.get();
        seen = moved.get();
        closed_for = match closed_for {
            Some(length) if still => Some(length + between),
            _ if still && end_of(client).is_some() => Some(Duration::ZERO),
            _ => None,
        };
        if closed_for.is_some_and(|length| length >= limit) {
            return;
        }
    }
}

/// What a client has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientEnd {
    /// Its sending side.
    HalfClosed,
    /// The connection.
    Reset,
}

/// What the client has ended, whatever it sent before.
pub(super) fn end_of(client: &TcpStream) -> Option<ClientEnd> {
    let mut sockets = [PollFd::from_borrowed_fd(client.as_fd(), PollFlags::RDHUP)];
    // it returns at once
    poll(&mut sockets, Some(&Timespec::default())).ok()?;
    let found = sockets[0].revents();
    if found.intersects(PollFlags::ERR | PollFlags::HUP) {
        return Some(ClientEnd::Reset);
    }
    found
        .contains(PollFlags::RDHUP)
        .then_some(ClientEnd::HalfClosed)
}

/// Between two looks at a client that may have its sending side closed for `limit`.
pub(super) fn between_looks(limit: Duration) -> Duration {
    (limit / LOOKS).max(LOOKS_APART_MIN)
}

/// Looks within the time that is allowed.
const LOOKS: u32 = 4;

/// Looking more often would be busy waiting.
const LOOKS_APART_MIN: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::SockRef;
    use std::io::Write;
    use std::net::{Shutdown, TcpStream as ClientStream};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    /// A client of ours, and our end of its connection.
    async fn client() -> (ClientStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = ClientStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().await.unwrap();
        (client, ours)
    }

    /// How the wait ends within a minute, if it does; time passes at once.
    async fn watched(ours: &TcpStream, moved: &Cell<u64>) -> Option<DisconnectCause> {
        timeout(
            Duration::from_secs(60),
            disconnected(ours, Duration::from_secs(5), moved),
        )
        .await
        .ok()
    }

    #[tokio::test(start_paused = true)]
    async fn client_half_close_and_reset_are_detected() {
        let moved = Cell::new(0);
        let (client_end, ours) = client().await;
        assert_eq!(watched(&ours, &moved).await, None);
        client_end.shutdown(Shutdown::Write).unwrap();
        assert_eq!(
            watched(&ours, &moved).await,
            Some(DisconnectCause::HalfClosed)
        );

        let (mut pipelined, ours) = client().await;
        pipelined.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        pipelined.shutdown(Shutdown::Write).unwrap();
        assert_eq!(
            watched(&ours, &moved).await,
            Some(DisconnectCause::HalfClosed)
        );

        let (broken, ours) = client().await;
        SockRef::from(&broken)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
        drop(broken);
        let reset = disconnected(&ours, Duration::from_secs(3600), &moved);
        assert_eq!(reset.await, DisconnectCause::Reset);
    }

    #[tokio::test(start_paused = true)]
    async fn half_closed_client_is_served_while_bytes_move() {
        let moved = Cell::new(0);
        let (half, ours) = client().await;
        half.shutdown(Shutdown::Write).unwrap();
        let moving = async {
            let mut second = tokio::time::interval(Duration::from_secs(1));
            for _ in 0..=100 {
                second.tick().await;
                moved.set(moved.get() + 1);
            }
        };
        let long = Duration::from_secs(3600);
        let began = tokio::time::Instant::now();
        let (ended, ()) = tokio::join!(disconnected(&ours, Duration::from_secs(5), &moved), moving);
        assert_eq!(ended, DisconnectCause::HalfClosed);
        let after = began.elapsed();
        assert!(
            (Duration::from_secs(105)..long).contains(&after),
            "{after:?}"
        );
    }
}
