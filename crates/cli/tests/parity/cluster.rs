//! Nodes of a cluster in this process, on a manual clock, choose as the simulator does: the same
//! requests are sent to the same nodes for the same reasons.
//!
//! Requests come one after the other, each to one of the nodes. The access log of that node says
//! why it asked whom; the simulator steps the same choice over caches of its own. Hot targets, and
//! times in which they are forgotten, are among the requests.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use weir_disk::files::SystemFiles;
use weir_policy::admission::Rule;
use weir_policy::eviction::EvictionKind;
use weir_policy::route::policy::PolicyKind;
use weir_policy::route::{Balancing, Node, NodeKey, Place, TargetKey};
use weir_policy::{KeyHasher, Secret, Tick};
use weir_proxy::clock::{Clock, ManualClock};
use weir_proxy::config::{
    AdminAddress, Config, Listener, ListenerKind, LogFormat, LogTarget, Member, Mode, Route, Span,
};
use weir_proxy::{Hooks, Options, Proxy};
use weir_semantics::Timestamp;
use weir_sim::cluster::{ClusterRequest, ClusterSetting, ClusterSimulation, ServedFrom};
use weir_sim::hits::Setting;
use weir_sim::keys::NumberedRequest;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What happens: after so many milliseconds a client asks a node for a target.
struct Step {
    after_ms: u64,
    node: usize,
    number: u32,
}

/// Targets in turn at all nodes, then one of them very often, then again all, much later.
fn steps() -> Vec<Step> {
    let mut steps = Vec::new();
    let mut add = |after_ms, node: u32, number| {
        let node = usize::try_from(node % 3).expect("small");
        steps.push(Step {
            after_ms,
            node,
            number,
        });
    };
    for number in 0..30 {
        for node in [number, number + 1, number] {
            add(3, node, number);
        }
    }
    for request in 0..240 {
        // others are requested meanwhile, and each node is asked for the hot one
        add(1, request, HOT);
        add(0, request + 1, 30 + request % 40);
    }
    for number in 0..30 {
        add(900, number + 2, number);
    }
    steps
}

/// Which node was asked, and why; nothing of a hit.
type Choice = Option<(Option<Place>, String)>;

fn simulated(policy: PolicyKind, steps: &[Step]) -> Vec<Choice> {
    let nodes = NAMES.map(|name| Node::new(NodeKey::of(&Secret([0; 16]), name)));
    let setting = ClusterSetting {
        cache: Setting {
            capacity_bytes: 1 << 20,
            eviction: EvictionKind::S3Fifo,
            admission: Rule::Always,
        },
        balancing: Balancing {
            policy,
            ..Balancing::default()
        },
        seed: nodes.iter().fold(0, |all, node| all ^ node.key.0),
    };
    let mut cluster = ClusterSimulation::new(&nodes, &setting);
    let mut at_ms = 0;
    let choices = steps.iter().map(|step| {
        at_ms += step.after_ms;
        let answer = cluster.ask(ClusterRequest {
            at: Tick(at_ms),
            node: Place(u16::try_from(step.node).expect("small")),
            target: target_of(step.number),
            access: NumberedRequest {
                number: step.number,
                size_bytes: 1,
            },
        });
        if answer.served_from == ServedFrom::Here {
            return None;
        }
        let source = answer.source.expect("a choice");
        let why = source.why.map_or("", weir_policy::route::Why::as_str);
        Some((source.node.map(|node| node.place), why.to_owned()))
    });
    choices.collect()
}

/// As a gateway has it in a cluster without a secret.
fn target_of(number: u32) -> TargetKey {
    const GATEWAY_HTTP: u64 = 3;
    let mut hasher = KeyHasher::new(&Secret([0; 16]));
    hasher.number(GATEWAY_HTTP);
    hasher.part(b"a.example");
    hasher.number(80);
    hasher.part(format!("/{number}").as_bytes());
    TargetKey(hasher.finish().0)
}

struct LiveNode {
    proxy: Option<Proxy>,
    config: Arc<Mutex<Config>>,
    log: PathBuf,
}

impl LiveNode {
    fn start(
        name: &str,
        policy: PolicyKind,
        origin: SocketAddr,
        folder: &Path,
        clock: &Arc<ManualClock>,
    ) -> Self {
        let log = folder.join(format!("{name}.log"));
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut config = Config {
            workers: 1,
            listeners: vec![
                Listener {
                    address: any,
                    mode: Mode::Gateway.into(),
                },
                Listener {
                    address: any,
                    mode: ListenerKind::Peer,
                },
            ],
            routes: vec![Route {
                next_hops: vec![format!("http://{origin}").parse().expect("a URL")],
                ..Route::default()
            }],
            ..Config::default()
        };
        config.admin.address = AdminAddress::Off;
        config.log.access = LogTarget::File(log.clone());
        config.log.format = LogFormat::Json;
        config.disk.enabled = false;
        config.cluster.node = Some(name.to_owned());
        // the simulator's nodes tell each other nothing but answers
        config.cluster.state_interval = Span::from_secs(0);
        config.cluster.policy = policy;
        // the ports of the others are known once they listen
        config.cluster.members = vec![member(name, SocketAddr::from((Ipv4Addr::LOCALHOST, 9)))];
        config.validate().expect("a valid configuration");
        let config = Arc::new(Mutex::new(config));
        let reloaded = Arc::clone(&config);
        let options = Options {
            reload: Box::new(move || Ok(reloaded.lock().expect("no panic").clone())),
            describe: Box::new(|_| String::new()),
            clock: Clock::Manual(Arc::clone(clock)),
            files: Arc::new(SystemFiles),
            say: Arc::new(|_| {}),
            give_back_memory: || {},
            hooks: Hooks::default(),
            module_kinds: Vec::new(),
        };
        let first = config.lock().expect("no panic").clone();
        let proxy = Proxy::start(first, options).expect("a proxy");
        Self {
            proxy: Some(proxy),
            config,
            log,
        }
    }

    fn listener(&self, at: usize) -> SocketAddr {
        let proxy = self.proxy.as_ref().expect("it runs");
        proxy.control().listeners()[at].address
    }

    fn set_members(&self, members: &[Member]) {
        let mut config = self.config.lock().expect("no panic");
        config.cluster.members = members.to_vec();
        drop(config);
        let proxy = self.proxy.as_ref().expect("it runs");
        proxy.control().reload().expect("accepted");
    }

    /// The log of all that was asked, by row, once it is written.
    fn choices(mut self, hops: &BTreeMap<SocketAddr, Place>) -> BTreeMap<usize, Choice> {
        let proxy = self.proxy.take().expect("it runs");
        assert!(proxy.stop(), "a request was cut off");
        let text = std::fs::read_to_string(&self.log).expect("a log");
        let lines = text.lines().filter_map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let row = line["user_agent"].as_str()?.strip_prefix("row/")?;
            let hop = line["next_hop"].as_str();
            let choice = hop.map(|hop| {
                let place = hops.get(&hop.parse().expect("an address")).copied();
                let why = line["node_choice"].as_str().unwrap_or_default();
                (place, why.to_owned())
            });
            Some((row.parse().expect("a number"), choice))
        });
        lines.collect()
    }
}

fn member(name: &str, peer_listener: SocketAddr) -> Member {
    Member {
        name: name.to_owned(),
        url: format!("http://{peer_listener}").parse().expect("a URL"),
        weight: 100,
        front_end: false,
    }
}

fn live(policy: PolicyKind, steps: &[Step]) -> Vec<Choice> {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = Arc::new(ManualClock::new(Timestamp(784_111_777)));
    let origin = origin();
    let nodes = NAMES.map(|name| LiveNode::start(name, policy, origin, folder.path(), &clock));
    let members = NAMES.iter().zip(&nodes);
    let members = members.map(|(name, node)| member(name, node.listener(1)));
    let members: Vec<Member> = members.collect();
    for node in &nodes {
        node.set_members(&members);
    }
    let hops = nodes.iter().map(|node| node.listener(1));
    let hops = hops.zip((0..).map(Place)).collect();
    for (row, step) in steps.iter().enumerate() {
        clock.advance_ms(step.after_ms);
        ask(nodes[step.node].listener(0), step.number, row);
    }
    let logs = nodes.map(|node| node.choices(&hops));
    let rows = steps.iter().enumerate();
    let choices = rows.map(|(row, step)| logs[step.node].get(&row).cloned());
    choices.map(|choice| choice.expect("a line")).collect()
}

fn ask(node: SocketAddr, number: u32, row: usize) {
    let mut stream = TcpStream::connect(node).expect("a node");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let request = format!(
        "GET /{number} HTTP/1.1\r\nHost: a.example\r\nUser-Agent: row/{row}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    assert!(response.ends_with("\r\n\r\nx"), "{response}");
}

/// Answers everything with a byte that may be stored for an hour, until the process ends.
fn origin() -> SocketAddr {
    const ANSWER: &[u8] =
        b"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: 1\r\n\r\nx";
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut out = stream.try_clone().expect("a socket");
                let lines = BufReader::new(stream).lines().map_while(Result::ok);
                for line in lines {
                    if line.is_empty() && out.write_all(ANSWER).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// The target that is requested very often.
const HOT: u32 = 7;

fn check(policy: PolicyKind, must_occur: &[&str], is_hot_copied: bool) {
    let began = Instant::now();
    let steps = steps();
    let simulated = simulated(policy, &steps);
    let live = live(policy, &steps);
    for (row, (live, simulated)) in live.iter().zip(&simulated).enumerate() {
        let step = &steps[row];
        assert_eq!(
            live, simulated,
            "{policy}, row {row}: /{} at {} (live, simulated)",
            step.number, NAMES[step.node]
        );
    }
    for word in must_occur {
        let mut all = simulated.iter().flatten();
        assert!(all.any(|(_, why)| why == word), "{policy}: no `{word}`");
    }
    let hits = steps.iter().zip(&simulated).filter(|(_, it)| it.is_none());
    let of_hot = hits.filter(|(step, _)| step.number == HOT);
    let mut at: Vec<usize> = of_hot.map(|(step, _)| step.node).collect();
    at.sort_unstable();
    at.dedup();
    assert_eq!(
        at.len() == NAMES.len(),
        is_hot_copied,
        "{policy}: hits at {at:?}"
    );
    assert!(began.elapsed() < PATIENCE * 10);
}

#[test]
fn nodes_choose_as_the_simulator_does_with_hot_targets() {
    check(PolicyKind::ReplicatedHash, &["first-in-order"], true);
}

#[test]
fn nodes_choose_as_the_simulator_does_by_target_alone() {
    check(PolicyKind::Hash, &["first-in-order"], false);
    check(PolicyKind::BoundedHash, &["first-in-order"], false);
}

#[test]
fn nodes_choose_as_the_simulator_does_with_mappings_of_their_own() {
    check(PolicyKind::Lard, &["not-mapped", "mapped"], false);
    check(PolicyKind::LardR, &["not-mapped", "mapped"], false);
    check(PolicyKind::ExtendedLard, &["not-mapped", "disk-idle"], true);
}
