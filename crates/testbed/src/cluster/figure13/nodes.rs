//! Nodes, each with its own copy of the content, its own memory and its own slow disk.

use super::content;
use super::machines::{self, Machines};
use super::node_kind::{NAMES, NodeKind, WEIR_HAND_OFF};
use super::responses::{Http, Responses};
use super::setup::Setup;
use crate::client::metrics;
use crate::cluster::nodes::{wait_until_none_is_gone, write_secret};
use crate::process::guarded;
use crate::process::limits::Limits;
use crate::proxy::contender::Contender;
use crate::proxy::server::{Place, Server, take_port};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use xtask::failure::{During, Failure};
use xtask::namespace::Namespace;

/// The member that is the front end, where there is one.
pub(super) const FRONT_END: &str = "front";

/// The disk store is larger than the content, so that nothing is evicted from it.
const DISK_TIMES: u64 = 2;
const DISK_MIB_MIN: u64 = 64;

/// How long a node may take to write down what it has, and a copy may take.
const WRITE_MAX: Duration = Duration::from_secs(600);

/// Clients that fill a store.
const FILLERS: usize = 8;

/// One node.
#[derive(Debug)]
pub(super) struct Node {
    // before its limits, which are gone when no process is in them
    server: Server,
    limits: Limits,
    /// That it is on, if it is not this one.
    machine: Option<Arc<Namespace>>,
    admin: Option<SocketAddr>,
    pub(super) name: &'static str,
}

impl Node {
    pub(super) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub(super) fn set_reads_per_s(&self, reads: Option<u32>) -> Result<(), Failure> {
        self.limits.set_reads_per_s(reads)
    }

    /// Reads of its disk until now.
    pub(super) fn reads(&self) -> Result<u64, Failure> {
        self.limits.reads()
    }

    /// CPU time until now, microseconds.
    pub(super) fn cpu_us(&self) -> u64 {
        self.server.cpu_time().sum_us()
    }

    /// Requests that it has sent to other nodes until now.
    pub(super) fn lateral(&self) -> Result<u64, Failure> {
        let Some(admin) = self.admin else {
            return Ok(0);
        };
        let text = self.there(|| metrics::text(admin))?;
        let text = text.during("read a node's metrics")?;
        Ok(metrics::sum(&text, "weir_peer_requests_total").unwrap_or_default())
    }

    /// Runs something in the network of its machine.
    fn there<T: Send>(&self, what: impl FnOnce() -> T + Send) -> Result<T, Failure> {
        match &self.machine {
            Some(machine) => machine.inside(what),
            None => Ok(what()),
        }
    }

    fn wait_until_it_is_whole(&mut self) -> Result<(), Failure> {
        let server = &mut self.server;
        let Some(admin) = self.admin else {
            return server.wait_until_it_accepts();
        };
        match &self.machine {
            Some(machine) => machine.inside(|| server.wait_until_it_is_whole(admin))?,
            None => server.wait_until_it_is_whole(admin),
        }
    }

    /// A front end starts after its nodes.
    fn wait_until_none_is_gone(&self) -> Result<(), Failure> {
        match (self.admin, &self.machine) {
            (Some(admin), None) => wait_until_none_is_gone(admin, self.name),
            _ => Ok(()),
        }
    }
}

/// Prepares the content of nodes.
///
/// # Errors
/// There is no room for it, or a store cannot be filled.
pub(super) fn prepare(setup: &Setup<'_>, kind: NodeKind, count: usize) -> Result<(), Failure> {
    let first = kind.content(&setup.directory, NAMES[0]);
    if kind == NodeKind::Nginx {
        // its first copy is that of the origin, too
        for name in &NAMES[1..count] {
            content::write_files(&kind.content(&setup.directory, name), setup.schedule)?;
        }
        return Ok(());
    }
    fill(setup, &first)?;
    for name in &NAMES[1..count] {
        let to = kind.content(&setup.directory, name);
        let words = ["cp", "-a", &text(&first), &text(&to)].map(str::to_owned);
        guarded::output(setup.cores.load, &words, WRITE_MAX)?;
    }
    rustix::fs::sync();
    Ok(())
}

/// Fills the first store: each target is requested once.
fn fill(setup: &Setup<'_>, disk: &Path) -> Result<(), Failure> {
    let directory = setup.directory.join("fill");
    let contender = NodeKind::Weir.contender();
    let (mut server, _) = launch(setup, (&contender, disk), &directory, ("", &[]))?;
    server.wait_until_it_accepts()?;
    let address = server.address();
    let clients = |first: usize| {
        let mut responses = Responses::connect(Ipv4Addr::LOCALHOST, address)
            .map_err(|error| format!("no connection: {error}"))?;
        for number in (first..setup.schedule.targets()).step_by(FILLERS) {
            let target = setup.schedule.target(number);
            let asked = responses.ask(std::slice::from_ref(&target), Http::Persistent);
            asked.map_err(|error| error.to_string())?;
            responses.receive(&target)?;
        }
        Ok::<(), String>(())
    };
    let filled = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..FILLERS)
            .map(|first| scope.spawn(move || clients(first)))
            .collect();
        let ends = threads.into_iter().map(|it| {
            it.join()
                .unwrap_or_else(|_| Err("a client panicked".to_owned()))
        });
        ends.collect::<Result<(), String>>()
    });
    filled.map_err(|why| Failure::Refused(format!("a store cannot be filled: {why}")))?;
    server.end(WRITE_MAX);
    Ok(())
}

/// Starts so many nodes; all of their listeners are open. With a policy they are a cluster, and
/// with machines each is on one.
pub(super) fn start(
    setup: &Setup<'_>,
    (kind, count): (NodeKind, usize),
    directory: &Path,
    (policy, machines): (Option<&str>, Option<&Machines>),
) -> Result<Vec<Node>, Failure> {
    let peers = (0..count).map(|place| match machines {
        Some(_) => Ok(machines::peer(place)),
        None => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, take_port()?))),
    });
    let peers: Vec<SocketAddr> = peers.collect::<Result<_, Failure>>()?;
    let mut nodes = Vec::new();
    for (place, name) in NAMES[..count].iter().enumerate() {
        let own = directory.join(name);
        std::fs::create_dir_all(&own).during("make a node's directory")?;
        let tables = match policy {
            Some(policy) => {
                let member = Member {
                    name,
                    own: peers[place],
                    policy,
                    hand_off: machines.map(|_| ""),
                };
                tables(&own, &member, &peers)?
            }
            None => String::new(),
        };
        let content = kind.content(&setup.directory, name);
        content::drop_from_page_cache(&content)?;
        let limits = Limits::make(
            &format!("figure13-{name}"),
            setup.memory.group_mib(kind),
            &content,
        )?;
        // counted from here on
        limits.set_reads_per_s(None)?;
        let machine = machines.map(|all| Arc::clone(&all.nodes[place]));
        let mut within = limits.within();
        within.extend(machine.iter().flat_map(|machine| machine.command()));
        let contender = match machines {
            Some(_) => WEIR_HAND_OFF,
            None => kind.contender(),
        };
        let with = (tables.as_str(), within.as_slice());
        let (server, admin) = launch(setup, (&contender, &content), &own, with)?;
        nodes.push(Node {
            server,
            limits,
            machine,
            admin: (kind == NodeKind::Weir).then_some(admin),
            name,
        });
    }
    for node in &mut nodes {
        node.wait_until_it_is_whole()?;
    }
    for node in nodes.iter().filter(|_| policy.is_some()) {
        node.wait_until_none_is_gone()?;
    }
    Ok(nodes)
}

fn launch(
    setup: &Setup<'_>,
    (contender, content): (&Contender, &Path),
    directory: &Path,
    (tables, within): (&str, &[String]),
) -> Result<(Server, SocketAddr), Failure> {
    let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, take_port()?));
    let mut words = setup.words.clone();
    let content_mib = setup.schedule.content_bytes() >> 20;
    words.set("ADMIN", admin.port());
    words.set("MEMORY_MIB", setup.memory.cache_mib);
    words.set("DISK_LINES", disk_lines(content, content_mib));
    words.set("ROOT", content.display());
    words.set("CLUSTER_TABLES", tables);
    let place = Place {
        within,
        ..setup.place()
    };
    std::fs::create_dir_all(content).during("make a directory of content")?;
    let server = Server::launch(contender, directory, &words, &place)?;
    Ok((server, admin))
}

/// The `[disk]` table. What is on disk is read there, however long that takes: the origin is faster
/// than a disk at its limit, and would hide it.
fn disk_lines(directory: &Path, content_mib: u64) -> String {
    let size_mib = (content_mib * DISK_TIMES).max(DISK_MIB_MIN);
    let path = directory.display();
    format!(
        "directories = [{{ path = \"{path}\", size = \"{size_mib}MiB\" }}]\nlookup_wait = \"1min\""
    )
}

/// A member of a cluster.
pub(super) struct Member<'a> {
    pub(super) name: &'a str,
    /// Its listener for other members.
    pub(super) own: SocketAddr,
    pub(super) policy: &'a str,
    /// More lines of `[cluster]`, where a front end hands connections over.
    pub(super) hand_off: Option<&'a str>,
}

/// The part of a configuration that is about the cluster.
pub(super) fn tables(
    directory: &Path,
    member: &Member<'_>,
    peers: &[SocketAddr],
) -> Result<String, Failure> {
    let secret = directory.join("secret");
    write_secret(&secret).during("write a secret")?;
    let Member {
        name, own, policy, ..
    } = member;
    // nothing is to be learnt from another node, since all have all content; and one whose disk is
    // busy takes its time
    let mut tables = format!(
        "\n[cluster]\nnode = \"{name}\"\npolicy = \"{policy}\"\njoin_time = \"0s\"\n\
         peer_timeout = \"1min\"\n\
         secret_file = \"{}\"\n",
        secret.display()
    );
    if let Some(more) = member.hand_off {
        tables += &format!("mechanism = \"hand-off\"\n{more}\n");
    }
    for (name, peer) in NAMES.iter().zip(peers) {
        let url = format!("http://{peer}");
        tables += &format!("[[cluster.member]]\nname = \"{name}\"\nurl = \"{url}\"\n");
    }
    if member.hand_off.is_some() {
        let peer = machines::front_end_peer();
        tables += &format!(
            "[[cluster.member]]\nname = \"{FRONT_END}\"\nurl = \"http://{peer}\"\n\
             front_end = true\n"
        );
    }
    tables += &format!("[[listener]]\naddress = \"{own}\"\nmode = \"peer\"\n");
    Ok(tables)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
