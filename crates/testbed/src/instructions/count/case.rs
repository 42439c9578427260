//! The kinds of requests whose work is counted.

use crate::client::get;
use crate::proxy::contender::Contender;
use clap::ValueEnum;
use rustix::net::sockopt;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;
use weir_bench::origin::ResponseSpec;
use xtask::failure::{During, Failure};

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Case {
    /// Stored content of 1 KiB.
    Hit,
    /// Stored content of 1 MiB.
    LargeHit,
    /// 1 KiB that may not be stored.
    Forward,
    /// 1 KiB that another request is fetching already.
    Follower,
    /// Stored content of 1 KiB, by HTTP/1.1 under TLS.
    TlsHit,
}

const SMALL_BYTES: u64 = 1 << 10;
const LARGE_BYTES: u64 = 1 << 20;

/// The origin answers forwarded requests after this: weir waits then, each time.
const FORWARD_DELAY: Duration = Duration::from_millis(2);

/// The same while followers join, the longer ones where the machine is too busy for them to come in
/// time.
pub(super) const FOLLOWER_DELAYS: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_millis(1600),
];

/// A response of a megabyte fits, so that weir never waits for a client that reads.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;

/// Weir without TLS and with it.
pub(crate) static WEIRS: [Contender; 2] = [Contender::WEIR, Contender::WEIR.with("tls")];

impl Case {
    pub(super) const ALL: [Self; 5] = [
        Self::Hit,
        Self::LargeHit,
        Self::Forward,
        Self::Follower,
        Self::TlsHit,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit 1 KiB",
            Self::LargeHit => "hit 1 MiB",
            Self::Forward => "forward 1 KiB",
            Self::Follower => "follower 1 KiB",
            Self::TlsHit => "hit 1 KiB, TLS",
        }
    }

    /// What its weir is configured with.
    pub(super) const fn weir(self) -> &'static Contender {
        match self {
            Self::TlsHit => &WEIRS[1],
            _ => &WEIRS[0],
        }
    }

    /// Requests that are counted, of so many small hits.
    pub(super) const fn requests(self, of_hits: u32) -> u32 {
        match self {
            Self::Hit | Self::Forward | Self::TlsHit => of_hits,
            Self::LargeHit => of_hits.div_ceil(4),
            Self::Follower => of_hits.div_ceil(10),
        }
    }

    const fn is_large(self) -> bool {
        matches!(self, Self::LargeHit)
    }

    /// What is shared in a round: another response each time.
    pub(super) fn shared(self, round: u32, delay: Duration) -> ResponseSpec {
        let path = format!("{}/{round:09}", self.path());
        ResponseSpec {
            delay,
            ..ResponseSpec::new(&path, SMALL_BYTES)
        }
    }

    /// What is requested each time.
    pub(super) fn spec(self) -> ResponseSpec {
        let size_bytes = if self.is_large() {
            LARGE_BYTES
        } else {
            SMALL_BYTES
        };
        let spec = ResponseSpec::new(self.path(), size_bytes);
        match self {
            Self::Forward => ResponseSpec {
                is_storable: false,
                delay: FORWARD_DELAY,
                ..spec
            },
            _ => spec,
        }
    }

    /// What all its paths begin with.
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Forward => "/Forward",
            Self::Follower => "/Shared",
            _ => "/Hit",
        }
    }

    /// How many of so many requests reach the origin.
    pub(super) fn fetches(self, requests: u64) -> u64 {
        match self {
            Self::Forward | Self::Follower => requests,
            _ => 1,
        }
    }

    /// A connection of a client.
    ///
    /// # Errors
    /// There is none, or its buffer is refused, which takes root.
    pub(super) fn connect(self, to: SocketAddr) -> Result<TcpStream, Failure> {
        let stream = get::connect_from(Ipv4Addr::UNSPECIFIED, to, None);
        let stream = stream.during("connect to weir")?;
        if self.is_large() {
            // beyond the limit of the system, which is less than the content
            let set = sockopt::set_socket_recv_buffer_size_force(&stream, RECEIVE_BUFFER_BYTES);
            set.during("set a receive buffer of 8 MiB (as root)")?;
        }
        Ok(stream)
    }
}
