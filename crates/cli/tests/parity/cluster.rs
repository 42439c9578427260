//! Nodes of a cluster in this process, on a manual clock, choose as the simulator does: the same
//! requests are sent to the same nodes for the same reasons.
//!
//! Requests come one after the other, each to one of the nodes. The access log of that node says
//! why it asked whom; the simulator steps the same choice over caches of its own. Hot targets, and
//! times in which they are forgotten, are among the requests, requests that the origin does not
//! answer, or answers late, and a node that does not answer for a while.

mod routed;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use weir_disk::files::SystemFiles;
use weir_policy::admission::Rule;
use weir_policy::eviction::EvictionKind;
use weir_policy::route::policy::{CostRules, LoadLimits, PolicyKind, PolicyRules};
use weir_policy::route::{Balancing, Node, NodeKey, Place, TargetKey, Weight};
use weir_policy::{KeyHasher, Secret, Tick};
use weir_proxy::clock::{Clock, ManualClock};
use weir_proxy::config::{
    AdminAddress, ByteSize, Config, Listener, ListenerKind, LogFormat, LogTarget, Member, Mode,
    Route, Span,
};
use weir_proxy::{Hooks, Options, Proxy};
use weir_semantics::Timestamp;
use weir_sim::cluster::peers::{ClusterRequest, ClusterSetting, ClusterSimulation, ServedFrom};
use weir_sim::hits::Setting;
use weir_sim::keys::NumberedRequest;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What happens: after so many milliseconds a client asks a node for a target.
#[derive(Clone, Copy)]
struct Step {
    after_ms: u64,
    node: usize,
    number: u32,
    what: What,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    /// It is answered.
    Answered,
    /// The origin does not answer it while others are asked.
    Held,
    /// The origin answers it after so many milliseconds, and nothing else happens meanwhile.
    Late(u64),
    /// It is answered; before that, the node at this place stops answering the others.
    AfterDeathOf(usize),
    /// The same; it answers again.
    AfterReturnOf(usize),
}

impl What {
    /// How long the origin takes to answer it, milliseconds.
    const fn after_ms(self) -> u64 {
        match self {
            Self::Late(ms) => ms,
            _ => 0,
        }
    }
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
            what: What::Answered,
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

/// Targets at all nodes in turn, then many that the origin does not answer, all of one node's
/// clients, then others at all nodes, some of them again and again, and those from the beginning.
fn steps_with_load() -> Vec<Step> {
    let step = |number: u32, node: u32, what: What| Step {
        after_ms: 2,
        node: usize::try_from(node % 3).expect("small"),
        number,
        what,
    };
    let before = (0..30).map(|number| step(number, number, What::Answered));
    let held = (HELD_FROM..HELD_FROM + HELD).map(|number| step(number, 0, What::Held));
    let behind = (100..220).chain(100..140).chain(100..140);
    let behind = behind.map(|number| step(number, number, What::Answered));
    let again = (0..90).map(|request| step(request % 30, request / 30 + request, What::Answered));
    before.chain(held).chain(behind).chain(again).collect()
}

/// Targets at all nodes in turn, some of which the origin answers late, and some not at all.
fn steps_with_late_answers() -> Vec<Step> {
    let steps = (0..300_u32).map(|request| {
        let (number, what) = match request % 10 {
            3 => (
                HELD_FROM + request,
                What::Late(u64::from(request % 7 + 1) * 20),
            ),
            7 if request < 150 => (HELD_FROM + request, What::Held),
            _ => (request, What::Answered),
        };
        Step {
            after_ms: u64::from(request % 4) * 30,
            node: usize::try_from(request % 3).expect("small"),
            number,
            what,
        }
    });
    steps.collect()
}

/// Targets at all nodes in turn; the node at place 2 fails and comes back.
fn steps_with_death() -> Vec<Step> {
    let steps = (0..300_u32).map(|number| Step {
        after_ms: 200,
        node: usize::try_from(number % 2).expect("small"),
        number: number % 130,
        what: match number {
            60 => What::AfterDeathOf(2),
            180 => What::AfterReturnOf(2),
            _ => What::Answered,
        },
    });
    steps.collect()
}

/// Which node was asked, and why; nothing of a hit.
type Choice = Option<(Option<Place>, String)>;

fn simulated(policy: PolicyKind, steps: &[Step]) -> Vec<Choice> {
    let nodes = NAMES.iter().zip(WEIGHTS).map(|(name, weight)| Node {
        weight: Weight::new(weight).expect("a weight"),
        ..Node::new(NodeKey::of(&Secret([0; 16]), name))
    });
    let nodes: Vec<Node> = nodes.collect();
    let setting = ClusterSetting {
        cache: Setting {
            capacity_bytes: 1 << 20,
            eviction: EvictionKind::S3Fifo,
            admission: Rule::Always,
        },
        balancing: Balancing {
            policy,
            rules: PolicyRules {
                limits: LIMITS,
                costs: COSTS,
                ..PolicyRules::default()
            },
            ..Balancing::default()
        },
        seed: nodes.iter().fold(0, |all, node| all ^ node.key.0),
    };
    let mut cluster = ClusterSimulation::new(&nodes, &setting);
    let mut at_ms = 0;
    let choices = steps.iter().map(|step| {
        at_ms += step.after_ms;
        match step.what {
            What::AfterDeathOf(node) => cluster.set_answers(place(node), false),
            What::AfterReturnOf(node) => cluster.set_answers(place(node), true),
            What::Answered | What::Held | What::Late(_) => {}
        }
        let request = ClusterRequest {
            at: Tick(at_ms),
            node: place(step.node),
            target: target_of(step.number),
            access: NumberedRequest {
                number: step.number,
                size_bytes: 1,
            },
        };
        let source = if step.what == What::Held {
            cluster.hold(request)
        } else {
            let after_ms = step.what.after_ms();
            at_ms += after_ms;
            let answer = cluster.ask_slowly(request, after_ms);
            if answer.served_from == ServedFrom::Here {
                return None;
            }
            answer.source.expect("a choice")
        };
        let why = source.why.map_or("", weir_policy::route::Why::as_str);
        Some((source.node.map(|node| node.place), why.to_owned()))
    });
    choices.collect()
}

fn place(node: usize) -> Place {
    Place(u16::try_from(node).expect("small"))
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
                    name: None,
                    tls: None,
                    http2: None,
                    proxy_protocol: Vec::new(),
                },
                Listener {
                    address: any,
                    mode: ListenerKind::Peer,
                    name: None,
                    tls: None,
                    http2: None,
                    proxy_protocol: Vec::new(),
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
        config.cluster.digest_memory = ByteSize::from_mib(0);
        // longer than anything is held on a busy machine
        config.cluster.peer_timeout = Span::from_secs(300);
        // nodes of the simulator are in from the start
        config.cluster.join_time = Span::from_secs(0);
        config.cluster.policy = policy;
        config.cluster.load_low = Some(LIMITS.low);
        config.cluster.load_high = Some(LIMITS.high);
        config.cluster.load_idle = Some(COSTS.idle);
        config.cluster.load_overload = Some(COSTS.overload);
        config.cluster.miss_cost = Some(COSTS.miss_cost);
        config.cluster.disk_busy = Some(COSTS.disk_busy);
        // the ports of the others are known once they listen
        config.cluster.members = vec![member(name, SocketAddr::from((Ipv4Addr::LOCALHOST, 9)), 1)];
        config.validate().expect("a valid configuration");
        let config = Arc::new(Mutex::new(config));
        let first = config.lock().expect("no panic").clone();
        let proxy = start(first, &config, clock);
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

/// Starts a proxy with that clock, which a reload gives what `reloaded` is then.
fn start(first: Config, reloaded: &Arc<Mutex<Config>>, clock: &Arc<ManualClock>) -> Proxy {
    let reloaded = Arc::clone(reloaded);
    let options = Options {
        reload: Box::new(move || Ok(reloaded.lock().expect("no panic").clone())),
        has_config_file: true,
        describe: Box::new(|_| String::new()),
        clock: Clock::Manual(Arc::clone(clock)),
        files: Arc::new(SystemFiles),
        say: Arc::new(|_| {}),
        give_back_memory: || {},
        // the simulator knows no kernels, and what their sockets have
        moves_content: false,
        hooks: Hooks::default(),
        module_kinds: Vec::new(),
    };
    Proxy::start(first, options).expect("a proxy")
}

fn member(name: &str, peer_listener: SocketAddr, weight: u16) -> Member {
    Member {
        name: name.to_owned(),
        url: format!("http://{peer_listener}").parse().expect("a URL"),
        weight,
        front_end: false,
    }
}

fn live(policy: PolicyKind, steps: &[Step]) -> Vec<Choice> {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = Arc::new(ManualClock::new(Timestamp(784_111_777)));
    let (origin, arrived, hold) = origin();
    let nodes = NAMES.map(|name| LiveNode::start(name, policy, origin, folder.path(), &clock));
    let ways = nodes.each_ref().map(|node| Way::to(node.listener(1)));
    let members = NAMES.iter().zip(&ways).zip(WEIGHTS);
    let members = members.map(|((name, way), weight)| member(name, way.address, weight));
    let members: Vec<Member> = members.collect();
    for node in &nodes {
        node.set_members(&members);
    }
    let hops = ways.iter().map(|way| way.address);
    let hops = hops.zip((0..).map(Place)).collect();
    let mut held = Vec::new();
    for (row, step) in steps.iter().enumerate() {
        clock.advance_ms(step.after_ms);
        let node = nodes[step.node].listener(0);
        match step.what {
            What::Held => {
                held.push((step.number, send(node, step.number, row)));
                // then it is outstanding at all that it has passed
                arrived.recv_timeout(PATIENCE).expect("at the origin");
                continue;
            }
            What::Late(after_ms) => {
                let late = send(node, step.number, row);
                arrived.recv_timeout(PATIENCE).expect("at the origin");
                clock.advance_ms(after_ms);
                hold.release(step.number);
                receive(late);
                continue;
            }
            What::AfterDeathOf(node) => ways[node].set_open(false),
            What::AfterReturnOf(node) => ways[node].set_open(true),
            What::Answered => {}
        }
        receive(send(node, step.number, row));
    }
    for (number, stream) in held {
        hold.release(number);
        receive(stream);
    }
    let logs = nodes.map(|node| node.choices(&hops));
    let rows = steps.iter().enumerate();
    let choices = rows.map(|(row, step)| logs[step.node].get(&row).cloned());
    choices.map(|choice| choice.expect("a line")).collect()
}

fn send(node: SocketAddr, number: u32, row: usize) -> TcpStream {
    let mut stream = TcpStream::connect(node).expect("a node");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let request = format!(
        "GET /{number} HTTP/1.1\r\nHost: a.example\r\nUser-Agent: row/{row}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("sent");
    stream
}

fn receive(mut stream: TcpStream) {
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    assert!(response.ends_with("\r\n\r\nx"), "{response}");
}

/// What holds answers back at the origin: the targets whose answers are released.
#[derive(Clone, Default)]
struct Hold(Arc<(Mutex<BTreeSet<u32>>, Condvar)>);

impl Hold {
    fn release(&self, number: u32) {
        self.0.0.lock().expect("no panic").insert(number);
        self.0.1.notify_all();
    }

    fn wait(&self, number: u32) {
        let released = self.0.0.lock().expect("no panic");
        let waited = self.0.1.wait_while(released, |all| !all.contains(&number));
        drop(waited.expect("no panic"));
    }
}

/// Answers everything with a byte that may be stored for an hour, until the process ends; targets
/// from [`HELD_FROM`] on once they are released, and says when one has arrived.
fn origin() -> (SocketAddr, Receiver<()>, Hold) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("bound");
    let (arrives, arrived) = channel();
    let hold = Hold::default();
    let held = hold.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (arrives, held) = (arrives.clone(), held.clone());
            thread::spawn(move || answer(stream, &arrives, &held));
        }
    });
    (address, arrived, hold)
}

fn answer(stream: TcpStream, arrives: &Sender<()>, held: &Hold) {
    const ANSWER: &[u8] =
        b"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: 1\r\n\r\nx";
    let mut out = stream.try_clone().expect("a socket");
    let mut held_number = None;
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if let Some(target) = line.strip_prefix("GET /") {
            let number = target.split(' ').next().and_then(|it| it.parse().ok());
            held_number = number.filter(|it: &u32| *it >= HELD_FROM);
        }
        if line.is_empty() {
            if let Some(number) = held_number {
                _ = arrives.send(());
                held.wait(number);
            }
            if out.write_all(ANSWER).is_err() {
                return;
            }
        }
    }
}

/// The way of the others to a node. While it is shut, connections end as they begin.
struct Way {
    address: SocketAddr,
    state: Arc<Mutex<WayState>>,
}

struct WayState {
    is_open: bool,
    /// Both ends of each connection.
    streams: Vec<TcpStream>,
}

impl Way {
    fn to(node: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        let state = Arc::new(Mutex::new(WayState {
            is_open: true,
            streams: Vec::new(),
        }));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let mut state = shared.lock().expect("no panic");
                if !state.is_open {
                    continue;
                }
                let Ok(far) = TcpStream::connect(node) else {
                    continue;
                };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let mut from = from.try_clone().expect("a socket");
                    let mut to = to.try_clone().expect("a socket");
                    thread::spawn(move || {
                        _ = std::io::copy(&mut from, &mut to);
                        _ = to.shutdown(Shutdown::Write);
                    });
                }
                state.streams.extend([near, far]);
            }
        });
        Self { address, state }
    }

    fn set_open(&self, is_open: bool) {
        let mut state = self.state.lock().expect("no panic");
        state.is_open = is_open;
        if !is_open {
            for stream in state.streams.drain(..) {
                _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

/// The target that is requested very often.
const HOT: u32 = 7;

/// The first of the targets that the origin does not answer at once.
const HELD_FROM: u32 = 1000;

/// Requests that are held at a time.
const HELD: u32 = 60;

/// So few that as many requests overload.
const LIMITS: LoadLimits = LoadLimits { low: 3, high: 8 };

/// The same of `extended-lard`.
const COSTS: CostRules = CostRules {
    idle: 3,
    overload: 70,
    miss_cost: 5,
    disk_busy: 5,
};

/// The shares of the nodes.
const WEIGHTS: [u16; 3] = [2, 3, 1];

/// What both chose, which is the same.
fn agreed(policy: PolicyKind, steps: &[Step], must_occur: &[&str]) -> Vec<Choice> {
    let simulated = simulated(policy, steps);
    let live = live(policy, steps);
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
    simulated
}

fn check(policy: PolicyKind, must_occur: &[&str], is_hot_copied: bool) {
    let began = Instant::now();
    let steps = steps();
    let simulated = agreed(policy, &steps, must_occur);
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

#[test]
fn nodes_choose_as_the_simulator_does_while_requests_are_outstanding() {
    let steps = steps_with_load();
    for policy in [PolicyKind::BoundedHash, PolicyKind::ReplicatedHash] {
        agreed(policy, &steps, &["first-in-order", "next-in-order"]);
    }
    agreed(PolicyKind::Lard, &steps, &["not-mapped", "mapped", "moved"]);
    agreed(
        PolicyKind::LardR,
        &steps,
        &["not-mapped", "mapped", "replicated"],
    );
    agreed(
        PolicyKind::ExtendedLard,
        &steps,
        &["not-mapped", "disk-idle", "lateral"],
    );
}

#[test]
fn nodes_choose_as_the_simulator_does_whatever_the_target_is() {
    let steps = steps_with_late_answers();
    agreed(PolicyKind::InTurn, &steps, &["in-turn"]);
    agreed(PolicyKind::Least, &steps, &["least-load"]);
    agreed(PolicyKind::TwoChoices, &steps, &["better-of-two"]);
}

#[test]
fn nodes_choose_as_the_simulator_does_while_one_does_not_answer_and_once_it_is_back() {
    let steps = steps_with_death();
    for policy in [PolicyKind::Hash, PolicyKind::ReplicatedHash] {
        agreed(
            policy,
            &steps,
            &["first-in-order", "others-ejected", "probe"],
        );
    }
}
