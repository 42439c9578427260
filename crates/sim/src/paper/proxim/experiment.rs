//! The runs of the paper, and their settings.
//!
//! Where the paper has nothing: a proxy stops fetching as soon as its client has disconnected,
//! unless configured otherwise, and reads as fast as it can; what answering and forwarding cost the
//! proxy itself is nothing; receivers offer what hosts of the time did.

use crate::network::link::LinkRate;
use crate::settings::{Caching, Keep, Network, Settings};
use serde::Serialize;
use std::fmt;
use weir_policy::fetch::{AbortPolicy, ReadAhead};
use weir_policy::{Profile, Rules};
use weir_semantics::words;
use weir_semantics::{DeltaSeconds, Heuristic};

words! {
    /// One of the paper's traces.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Kind {
        /// Dial-up users of AT&T WorldNet.
        Modem = "modem",
        /// AT&T Labs.
        Research = "research",
    }
}

impl Kind {
    /// The profile of `weir trace make`.
    #[must_use]
    pub const fn profile(self) -> &'static str {
        match self {
            Self::Modem => "modem-1997",
            Self::Research => "research-1997",
        }
    }

    /// Requests in the paper's trace: those of its table of causes, by their share.
    #[must_use]
    pub const fn requests(self) -> u64 {
        match self {
            Self::Modem => 10_719_138,
            Self::Research => 1_041_449,
        }
    }

    const fn network(self) -> Network {
        match self {
            Self::Modem => Network::MODEM,
            Self::Research => Network::RESEARCH,
        }
    }
}

words! {
    /// Which connections persist.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Persistent {
        /// None.
        None = "none",
        /// Those between clients and proxy.
        Client = "client-proxy",
        /// Those between proxy and servers.
        Server = "proxy-server",
        /// All.
        All = "all",
    }
}

words! {
    /// What is cached.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Cache {
        /// Nothing.
        None = "no cache",
        /// What the rules of 1998 allow.
        Data = "cache",
        /// The same as if there were no cookies.
        DataAndCookies = "cache, cookies too",
    }
}

/// One run over one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Run {
    /// Clients and servers, connections as in the trace.
    NoProxy,
    /// The same as the paper's validation has it: on the research network the Internet link is
    /// drained at 6 Mbit/s.
    Validation,
    /// A proxy that stops at once when a client has disconnected.
    Proxy(Persistent, Cache),
    /// A full proxy that continues fetching.
    Continue,
    /// A full proxy behind a link of 1.5 Mbit/s.
    Stop1500,
    /// A full proxy behind a link of 0.5 Mbit/s.
    Stop500,
    /// A full proxy that reads at most 64 KiB ahead of its client.
    FlowControl,
}

impl Run {
    /// A proxy that caches data and keeps all connections.
    pub const FULL: Self = Self::Proxy(Persistent::All, Cache::Data);
    /// A proxy that caches data alone.
    pub const DATA: Self = Self::Proxy(Persistent::None, Cache::Data);
    /// A proxy that keeps connections alone.
    pub const CONNECTIONS: Self = Self::Proxy(Persistent::All, Cache::None);
    /// A proxy that keeps nothing.
    pub const NOTHING: Self = Self::Proxy(Persistent::None, Cache::None);

    pub(super) const BANDWIDTH: [Self; 4] = [
        Self::Continue,
        Self::Stop1500,
        Self::Stop500,
        Self::FlowControl,
    ];
    pub(super) const CURVES: [Self; 4] = [Self::NoProxy, Self::DATA, Self::CONNECTIONS, Self::FULL];

    /// No proxy, and every combination of what is kept.
    pub(super) fn latency() -> Vec<Self> {
        let mut all = vec![Self::NoProxy];
        for persistent in Persistent::ALL {
            all.extend(Cache::ALL.map(|cache| Self::Proxy(persistent, cache)));
        }
        all
    }

    /// The settings of this run.
    #[must_use]
    pub fn settings(self, kind: Kind, seed: u64) -> Settings {
        let base = base(kind, seed);
        match self {
            Self::NoProxy => base.without_proxy(),
            Self::Validation => {
                let mut settings = base.without_proxy();
                if kind == Kind::Research {
                    settings.network.internet = LinkRate::of(6_000_000);
                }
                settings
            }
            Self::Proxy(persistent, cache) => kept(base, persistent, cache),
            Self::Continue => Settings {
                abort: AbortPolicy::Finish,
                ..base
            },
            Self::Stop1500 => behind(base, 1_500_000),
            Self::Stop500 => behind(base, 500_000),
            Self::FlowControl => Settings {
                read_ahead: ReadAhead::Bytes(64 * 1024),
                ..base
            },
        }
    }
}

fn base(kind: Kind, seed: u64) -> Settings {
    let mut settings = Settings::of(kind.network(), Profile::Http1998);
    settings.network.tcp.receive_window_bytes = RECEIVE_WINDOW_BYTES;
    Settings {
        rules: Rules {
            // the paper's cache takes nothing for stale
            heuristic: Heuristic {
                max: DeltaSeconds(HEURISTIC_MAX_S),
                ..Heuristic::default()
            },
            ..settings.rules
        },
        abort: AbortPolicy::Stop,
        read_ahead: ReadAhead::Unbounded,
        background_bytes_s: u64::MAX,
        seed,
        ..settings
    }
}

/// Six segments of 1460 bytes, what Windows 95 and Solaris 2.5 offered on an Ethernet unless told
/// otherwise.
const RECEIVE_WINDOW_BYTES: u64 = 8760;

/// Longer than any trace: a year.
const HEURISTIC_MAX_S: u32 = 31_536_000;

fn kept(base: Settings, persistent: Persistent, cache: Cache) -> Settings {
    let keep = |does: bool| if does { Keep::Always } else { Keep::Never };
    Settings {
        caching: match cache {
            Cache::None => Caching::Off,
            Cache::Data => Caching::On,
            Cache::DataAndCookies => Caching::IgnoringCookies,
        },
        client_connections: keep(matches!(persistent, Persistent::Client | Persistent::All)),
        server_connections: keep(matches!(persistent, Persistent::Server | Persistent::All)),
        ..base
    }
}

fn behind(mut base: Settings, bits_s: u64) -> Settings {
    base.network.internet = LinkRate::of(bits_s);
    base
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProxy => f.write_str("no proxy"),
            Self::Validation => f.write_str("no proxy, as validated"),
            Self::Proxy(persistent, cache) => {
                write!(f, "{} persistent, {}", persistent.as_str(), cache.as_str())
            }
            Self::Continue => f.write_str("continue after an abort"),
            Self::Stop1500 => f.write_str("stop at once, 1.5 Mbit/s"),
            Self::Stop500 => f.write_str("stop at once, 0.5 Mbit/s"),
            Self::FlowControl => f.write_str("at most 64 KiB ahead"),
        }
    }
}
