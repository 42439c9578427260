//! What is measured beside each other: nodes of a cluster under each policy, and a front end before
//! nodes that know nothing of each other.

use super::nodes::{Bed, FOLDER, NodeRules, Nodes};
use crate::proxy::contender::Contender;
use crate::proxy::server::{Server, take_port};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use xtask::failure::{During, Failure};

/// A way to serve clients with several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SystemKind {
    pub(super) name: &'static str,
    /// The policy of the cluster; `None`: HAProxy is before the nodes.
    pub(super) policy: Option<&'static str>,
}

/// The policy that a cluster has where its configuration names none.
pub(super) const DEFAULT_POLICY: &str = "replicated-hash";

pub(super) const HAPROXY: SystemKind = SystemKind {
    name: "HAProxy before nodes",
    policy: None,
};

/// In the order of the tables.
pub(super) const SYSTEMS: [SystemKind; 6] = [
    of_policy(DEFAULT_POLICY),
    of_policy("bounded-hash"),
    of_policy("hash"),
    of_policy("lard-r"),
    of_policy("extended-lard"),
    HAPROXY,
];

const fn of_policy(policy: &'static str) -> SystemKind {
    SystemKind {
        name: policy,
        policy: Some(policy),
    }
}

/// The programs beside weir.
pub(crate) static PROGRAMS: [Contender; 2] = [
    Contender::WEIR.with(FOLDER),
    Contender::HAPROXY.with(FOLDER),
];

/// The longest that the front end may take to answer a command.
const COMMAND_MAX: Duration = Duration::from_secs(5);

/// Running nodes, and the front end before them if there is one.
#[derive(Debug)]
pub(super) struct System {
    pub(super) kind: SystemKind,
    pub(super) nodes: Nodes,
    front_end: Option<FrontEnd>,
}

#[derive(Debug)]
struct FrontEnd {
    server: Server,
    socket: PathBuf,
}

impl System {
    /// Starts `count` nodes of a kind with so much memory each.
    pub(super) fn start(
        bed: &Bed<'_>,
        kind: SystemKind,
        (count, memory_mib): (usize, u64),
    ) -> Result<Self, Failure> {
        let directory = bed.directory.join(kind.name.replace(' ', "-"));
        let bed = Bed {
            directory: &directory,
            ..*bed
        };
        let rules = NodeRules {
            count,
            memory_mib,
            policy: kind.policy,
            has_secret: true,
        };
        let nodes = Nodes::start(&bed, rules)?;
        let front_end = match kind.policy {
            Some(_) => None,
            None => Some(FrontEnd::start(&bed, &nodes)?),
        };
        Ok(Self {
            kind,
            nodes,
            front_end,
        })
    }

    /// Where clients connect.
    pub(super) fn entrances(&self) -> Vec<SocketAddr> {
        match &self.front_end {
            Some(front_end) => vec![front_end.server.address()],
            None => self.nodes.addresses(),
        }
    }

    /// CPU time of all of its processes until now, microseconds.
    pub(super) fn cpu_us(&self) -> u64 {
        let front_end = self.front_end.as_ref();
        let front_end = front_end.map_or(0, |it| it.server.cpu_time().sum_us());
        self.nodes.cpu_us().iter().sum::<u64>() + front_end
    }

    /// One node more.
    pub(super) fn join(&mut self, bed: &Bed<'_>) -> Result<(), Failure> {
        let directory = bed.directory.join(self.kind.name.replace(' ', "-"));
        let bed = Bed {
            directory: &directory,
            ..*bed
        };
        self.nodes.join(&bed)?;
        if let (Some(front_end), Some(node)) = (&self.front_end, self.nodes.nodes.last()) {
            front_end.enable(node.name, node.address())?;
        }
        Ok(())
    }
}

impl FrontEnd {
    /// HAProxy before the nodes, with a place for one more if they are fewer than four.
    fn start(bed: &Bed<'_>, nodes: &Nodes) -> Result<Self, Failure> {
        let mut servers = String::new();
        for node in &nodes.nodes {
            servers += &format!("    server {} {}\n", node.name, node.address());
        }
        if nodes.nodes.iter().all(|node| node.name != LATER) {
            servers += &format!("    server {LATER} 127.0.0.1:{} disabled\n", take_port()?);
        }
        let mut words = bed.words.clone();
        words.set("SERVERS", servers);
        let directory = bed.directory.join("front-end");
        let contender = Contender::HAPROXY.with(FOLDER);
        let mut server = Server::launch(&contender, &directory, &words, &bed.place)?;
        server.wait_until_it_accepts()?;
        let socket = directory.join("admin.sock");
        Ok(Self { server, socket })
    }

    /// Takes the node in.
    fn enable(&self, name: &str, address: SocketAddr) -> Result<(), Failure> {
        if name != LATER {
            let what = format!("the front end has no place for node {name}");
            return Err(Failure::Refused(what));
        }
        let (ip, port) = (address.ip(), address.port());
        self.command(&format!("set server nodes/{LATER} addr {ip} port {port}"))?;
        self.command(&format!("enable server nodes/{LATER}"))
    }

    fn command(&self, command: &str) -> Result<(), Failure> {
        let during = "send a command to haproxy";
        let mut stream = UnixStream::connect(&self.socket).during(during)?;
        stream.set_read_timeout(Some(COMMAND_MAX)).during(during)?;
        stream
            .write_all(format!("{command}\n").as_bytes())
            .during(during)?;
        let mut said = String::new();
        stream.read_to_string(&mut said).during(during)?;
        let is_error = ["Unknown", "No such", "Require", "Permission", "Invalid"];
        if is_error.iter().any(|word| said.contains(word)) {
            return Err(Failure::Refused(format!("haproxy: `{command}`: {said}")));
        }
        Ok(())
    }
}

/// The node that may join: the fourth.
const LATER: &str = "d";
