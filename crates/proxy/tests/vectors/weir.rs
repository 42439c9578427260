//! The proxy under test.

use crate::client;
use crate::doors::{Doors, Http};
use crate::phases::NotedPhases;
use crate::tls::Identity;
use std::net::SocketAddr;
use std::sync::Arc;
use weir_disk::files::SystemFiles;
use weir_measure::{Metric, WaitReason};
use weir_policy::Phases;
use weir_proxy::clock::{Clock, ManualClock};
use weir_proxy::config::{
    AdminAddress, Config, Listener, ListenerCertificate, ListenerTls, LogTarget, Mode, NextHopTls,
    Route, TlsVersion,
};
use weir_proxy::{Options, Proxy};
use weir_semantics::Timestamp;
use weir_vectors::{Profile, Runner, START_S, Vector};

/// The clock of a vector: both who runs it and the origin turn it.
#[derive(Debug)]
pub(crate) struct VirtualClock {
    manual: Arc<ManualClock>,
    at_s: std::sync::Mutex<u32>,
}

/// A clock at the start of a vector.
pub(crate) fn clock() -> Arc<VirtualClock> {
    Arc::new(VirtualClock {
        manual: Arc::new(ManualClock::new(Timestamp(START_S))),
        at_s: std::sync::Mutex::new(0),
    })
}

impl VirtualClock {
    /// Turns the clock forward to `at_s` seconds since the vector's start.
    pub(crate) fn turn_to(&self, at_s: u32) {
        let mut now_s = self.at_s.lock().expect("nobody panics with it");
        let forward_s = at_s.checked_sub(*now_s).expect("time does not go back");
        self.manual.advance_ms(u64::from(forward_s) * 1000);
        *now_s = at_s;
    }
}

/// A proxy with one worker, so that what it does has an order.
pub(crate) struct Weir {
    proxy: Proxy,
    doors: Doors,
    clock: Arc<VirtualClock>,
}

impl Weir {
    pub(crate) fn start(
        doors: Doors,
        hooked: Phases,
        vector: &Vector,
        clock: &Arc<VirtualClock>,
        origin: SocketAddr,
    ) -> Self {
        let options = Options {
            reload: Box::new(|| Err("nothing to reload".into())),
            has_config_file: true,
            describe: Box::new(|_| String::new()),
            clock: Clock::Manual(Arc::clone(&clock.manual)),
            files: Arc::new(SystemFiles),
            say: Arc::new(|_| {}),
            give_back_memory: || {},
            moves_content: true,
            hooks: NotedPhases::at(hooked).1,
            module_kinds: Vec::new(),
        };
        let mut config = configure(doors, vector.profile, origin);
        let rules = serde_json::to_value(&vector.rules).expect("rules as JSON");
        config.rules = serde_json::from_value(rules).expect("rules of a configuration");
        if vector.steps.iter().any(|step| step.waits_s() > 0) {
            // the request that has the one connection makes the others wait
            config.limits.connections_per_next_hop_max = 1;
            config.limits.idle_per_next_hop_max = 1;
        }
        config.validate().expect("the configuration is valid");
        Self {
            proxy: Proxy::start(config, options).expect("the proxy starts"),
            doors,
            clock: Arc::clone(clock),
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.proxy.listeners()[0].address
    }

    /// Whether clients speak by TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.doors.is_tls_from_clients()
    }

    /// The scheme of what clients ask for.
    pub(crate) fn scheme(&self) -> &'static str {
        self.doors.scheme()
    }

    /// What clients speak.
    pub(crate) fn clients(&self) -> Http {
        self.doors.clients
    }

    /// Returns once the worker has done what it could do when this was called. A connection of
    /// HTTP/2 may end before a response that it has carried is dealt with.
    pub(crate) fn settle(&self) {
        if self.doors.next_hop == Http::Two {
            client::ask_proxy(self);
        }
    }

    /// What stands before the path in a request target: RFC 9112 §3.2.2.
    pub(crate) fn authority_before_target(&self, host: &str) -> String {
        match self.doors.runner {
            Runner::Forward => format!("http://{host}"),
            Runner::Gateway | Runner::Policy | Runner::Simulator => String::new(),
        }
    }

    /// Requests that waited for a connection so far.
    pub(crate) fn waits(&self) -> u64 {
        let waits = Metric::ConnectionWaits(WaitReason::PerHopMax);
        self.proxy.control().snapshot().get(waits)
    }

    pub(crate) fn turn_clock_to(&self, at_s: u32) {
        self.clock.turn_to(at_s);
    }
}

fn configure(doors: Doors, profile: Profile, origin: SocketAddr) -> Config {
    let mut config = Config {
        workers: 1,
        listeners: vec![Listener {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            mode: Mode::Forward.into(),
            name: None,
            tls: doors.is_tls_from_clients().then(|| ListenerTls {
                version_min: TlsVersion::default(),
                ticket_rotation: "1h".parse().expect("a time"),
                certificates: vec![ListenerCertificate {
                    chain: Some(Identity::get().chain.clone()),
                    key: Some(Identity::get().key.clone()),
                    acme: None,
                }],
            }),
            http2: Some(doors.clients == Http::Two),
            proxy_protocol: Vec::new(),
        }],
        ..Config::default()
    };
    config.admin.address = AdminAddress::Off;
    config.log.access = LogTarget::Off;
    config.disk.enabled = false;
    config.cache.profile = match profile {
        Profile::Rfc9111 => weir_policy::Profile::Rfc9111,
        Profile::Http1998 => weir_policy::Profile::Http1998,
    };
    match doors.runner {
        Runner::Forward => {
            let loopback = "127.0.0.0/8".parse().expect("a network");
            config.access.allow_destinations = vec![loopback];
        }
        Runner::Gateway | Runner::Policy | Runner::Simulator => {
            config.listeners[0].mode = Mode::Gateway.into();
            let is_tls = doors.is_tls_to_next_hop();
            let scheme = if is_tls { "https" } else { "http" };
            config.routes = vec![Route {
                next_hops: vec![format!("{scheme}://{origin}").parse().expect("a URL")],
                tls: is_tls.then(|| NextHopTls {
                    ca: Some(Identity::get().chain.clone()),
                    ..NextHopTls::default()
                }),
                http2: (doors.next_hop == Http::Two).then_some(true),
                ..Route::default()
            }];
        }
    }
    config
}
