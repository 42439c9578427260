//! Tunnels: bytes both ways between a client and a next hop, which are not looked at. `CONNECT`
//! (RFC 9110 §9.3.6) and `Upgrade` (§7.8) open one.
//!
//! On Linux the bytes move by `splice` through a pipe and are never copied into this process. The
//! pipe is borrowed from the thread's pool only while bytes are in flight: an idle tunnel is two
//! sockets and a timer, and so is one that waits for the link of its next hop. Where `splice` is
//! refused, and where one of the connections is under TLS, a bounded buffer does the same.
//!
//! Each direction ends by itself: after the end of one side and the last of its bytes, the other
//! side's sending half is closed. An error never becomes a clean end: the other side is reset, as
//! far as the system permits (bytes that it had not yet read are then lost, as without a proxy).
//!
//! The caller sends the 2xx or 101 first, and hands over the bytes that it has read behind the
//! head.

mod carrier;
mod end;
mod open;
#[cfg(target_os = "linux")]
mod pipe;
mod pump;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::next_hops::ConnectionLink;

pub use open::{TunnelPlace, open, reserve};

use carrier::Means;
pub(crate) use end::End;
use pump::{Fault, Pump};

/// The two ends of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client that requested the tunnel.
    Client,
    /// The next hop it leads to.
    NextHop,
}

/// How a tunnel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelEnd {
    /// Both sides finished sending.
    Closed,
    /// No byte was relayed in either direction for the idle limit.
    IdleLimit,
    /// The connection with this side failed; the other was reset. `QuotaExceeded`: the link to the
    /// next hop has spent its quota.
    Error(Side, io::ErrorKind),
    /// The process is shutting down.
    Drained,
}

impl TunnelEnd {
    /// The word for the access log.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::IdleLimit => "idle-limit",
            Self::Error(Side::NextHop, io::ErrorKind::QuotaExceeded) => "link-spent",
            Self::Error(Side::Client, _) => "client-error",
            Self::Error(Side::NextHop, _) => "next-hop-error",
            Self::Drained => "drained",
        }
    }
}

/// The bytes and the end of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelReport {
    /// Bytes of the response head in front of it that were given to the client: none, unless the
    /// tunnel is that of a [`ClientStream`](crate::http::ClientStream).
    pub head_bytes: u64,
    /// Bytes given to the client's socket, the first ones included.
    pub to_client_bytes: u64,
    /// Bytes given to the next hop's socket, the first ones included.
    pub to_next_hop_bytes: u64,
    /// How it ended.
    pub end: TunnelEnd,
}

impl TunnelReport {
    /// The same of a tunnel whose first bytes to the client were `head`.
    pub(crate) fn behind_head(self, head: &[u8]) -> Self {
        let head_bytes = self.to_client_bytes.min(head.len() as u64);
        Self {
            head_bytes,
            to_client_bytes: self.to_client_bytes - head_bytes,
            ..self
        }
    }
}

/// Relays until both sides have finished, one fails, no byte moves for `idle_limit`, or `drain` is
/// ready.
///
/// The `first` bytes are sent before any other in their direction. The caller closes both sockets.
pub async fn relay(
    client: &TcpStream,
    next_hop: &TcpStream,
    to_next_hop_first: &[u8],
    to_client_first: &[u8],
    idle_limit: Duration,
    drain: impl Future<Output = ()>,
) -> TunnelReport {
    let next_hop = NextHopEnd::unmetered(next_hop);
    let firsts = (to_next_hop_first, to_client_first);
    relay_over(End::Clear(client), next_hop, firsts, idle_limit, drain).await
}

/// [`relay`] over the link of the next hop.
pub(crate) async fn relay_over(
    client: End<'_>,
    next_hop: NextHopEnd<'_>,
    (to_next_hop, to_client): (&[u8], &[u8]),
    idle_limit: Duration,
    drain: impl Future<Output = ()>,
) -> TunnelReport {
    let firsts = Firsts {
        to_next_hop,
        to_client,
    };
    let means = match client.is_tls() || next_hop.end.is_tls() {
        true => Means::Copy,
        false => Means::best(),
    };
    relay_by(means, client, next_hop, firsts, idle_limit, drain).await
}

/// The next hop's end of a tunnel.
pub(crate) struct NextHopEnd<'a> {
    /// Its connection.
    pub(crate) end: End<'a>,
    /// The link that it leads over, if it leads over one.
    pub(crate) link: Option<&'a mut ConnectionLink>,
}

impl<'a> NextHopEnd<'a> {
    const fn unmetered(socket: &'a TcpStream) -> Self {
        Self {
            end: End::Clear(socket),
            link: None,
        }
    }
}

struct Firsts<'a> {
    to_next_hop: &'a [u8],
    to_client: &'a [u8],
}

async fn relay_by(
    means: Means,
    client: End<'_>,
    next_hop: NextHopEnd<'_>,
    firsts: Firsts<'_>,
    idle_limit: Duration,
    drain: impl Future<Output = ()>,
) -> TunnelReport {
    let activity = Activity::new();
    let NextHopEnd {
        end: next_hop,
        link,
    } = next_hop;
    let (reads, writes) = match link.map(ConnectionLink::split) {
        Some((reads, writes)) => (reads.map(|reads| reads.usage), writes),
        None => (None, None),
    };
    let outbound = Pump {
        from: (client, Side::Client),
        to: (next_hop, Side::NextHop),
        first: firsts.to_next_hop,
        activity: &activity,
        moved: &activity.to_next_hop_bytes,
        link: writes.map(RefCell::new),
    };
    let inbound = Pump {
        from: (next_hop, Side::NextHop),
        to: (client, Side::Client),
        first: firsts.to_client,
        activity: &activity,
        moved: &activity.to_client_bytes,
        link: reads.map(RefCell::new),
    };
    let both = async { tokio::try_join!(outbound.run(means), inbound.run(means)) };
    let end = tokio::select! {
        biased;
        done = both => match done {
            Ok(_both_ended) => TunnelEnd::Closed,
            Err(Fault { side, kind }) => TunnelEnd::Error(side, kind),
        },
        () = drain => TunnelEnd::Drained,
        () = activity.idle_for(idle_limit) => TunnelEnd::IdleLimit,
    };
    if let TunnelEnd::Error(side, _) = end {
        let other = if side == Side::Client {
            next_hop
        } else {
            client
        };
        // a socket that refuses is as closed as it can be
        let _reset = other.tcp().set_zero_linger();
    }
    TunnelReport {
        head_bytes: 0,
        to_client_bytes: activity.to_client_bytes.get(),
        to_next_hop_bytes: activity.to_next_hop_bytes.get(),
        end,
    }
}

/// What both directions report to the idle timer.
pub(crate) struct Activity {
    last: Cell<Instant>,
    pub(crate) to_client_bytes: Cell<u64>,
    pub(crate) to_next_hop_bytes: Cell<u64>,
    /// Directions that wait for the link of the next hop.
    held_back: Cell<u32>,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self {
            last: Cell::new(Instant::now()),
            to_client_bytes: Cell::new(0),
            to_next_hop_bytes: Cell::new(0),
            held_back: Cell::new(0),
        }
    }

    pub(crate) fn touch(&self) {
        self.last.set(Instant::now());
    }

    /// Runs `wait`, which is a wait for the link of the next hop: the tunnel is not idle meanwhile.
    pub(crate) async fn held_back<T>(&self, wait: impl Future<Output = T>) -> T {
        self.held_back.set(self.held_back.get() + 1);
        let done = wait.await;
        self.held_back.set(self.held_back.get() - 1);
        self.touch();
        done
    }

    /// Ready when no byte was relayed for `limit`, and none waited for the link. The timer is set
    /// again once per limit, not once per move.
    pub(crate) async fn idle_for(&self, limit: Duration) {
        loop {
            if self.held_back.get() > 0 {
                self.touch();
            }
            let until = self.last.get() + limit;
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }
}
