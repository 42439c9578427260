//! All of them at once: clients, clock, purges, restarts.

use super::client::{Client, POPULAR, Tally, URLS, find};
use super::origin::Origin;
use super::purge_log::Purged;
use super::random::{Dice, PRIVATE};
use super::responses::{Kind, TAGGED, written};
use crate::support::{Running, scripted, span};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, mpsc};
use weir_disk::files::{Files, SystemFiles};
use weir_measure::Metric;
use weir_proxy::config::{ByteSize, Config, Directory, Listener, ListenerKind, Member, Module};

/// Clients at once.
const CLIENTS: usize = 12;

/// The proxy is started so many times, each time with what is on disk.
const LIVES: usize = 3;

/// Requests of a client between two looks at the clock.
const TURN: usize = 20;

/// Far less than there is, so that memory alone does not hold it.
const MEMORY_MIB: u64 = 4;
const DISK_BYTES: u64 = 64 << 20;

pub(crate) struct Soak {
    seed: u64,
    /// As many gateways as it has, as nodes of one cluster if there are several.
    nodes: usize,
    origin: Origin,
    purged: Arc<Purged>,
    folder: tempfile::TempDir,
    dice: Dice,
    passed_ms: u64,
    tally: Tally,
    wrong: BTreeMap<Kind, String>,
}

impl Soak {
    pub(crate) fn new(seed: u64, nodes: usize) -> Self {
        Self {
            seed,
            nodes,
            origin: Origin::start(seed),
            purged: Arc::new(Purged::none()),
            folder: tempfile::tempdir().expect("a temporary folder"),
            dice: Dice::new(seed, 0x736f_616b),
            passed_ms: 0,
            tally: Tally::default(),
            wrong: BTreeMap::new(),
        }
    }

    /// Asks so many times.
    pub(crate) fn run(mut self, requests: usize) -> Tally {
        let (mut on_disk, mut text) = (None, String::new());
        for life in 0..LIVES {
            let nodes = self.start();
            let each = requests / LIVES / CLIENTS;
            self.live(&nodes, life, each);
            if nodes.len() > 1 {
                let lateral = nodes.iter().map(|node| node.count(Metric::PeerRequests));
                assert!(lateral.sum::<u64>() > 0, "no node asked another one");
            }
            for node in nodes {
                assert_eq!(node.count(Metric::Panics), 0, "something panicked");
                assert!(node.stop().join().expect("no panic"), "it did not finish");
            }
            on_disk = on_disk.or(private_bytes(self.folder.path()));
        }
        for (kind, wrong) in &self.wrong {
            let _ = write!(text, "\n{kind:?}: {wrong}");
        }
        if let Some(on_disk) = on_disk {
            let _ = write!(text, "\non disk: {on_disk}");
        }
        assert!(text.is_empty(), "WEIR_ISOLATION_SEED={}{text}", self.seed);
        self.tally
    }

    fn start(&self) -> Vec<Running> {
        let nodes: Vec<Running> = (0..self.nodes).map(|node| self.start_node(node)).collect();
        if nodes.len() > 1 {
            let members = (0..).zip(&nodes);
            let members = members.map(|(node, running)| member(node, running.listener(1)));
            let members: Vec<Member> = members.collect();
            for node in &nodes {
                node.reload(|config| config.cluster.members.clone_from(&members));
            }
        }
        nodes
    }

    fn start_node(&self, node: usize) -> Running {
        let directory = Directory {
            path: self.folder.path().join(format!("store-{node}")),
            size: Some(ByteSize::from_bytes(DISK_BYTES)),
        };
        let files: Arc<dyn Files> = Arc::new(SystemFiles);
        let later_s = i64::try_from(self.passed_ms / 1000).expect("some days");
        let change = |config: &mut Config| {
            config.workers = 2;
            config.modules = vec![tagging()];
            config.cache.memory = ByteSize::from_mib(MEMORY_MIB);
            config.cache.largest_response = ByteSize::from_mib(1);
            config.disk.enabled = true;
            config.disk.directories = vec![directory];
            // who could wait for another does, whatever came of it the last time
            config.fetch.uncollapsible_for = span("0s");
            if self.nodes > 1 {
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                let mode = ListenerKind::Peer;
                config.listeners.push(Listener { address, mode });
                config.cluster.node = Some(node_name(node));
                // the ports of the others are known once they listen
                config.cluster.members =
                    vec![member(node, SocketAddr::from((Ipv4Addr::LOCALHOST, 9)))];
            }
        };
        let running = Running::gateway_on(self.origin.address(), &files, later_s, change);
        let running = running.expect("a proxy");
        running.wait_for(Metric::DiskLoading, 0);
        running
    }

    /// Each client asks `each` times; meanwhile time passes, and operators purge.
    fn live(&mut self, nodes: &[Running], life: usize, each: usize) {
        let seed = self.seed;
        let purged = Arc::clone(&self.purged);
        std::thread::scope(|scope| {
            let (turns, taken) = mpsc::channel();
            let clients: Vec<_> = (0..CLIENTS)
                .map(|number| {
                    let (turns, purged) = (turns.clone(), &purged);
                    let address = nodes[number % nodes.len()].address();
                    scope.spawn(move || {
                        let mut client =
                            Client::new(purged, address, seed, (life * CLIENTS + number) as u64);
                        for asked in 0..each {
                            client.ask();
                            if asked % TURN == 0 {
                                // there is no listener when the test is over
                                let _ = turns.send(());
                            }
                        }
                        (client.tally, client.wrong)
                    })
                })
                .collect();
            drop(turns);
            for () in taken {
                self.turn(nodes);
            }
            for client in clients {
                match client.join() {
                    Ok((tally, wrong)) => {
                        self.tally.add(&tally);
                        self.wrong.extend(wrong);
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
    }

    /// One of the nodes: whatever is purged there is for all of them.
    fn any<'n>(&mut self, nodes: &'n [Running]) -> &'n Running {
        let node = self.dice.below(nodes.len() as u64);
        &nodes[usize::try_from(node).expect("small")]
    }

    fn turn(&mut self, nodes: &[Running]) {
        let ms = self.dice.below(1500);
        for node in nodes {
            node.clock.advance_ms(ms);
        }
        self.passed_ms += ms;
        if self.dice.percent(10) {
            // half of them where a fetch is likely to be under way
            let urls = if self.dice.percent(50) { POPULAR } else { URLS };
            let path = self.dice.below(urls);
            let version = self.origin.change(path);
            let url = format!("http://a.example{}", written(path));
            self.any(nodes).purge(&url);
            self.purged.note(path, version);
        }
        if self.dice.below(300) == 0 {
            let versions: Vec<_> = (0..URLS).map(|path| self.origin.change(path)).collect();
            self.any(nodes).purge_all();
            for (path, version) in (0..URLS).zip(versions) {
                self.purged.note(path, version);
            }
        }
    }
}

fn node_name(node: usize) -> String {
    format!("node-{node}")
}

fn member(node: usize, peer_listener: SocketAddr) -> Member {
    Member {
        name: node_name(node),
        url: format!("http://{peer_listener}").parse().expect("a URL"),
        weight: 100,
        front_end: false,
    }
}

/// The module whose tags keep requests apart.
fn tagging() -> Module {
    let mut module = scripted(
        "tagging",
        &[
            ("request-received", "variant X-Variant"),
            ("response-received", "content tag"),
        ],
    );
    module.path = TAGGED.parse().expect("the beginning of a path");
    module
}

/// A file below `folder` with a token in it, and where.
fn private_bytes(folder: &Path) -> Option<String> {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if let Some(found) = private_bytes(&path) {
                return Some(found);
            }
            continue;
        }
        let bytes = std::fs::read(&path).expect("a file");
        if let Some(at) = find(&bytes, PRIVATE.as_bytes()) {
            let around = &bytes[at.saturating_sub(200)..bytes.len().min(at + 100)];
            return Some(format!(
                "{}: {}",
                path.display(),
                String::from_utf8_lossy(around)
            ));
        }
    }
    None
}
