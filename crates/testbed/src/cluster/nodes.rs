//! Nodes of a cluster, or as many that know nothing of each other.

use crate::client::{get, metrics};
use crate::process::guarded;
use crate::proxy::contender::Contender;
use crate::proxy::server::{Place, Server, file_of_peers, take_port, write_template};
use crate::proxy::template::Words;
use std::fs::OpenOptions;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use xtask::failure::{During, Failure};

/// Where the configurations are, below `peers/`.
pub(super) const FOLDER: &str = "cluster";

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// How long a node may take to take over a configuration.
const RELOAD_MAX: Duration = Duration::from_secs(20);

/// How often it is asked for what it knows.
const POLL: Duration = Duration::from_millis(10);

/// What the nodes are.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeRules {
    /// How many, up to four.
    pub(super) count: usize,
    /// Memory of each.
    pub(super) memory_mib: u64,
    /// The policy of their cluster; `None`: they are in none.
    pub(super) policy: Option<&'static str>,
    /// Whether they prove to each other that they know a secret.
    pub(super) has_secret: bool,
}

/// Where and with what nodes run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bed<'a> {
    pub(super) directory: &'a Path,
    /// With the address of their origin.
    pub(super) words: &'a Words,
    pub(super) place: Place<'a>,
}

/// One node.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) server: Server,
    pub(super) name: &'static str,
    directory: PathBuf,
    words: Words,
    pub(super) admin: SocketAddr,
}

/// Running nodes.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) nodes: Vec<Node>,
    rules: NodeRules,
    /// Peer listeners of all nodes that may come.
    peers: Vec<SocketAddr>,
}

impl Nodes {
    /// Starts them in `bed`; all of their listeners are open.
    pub(super) fn start(bed: &Bed<'_>, rules: NodeRules) -> Result<Self, Failure> {
        let peers = NAMES.iter().map(|_| loopback(take_port()?));
        let mut nodes = Self {
            nodes: Vec::new(),
            rules,
            peers: peers.collect::<Result<_, Failure>>()?,
        };
        for place in 0..rules.count {
            let node = nodes.launch(bed, place, rules.count)?;
            nodes.nodes.push(node);
        }
        // not by a request: it would be sent to a node that is not there yet
        for node in &mut nodes.nodes {
            node.wait_until_it_is_whole()?;
        }
        nodes.wait_until_none_is_gone()?;
        Ok(nodes)
    }

    /// Adds one node: starts it, then tells the others.
    pub(super) fn join(&mut self, bed: &Bed<'_>) -> Result<(), Failure> {
        let count = self.nodes.len() + 1;
        let mut node = self.launch(bed, count - 1, count)?;
        node.wait_until_it_is_whole()?;
        for place in 0..self.nodes.len() {
            let tables = self.tables(&self.nodes[place].directory, place, count)?;
            let node = &mut self.nodes[place];
            node.words.set("CLUSTER_TABLES", tables);
            node.reload(bed)?;
        }
        self.nodes.push(node);
        self.wait_until_none_is_gone()
    }

    fn wait_until_none_is_gone(&self) -> Result<(), Failure> {
        if self.rules.policy.is_none() {
            return Ok(());
        }
        let mut nodes = self.nodes.iter();
        nodes.try_for_each(|node| wait_until_none_is_gone(node.admin, node.name))
    }

    /// Where clients connect.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(Node::address).collect()
    }

    /// CPU time of each until now, microseconds.
    pub(super) fn cpu_us(&self) -> Vec<u64> {
        let times = self.nodes.iter().map(|node| node.server.cpu_time());
        times.map(|time| time.sum_us()).collect()
    }

    /// A metric of each.
    pub(super) fn metric(&self, name: &str) -> Result<Vec<u64>, Failure> {
        let nodes = self.nodes.iter();
        nodes.map(|node| node.metric(name)).collect()
    }

    fn launch(&self, bed: &Bed<'_>, place: usize, count: usize) -> Result<Node, Failure> {
        let name = NAMES[place];
        let directory = bed.directory.join(name);
        std::fs::create_dir_all(&directory).during("make a node's directory")?;
        let admin = loopback(take_port()?)?;
        let mut words = bed.words.clone();
        words.set("MEMORY_MIB", self.rules.memory_mib);
        words.set("ADMIN", admin.port());
        words.set("CLUSTER_TABLES", self.tables(&directory, place, count)?);
        let contender = Contender::WEIR.with(FOLDER);
        let server = Server::launch(&contender, &directory, &words, &bed.place)?;
        // the words that the server was started with, to write its file again
        words.set("HOST", bed.place.host);
        words.set("PORT", server.address().port());
        words.set("DIR", directory.display());
        Ok(Node {
            server,
            name,
            directory,
            words,
            admin,
        })
    }

    /// The part of a configuration that is about the cluster; empty if there is none.
    fn tables(&self, directory: &Path, place: usize, count: usize) -> Result<String, Failure> {
        let Some(policy) = self.rules.policy else {
            return Ok(String::new());
        };
        let name = NAMES[place];
        let mut tables = format!("\n[cluster]\nnode = \"{name}\"\npolicy = \"{policy}\"\n");
        if self.rules.has_secret {
            let file = directory.join("secret");
            write_secret(&file).during("write a secret")?;
            tables += &format!("secret_file = \"{}\"\n", file.display());
        }
        for (name, peer) in NAMES.iter().zip(&self.peers).take(count) {
            tables += &format!("[[cluster.member]]\nname = \"{name}\"\nurl = \"http://{peer}\"\n");
        }
        let own = self.peers[place];
        tables += &format!("[[listener]]\naddress = \"{own}\"\nmode = \"peer\"\n");
        Ok(tables)
    }
}

impl Node {
    pub(super) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Also its peer listener, which opens after that for clients.
    fn wait_until_it_is_whole(&mut self) -> Result<(), Failure> {
        self.server.wait_until_it_is_whole(self.admin)
    }

    /// A metric, summed over its labels.
    pub(super) fn metric(&self, name: &str) -> Result<u64, Failure> {
        let text = metrics::text(self.admin).during("read a node's metrics")?;
        let sum = metrics::sum(&text, name);
        sum.ok_or_else(|| Failure::Refused(format!("a node has no metric {name}")))
    }

    /// The name of the node that keeps a target of the host that clients ask for, as this one says.
    pub(super) fn owner_of(&self, target: &str) -> Result<String, Failure> {
        let escaped = target.replace('&', "%26");
        let path = format!("/route?format=json&url=http://origin.example{escaped}");
        let mut stream = get::connect(self.admin).during("connect to a node's admin interface")?;
        let answer = get::get_of(&mut stream, &self.admin.to_string(), &path);
        let answer = answer.during("ask a node for a route")?;
        let route: serde_json::Value =
            serde_json::from_slice(&answer.body).during("understand a node's route")?;
        let candidates = route["candidates"].as_array();
        let mut candidates = candidates.into_iter().flatten();
        let owner = candidates.find(|it| it["kind"] == "node" && !it["chosen"].is_null());
        let owner = owner.and_then(|it| it["name"].as_str().map(str::to_owned));
        owner.ok_or_else(|| Failure::Refused(format!("no node keeps `{target}`: {route}")))
    }

    /// Writes its configuration, and has it read.
    fn reload(&self, bed: &Bed<'_>) -> Result<(), Failure> {
        for file in Contender::WEIR.files {
            let to = self.directory.join(file);
            write_template(&file_of_peers(FOLDER, file), &to, &self.words)?;
        }
        let weir = bed.words.fill("@WEIR@")?;
        let admin = self.admin.to_string();
        let arguments = [weir.as_str(), "reload", "--admin", &admin].map(str::to_owned);
        let core = bed.place.core.unwrap_or_default();
        guarded::output(core, &arguments, RELOAD_MAX).map(drop)
    }
}

/// Waits until a node takes no other one for gone: one that started first has asked others how they
/// are that did not listen yet.
pub(super) fn wait_until_none_is_gone(admin: SocketAddr, name: &str) -> Result<(), Failure> {
    let until = Instant::now() + RELOAD_MAX;
    while let Some(state) = state_of_one_that_fails(admin)? {
        if Instant::now() > until {
            let what = format!("node {name} has another one as {state}");
            return Err(Failure::Outside(what));
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// The state of a member that has failed, as a node says.
fn state_of_one_that_fails(admin: SocketAddr) -> Result<Option<String>, Failure> {
    let mut stream = get::connect(admin).during("connect to a node's admin interface")?;
    let answer = get::get_of(&mut stream, &admin.to_string(), "/cluster?format=json");
    let answer = answer.during("ask a node for its members")?;
    let cluster: serde_json::Value =
        serde_json::from_slice(&answer.body).during("understand a node's members")?;
    let members = cluster["members"].as_array();
    let states = members.into_iter().flatten().map(|it| &it["state"]);
    let mut failing = states.filter(|state| *state == "gone" || *state == "to-be-probed");
    Ok(failing.next().map(ToString::to_string))
}

/// A secret that its owner alone can read.
pub(super) fn write_secret(file: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options
        .open(file)?
        .write_all(b"a-secret-of-nodes-that-are-measured\n")
}

fn loopback(port: u16) -> Result<SocketAddr, Failure> {
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}
