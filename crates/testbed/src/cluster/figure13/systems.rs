//! What is before the nodes, and how it chooses one of them.

use super::machines::{self, Machines};
use super::node_kind::{FOLDER, NodeKind, WEIR_HAND_OFF};
use super::nodes::{self, FRONT_END, Member, Node};
use super::responses::Http;
use super::setup::Setup;
use crate::client::metrics;
use crate::cluster::nodes::wait_until_none_is_gone;
use crate::proxy::contender::Contender;
use crate::proxy::server::{Place, Server, take_port};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use xtask::failure::{During, Failure};
use xtask::namespace::Namespace;
use xtask::namespace::ethernet::DEVICE;

/// A way to serve clients with several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum System {
    /// A front end that gives connections to nodes in turn
    Wrr,
    /// A front end with lard, by the first request of a connection
    LardByConnection,
    /// A front end with lard, by request
    Lard,
    /// A front end with extended-lard, which passes responses on
    ExtendedLard,
    /// A cluster with extended-lard: nodes that ask each other, and nothing before them
    ExtendedLardPeers,
    /// A front end that hands connections over to the nodes of such a cluster
    ExtendedLardHandOff,
    /// HAProxy, by request in turn
    HaproxyRoundRobin,
    /// HAProxy, by the path: consistent hashing with bounded load
    HaproxyUri,
}

/// In the order of the tables.
pub(super) const SYSTEMS: [System; 8] = [
    System::Wrr,
    System::LardByConnection,
    System::Lard,
    System::ExtendedLard,
    System::ExtendedLardPeers,
    System::ExtendedLardHandOff,
    System::HaproxyRoundRobin,
    System::HaproxyUri,
];

/// The programs beside weir.
pub(crate) static PROGRAMS: [Contender; 5] = [
    Contender::WEIR.with(FOLDER),
    Contender::NGINX.with(FOLDER),
    Contender::HAPROXY.with(FOLDER),
    WEIR_FRONT_END,
    WEIR_HAND_OFF,
];

const WEIR_FRONT_END: Contender = Contender {
    files: &["front-end.toml"],
    command: "@WEIR@ serve --config @DIR@/front-end.toml",
    ..Contender::WEIR.with(FOLDER)
};

/// How a front end chooses.
enum Choice {
    /// Lines of a `[[route]]`.
    Weir(&'static str),
    /// Lines of a `backend`.
    HaProxy(&'static str),
    /// By the policy of a cluster.
    Peers(&'static str),
    /// The same, by a front end that hands connections over.
    HandOff(&'static str),
}

impl System {
    /// For people.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Wrr => "WRR",
            Self::LardByConnection => "lard by connection",
            Self::Lard => "lard by request",
            Self::ExtendedLard => "extended-lard, relay",
            Self::ExtendedLardPeers => "extended-lard, peers",
            Self::ExtendedLardHandOff => "extended-lard, hand-off and peers",
            Self::HaproxyRoundRobin => "HAProxy roundrobin",
            Self::HaproxyUri => "HAProxy uri",
        }
    }

    /// The limits of lard are those with which it chooses as extended-lard does: `docs/cluster.md`.
    const fn choice(self) -> Choice {
        match self {
            Self::Wrr => Choice::Weir("policy = \"in-turn\"\nchoice_for = \"connection\""),
            Self::LardByConnection => Choice::Weir(
                "policy = \"lard\"\nload_low = 30\nload_high = 80\nchoice_for = \"connection\"",
            ),
            Self::Lard => Choice::Weir("policy = \"lard\"\nload_low = 30\nload_high = 80"),
            Self::ExtendedLard => Choice::Weir("policy = \"extended-lard\""),
            Self::ExtendedLardPeers => Choice::Peers("extended-lard"),
            Self::ExtendedLardHandOff => Choice::HandOff("extended-lard"),
            Self::HaproxyRoundRobin => Choice::HaProxy("    balance roundrobin"),
            Self::HaproxyUri => Choice::HaProxy(
                "    balance uri\n    hash-type consistent\n    hash-balance-factor 125",
            ),
        }
    }

    /// The policy of the nodes' cluster; `None`: they know nothing of each other.
    pub(super) const fn policy_of_nodes(self) -> Option<&'static str> {
        match self.choice() {
            Choice::Peers(policy) | Choice::HandOff(policy) => Some(policy),
            Choice::Weir(_) | Choice::HaProxy(_) => None,
        }
    }

    /// Whether its members need machines of their own.
    pub(super) const fn needs_machines(self) -> bool {
        matches!(self.choice(), Choice::HandOff(_))
    }

    /// Whether it can be before such nodes, and differs from the others with such clients.
    pub(super) fn takes_part(self, kind: NodeKind, http: Http) -> bool {
        match self {
            Self::ExtendedLardPeers => kind == NodeKind::Weir,
            // it is for HTTP/1.1
            Self::ExtendedLardHandOff => kind == NodeKind::Weir && http == Http::Persistent,
            // with a connection each request it is lard by request
            Self::LardByConnection => http == Http::Persistent,
            _ => true,
        }
    }
}

/// What is before running nodes.
#[derive(Debug)]
pub(super) struct FrontEnd {
    server: Option<Server>,
    /// Where clients connect.
    entrances: Vec<SocketAddr>,
    /// That it is on, if it hands connections over, and its admin interface there.
    machine: Option<(Arc<Namespace>, SocketAddr)>,
}

impl FrontEnd {
    /// Starts it before `nodes`.
    pub(super) fn start(
        setup: &Setup<'_>,
        system: System,
        (nodes, machines): (&[Node], Option<&Machines>),
        directory: &Path,
    ) -> Result<Self, Failure> {
        let mut words = setup.words.clone();
        let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, take_port()?));
        words.set("ADMIN", admin.port());
        let directory = directory.join("front-end");
        let place = setup.place();
        match system.choice() {
            Choice::Peers(_) => Ok(Self {
                server: None,
                entrances: nodes.iter().map(Node::address).collect(),
                machine: None,
            }),
            Choice::Weir(choice) => {
                let hops = nodes
                    .iter()
                    .map(|node| format!("\"http://{}\"", node.address()));
                words.set("NODES", hops.collect::<Vec<_>>().join(", "));
                words.set("CHOICE", choice);
                let mut server = Server::launch(&WEIR_FRONT_END, &directory, &words, &place)?;
                server.wait_until_it_is_whole(admin)?;
                Ok(Self::behind(server))
            }
            Choice::HaProxy(balance) => {
                let servers = nodes
                    .iter()
                    .map(|node| format!("    server {} {}\n", node.name, node.address()));
                words.set("NODES", servers.collect::<String>());
                words.set("BALANCE", balance);
                let contender = Contender::HAPROXY.with(FOLDER);
                let mut server = Server::launch(&contender, &directory, &words, &place)?;
                server.wait_until_it_accepts()?;
                Ok(Self::behind(server))
            }
            Choice::HandOff(policy) => {
                let machines =
                    machines.ok_or_else(|| Failure::Refused("no machines".to_owned()))?;
                std::fs::create_dir_all(&directory).during("make a front end's directory")?;
                let member = Member {
                    name: FRONT_END,
                    own: machines::front_end_peer(),
                    policy,
                    hand_off: Some(&format!("device = \"{DEVICE}\"")),
                };
                let peers: Vec<SocketAddr> = (0..nodes.len()).map(machines::peer).collect();
                words.set(
                    "CLUSTER_TABLES",
                    nodes::tables(&directory, &member, &peers)?,
                );
                words.set("MEMORY_MIB", 1);
                words.set("DISK_LINES", "enabled = false");
                let within = machines.front_end.command();
                let place = Place {
                    within: &within,
                    ..place
                };
                let mut server = Server::launch(&WEIR_HAND_OFF, &directory, &words, &place)?;
                let there = &machines.front_end;
                there.inside(|| server.wait_until_it_is_whole(admin))??;
                there.inside(|| wait_until_none_is_gone(admin, FRONT_END))??;
                Ok(Self {
                    server: Some(server),
                    entrances: vec![machines::service()],
                    machine: Some((Arc::clone(there), admin)),
                })
            }
        }
    }

    fn behind(server: Server) -> Self {
        Self {
            entrances: vec![server.address()],
            server: Some(server),
            machine: None,
        }
    }

    /// Where clients connect.
    pub(super) fn entrances(&self) -> &[SocketAddr] {
        &self.entrances
    }

    /// Connections that it has handed over until now.
    pub(super) fn hand_offs(&self) -> Result<u64, Failure> {
        let Some((machine, admin)) = &self.machine else {
            return Ok(0);
        };
        let text = machine.inside(|| metrics::text(*admin))?;
        let text = text.during("read a front end's metrics")?;
        Ok(metrics::sum(&text, "weir_hand_offs_total").unwrap_or_default())
    }

    /// CPU time until now, microseconds; 0 if there is none.
    pub(super) fn cpu_us(&self) -> u64 {
        let server = self.server.as_ref();
        server.map_or(0, |server| server.cpu_time().sum_us())
    }
}
