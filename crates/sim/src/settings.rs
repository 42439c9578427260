//! The settings of a run: the network, the cache, the connections, and the handling of fetches
//! without readers.
//!
//! The defaults of [`Network::MODEM`] and [`Network::RESEARCH`] are PROXIM's (Feldmann et al.,
//! INFOCOM 1999, section on the simulator).

use crate::network::link::LinkRate;
use crate::network::server_times::ServerTimes;
use crate::network::tcp::Tcp;
use crate::results::forecast::LinkSetting;
use std::fmt;
use std::sync::Arc;
use weir_policy::admission::Rule;
use weir_policy::eviction::EvictionKind;
use weir_policy::fetch::{AbortPolicy, ReadAhead};
use weir_policy::rule::RuleSet;
use weir_policy::{Profile, Rules, SetCookieRule};
use weir_semantics::{DeltaSeconds, Heuristic};
use weir_workload::{Dimension, Law};

/// Where the bytes of a response pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Path {
    /// PROXIM's scenario (a): server, shared queue, proxy, the client's queue, client.
    #[default]
    Proxy,
    /// Scenario (b): server, the client's queue, client.
    DirectClient,
    /// Scenario (c): server, the shared queue, client.
    DirectInternet,
}

impl Path {
    /// As a word in tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proxy => "proxy",
            Self::DirectClient => "no proxy, client's link",
            Self::DirectInternet => "no proxy, Internet link",
        }
    }
}

weir_policy::choice! {
    /// Whether requests are answered from what is stored.
    pub enum Caching {
        /// Never: every request goes around the cache.
        Off = "off",
        /// By the rules.
        On = "on",
        /// By the rules, as if no message had a cookie: the paper's `cache_cookies`.
        IgnoringCookies = "ignoring-cookies",
    }
}

weir_policy::choice! {
    /// Which connections are kept open after a response.
    pub enum Keep {
        /// None.
        Never = "never",
        /// Those that were kept in the trace.
        AsInTrace = "as-in-trace",
        /// All whose response came to its end.
        Always = "always",
    }
}

/// Links, round trips and time-outs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Toward each client.
    pub client_link: LinkRate,
    /// Round trip between client and proxy, microseconds.
    pub client_rtt_us: u64,
    /// From all servers together, toward the proxy, or toward all clients where there is none.
    pub internet: LinkRate,
    /// Where the bottleneck is without a proxy.
    pub direct: Path,
    /// How long a client's idle connection stays open, milliseconds.
    pub client_idle_ms: u64,
    /// How long an idle connection to a server stays open, milliseconds.
    pub server_idle_ms: u64,
    /// Round trip to a server where the trace has none, microseconds.
    pub server_rtt_us: u64,
    /// Both ends of every connection.
    pub tcp: Tcp,
}

const CLIENT_IDLE_MS: u64 = 180_000;
const SERVER_IDLE_MS: u64 = 30_000;

impl Network {
    /// The modem users of AT&T WorldNet, 1997.
    pub const MODEM: Self = Self {
        client_link: LinkRate::of(21_000),
        client_rtt_us: 250_000,
        internet: LinkRate::of(45_000_000),
        direct: Path::DirectClient,
        client_idle_ms: CLIENT_IDLE_MS,
        server_idle_ms: SERVER_IDLE_MS,
        server_rtt_us: 100_000,
        tcp: Tcp::OF_1997,
    };

    /// The researchers of AT&T Labs, 1997. The paper gives the local network a round trip and no
    /// rate: here it has none.
    pub const RESEARCH: Self = Self {
        client_link: LinkRate::of(0),
        client_rtt_us: 2500,
        internet: LinkRate::of(1_500_000),
        direct: Path::DirectInternet,
        ..Self::MODEM
    };

    /// Medians of access networks (docs/sim.md has the sources), ten gigabits a second behind them,
    /// and Linux's TCP.
    const fn access(bits_s: u64, client_rtt_us: u64) -> Self {
        Self {
            client_link: LinkRate::of(bits_s),
            client_rtt_us,
            internet: LinkRate::of(10_000_000_000),
            server_rtt_us: 30_000,
            tcp: Tcp::LINUX,
            ..Self::MODEM
        }
    }

    /// All presets by name.
    pub const PRESETS: [(&'static str, Self); 7] = [
        ("modem", Self::MODEM),
        ("research", Self::RESEARCH),
        ("fixed-2024", Self::access(94_000_000, 20_000)),
        ("mobile-2024", Self::access(56_000_000, 60_000)),
        ("leo", Self::access(118_000_000, 45_000)),
        ("geo", Self::access(18_000_000, 650_000)),
        ("mobile-slow", Self::access(5_000_000, 250_000)),
    ];

    /// The preset with this name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        let found = Self::PRESETS.iter().find(|(known, _)| *known == name);
        found.map(|(_, network)| *network)
    }
}

/// One run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// With a proxy, or without.
    pub path: Path,
    /// Links and time-outs.
    pub network: Network,
    /// Whether there is a cache.
    pub caching: Caching,
    /// Connections between client and proxy; without a proxy between client and server.
    pub client_connections: Keep,
    /// Connections between proxy and server.
    pub server_connections: Keep,
    /// Bytes of heads and content that may be stored, with what the catalog needs for itself.
    pub cache_bytes: u64,
    /// The eviction algorithm.
    pub eviction: EvictionKind,
    /// What is stored at all.
    pub admission: Rule,
    /// Which rules of caching hold.
    pub rules: Rules,
    /// Rules of the operator that can be [simulated](crate::simulated).
    pub operator_rules: Option<Arc<RuleSet>>,
    /// Handling of a fetch without readers.
    pub abort: AbortPolicy,
    /// How far a fetch runs ahead.
    pub read_ahead: ReadAhead,
    /// Bytes a second that fetches without readers may take.
    pub background_bytes_s: u64,
    /// Milliseconds for which a request waits for the response head of another one, before it is
    /// forwarded itself; `None` has no limit.
    pub follower_wait_ms: Option<u64>,
    /// Milliseconds for which a target whose response could not be shared is remembered.
    pub uncollapsible_ms: u64,
    /// What answering from the cache takes beside the network: seconds.
    pub hit_overhead: Option<Law>,
    /// What forwarding takes beside the network: seconds.
    pub miss_overhead: Option<Law>,
    /// For what is drawn: the overheads.
    pub seed: u64,
    /// Seconds for which a response is fresh where the source of the trace knew no heads; without
    /// it such responses have no lifetime.
    pub assumed_lifetime_s: Option<u32>,
    /// What the whole trace says of its servers; without it, what the rows so far have said counts.
    pub server_times: Option<Arc<ServerTimes>>,
    /// Links whose quotas are forecast.
    pub links: Vec<LinkSetting>,
}

/// Freshness lifetime of responses of a source without heads, unless another one is set: a day.
/// Most of what logs have is asked for again within that or never, and few origins give less to
/// what they let caches keep at all.
pub const ASSUMED_LIFETIME_S: u32 = 86_400;

impl Settings {
    /// A proxy with everything: a cache without a limit, as the paper had it, and connections that
    /// are kept on both sides. The other defaults are those of the live proxy.
    #[must_use]
    pub fn of(network: Network, profile: Profile) -> Self {
        Self {
            path: Path::Proxy,
            network,
            caching: Caching::On,
            client_connections: Keep::Always,
            server_connections: Keep::Always,
            cache_bytes: UNLIMITED_BYTES,
            eviction: EvictionKind::Lru,
            admission: Rule::Always,
            rules: Rules {
                profile,
                heuristic: Heuristic::default(),
                disconnected_stale_max: DeltaSeconds(86_400),
                set_cookie: SetCookieRule::default(),
                reuse: weir_policy::rule::Reuse::NONE,
            },
            operator_rules: None,
            abort: AbortPolicy::default(),
            read_ahead: ReadAhead::default(),
            background_bytes_s: 1024 * 1024,
            follower_wait_ms: Some(5000),
            uncollapsible_ms: 120_000,
            hit_overhead: None,
            miss_overhead: None,
            seed: 1,
            assumed_lifetime_s: None,
            server_times: None,
            links: Vec::new(),
        }
    }

    /// The first thing to compare with: no proxy, and connections as in the trace.
    #[must_use]
    pub fn without_proxy(&self) -> Self {
        Self {
            path: self.network.direct,
            caching: Caching::Off,
            client_connections: Keep::AsInTrace,
            server_connections: Keep::AsInTrace,
            ..self.clone()
        }
    }

    /// The other: a proxy that keeps neither responses nor connections.
    #[must_use]
    pub fn without_caches(&self) -> Self {
        Self {
            path: Path::Proxy,
            caching: Caching::Off,
            client_connections: Keep::Never,
            server_connections: Keep::Never,
            ..self.clone()
        }
    }

    /// Whether it can be run.
    ///
    /// # Errors
    /// The first value that cannot be.
    pub fn check(&self) -> Result<(), SettingsError> {
        let tcp = &self.network.tcp;
        let wrong = |what: &str, hint: &str| {
            Err(SettingsError {
                what: what.to_owned(),
                hint: hint.to_owned(),
            })
        };
        if tcp.initial_window == 0 {
            return wrong(
                "an initial window of no segment",
                "give it one segment at least",
            );
        }
        if tcp.initial_window > tcp.window_max() {
            return wrong(
                "a receive window that is smaller than the initial window",
                "give the receive window at least the segments of the initial one",
            );
        }
        if !(1..=65_535).contains(&tcp.segment_bytes) {
            return wrong(
                "a segment of no bytes, or of more than 65535",
                "1460 is Ethernet's",
            );
        }
        if tcp.header_bytes > 1000 {
            return wrong("headers of more than 1000 bytes", "40 is IPv4 and TCP");
        }
        for (name, law) in [
            ("hit overhead", &self.hit_overhead),
            ("miss overhead", &self.miss_overhead),
        ] {
            if law
                .as_ref()
                .is_some_and(|law| !law.is_of(Dimension::Seconds))
            {
                return wrong(
                    &format!("a {name} that is no time"),
                    "write it as `5ms` or `exp(5ms)`",
                );
            }
        }
        Ok(())
    }
}

/// What no trace fills: an exabyte.
pub(crate) const UNLIMITED_BYTES: u64 = 1_000_000_000_000_000_000;

/// A run that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    what: String,
    hint: String,
}

impl SettingsError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "simulate {}", self.what)
    }
}

impl std::error::Error for SettingsError {}
