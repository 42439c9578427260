//! Under what a trace is run: the same for the proxy and for the simulator.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path as FilePath;
use std::sync::Arc;
use weir_policy::Profile;
use weir_policy::eviction::EvictionKind;
use weir_policy::fetch::{AbortPolicy, ReadAhead};
use weir_policy::rule::RuleSet;
use weir_proxy::config::{
    AdminAddress, ByteSize, Config, Listener, LogFormat, LogTarget, Mode, Span, WhenBusy,
};
use weir_sim::link::LinkRate;
use weir_sim::tcp::Tcp;
use weir_sim::{Network, Settings};

/// One run's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    pub(crate) profile: Profile,
    pub(crate) eviction: EvictionKind,
    pub(crate) cache_bytes: u64,
    pub(crate) abort: AbortPolicy,
    /// Bytes a second that may be fetched without a reader.
    pub(crate) background_bytes_s: u64,
    /// How far a fetch may run ahead, bytes.
    pub(crate) read_ahead_bytes: u64,
    /// Bits a second of the way from all servers.
    pub(crate) internet_bits_s: u64,
    /// How long connections to servers are kept.
    pub(crate) server_idle_ms: u64,
    /// Rules of the operator, as a config file has them: a list in JSON.
    pub(crate) rules: &'static str,
}

impl Conditions {
    /// For the simulator. Clients are near and fast: a request is over for the client when it is
    /// for the proxy, so that both have one order.
    pub(crate) fn settings(&self) -> Settings {
        let network = Network {
            client_link: LinkRate::of(0),
            client_rtt_us: 0,
            internet: LinkRate::of(self.internet_bits_s),
            server_idle_ms: self.server_idle_ms,
            server_rtt_us: 0,
            tcp: Tcp {
                header_bytes: 0,
                ..Tcp::LINUX
            },
            ..Network::MODEM
        };
        Settings {
            eviction: self.eviction,
            cache_bytes: self.cache_bytes,
            abort: self.abort,
            background_bytes_s: self.background_bytes_s,
            read_ahead: ReadAhead::Bytes(self.read_ahead_bytes),
            follower_wait_ms: None,
            operator_rules: self.rule_set(),
            ..Settings::of(network, self.profile)
        }
    }

    /// The rules for the simulator, which simulates all of them; `None` if there are none.
    fn rule_set(&self) -> Option<Arc<RuleSet>> {
        let config = Config {
            rules: serde_json::from_str(self.rules).expect("rules"),
            ..Config::default()
        };
        let (kept, left_out) = weir_sim::simulated(&config.rule_specs());
        assert!(left_out.is_empty(), "{left_out:?}");
        let set = || Arc::new(RuleSet::new(kept).expect("rules"));
        (!config.rules.is_empty()).then(set)
    }

    /// For the proxy, which writes its access log to `log`.
    pub(crate) fn config(&self, log: &FilePath) -> Config {
        let mut config = Config {
            workers: 1,
            listeners: vec![Listener {
                address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
                mode: Mode::Forward.into(),
                name: None,
                tls: None,
                http2: None,
                proxy_protocol: Vec::new(),
            }],
            ..Config::default()
        };
        config.admin.address = AdminAddress::Off;
        config.log.access = LogTarget::File(log.to_owned());
        config.log.format = LogFormat::Json;
        config.disk.enabled = false;
        config.access.allow_destinations = vec!["127.0.0.0/8".parse().expect("a network")];
        config.cache.memory = ByteSize::from_bytes(self.cache_bytes);
        config.cache.largest_response = config.cache.memory;
        config.cache.eviction = self.eviction;
        config.cache.profile = self.profile;
        config.rules = serde_json::from_str(self.rules).expect("rules");
        self.set_fetch(&mut config);
        let limits = &mut config.limits;
        limits.next_hop_idle = Span::from_millis(self.server_idle_ms);
        limits.next_hop_age = Span::from_days(365);
        // as the simulator has it: no request waits for a busy one
        limits.next_hop_busy = WhenBusy::Open;
        config.validate().expect("a valid configuration");
        config
    }

    fn set_fetch(&self, config: &mut Config) {
        let fetch = &mut config.fetch;
        let read_ahead = ByteSize::from_bytes(self.read_ahead_bytes);
        // a timer, which the test's clock does not move: the simulator runs without it
        fetch.follower_wait = Span::from_hours(1);
        fetch.read_ahead = weir_proxy::config::ReadAhead::of(read_ahead);
        fetch.background_rate = ByteSize::from_bytes(self.background_bytes_s);
        fetch.abort = self.abort.kind();
        match self.abort {
            AbortPolicy::Stop | AbortPolicy::Finish => {}
            AbortPolicy::Squid {
                min_bytes,
                max_bytes,
                pct,
            } => {
                fetch.squid_min = ByteSize::from_bytes(min_bytes);
                fetch.squid_max = ByteSize::from_bytes(max_bytes);
                fetch.squid_pct = pct;
            }
            AbortPolicy::Value { little_bytes } => {
                fetch.abort_little = ByteSize::from_bytes(little_bytes);
            }
        }
    }
}
