//! A front end sends the requests of kept connections to the next hops of a route, and each choice
//! has the place and the reason of the same policy in the view of a simulated front end: with loads
//! of none to more than 140 outstanding requests a next hop, and with the next hop of a
//! connection's last request as the one that handles it.

use super::{Choice, Hold, NAMES, PATIENCE};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use weir_policy::Tick;
use weir_policy::route::policy::{PolicyKind, PolicyRules, RoutedRequest};
use weir_policy::route::{AGREED, ClusterView, Load, Node, NodeKey, Place, TargetKey};
use weir_proxy::Proxy;
use weir_proxy::clock::ManualClock;
use weir_proxy::config::{AdminAddress, Config, Listener, LogFormat, LogTarget, Mode, Route, Span};
use weir_semantics::Timestamp;

/// Requests, and responses that are let go.
const STEPS: usize = 1100;

/// Outstanding requests at the most, of all next hops: more than 140 of one.
const HELD_MAX: usize = 440;

const TARGETS: u64 = 40;

/// How far apart two steps are: sets of nodes lose nodes in the time of all.
const STEP_MS: u64 = 100;

/// What happens on a client's connection.
#[derive(Clone, Copy)]
struct Step {
    connection: usize,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    /// A request for a target is answered.
    Answered(u64),
    /// A request for a target is outstanding until it is let go.
    Held(u64),
    /// The response that the connection waits for comes: that of the step in this row.
    LetGo(usize),
}

/// Numbers that follow from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }
}

/// More and more requests are outstanding, and then fewer and fewer. Some targets are requested
/// much more often than others, and each connection for several.
fn steps() -> Vec<Step> {
    let mut numbers = Numbers(1);
    let (mut steps, mut connections) = (Vec::new(), 0);
    let (mut idle, mut held) = (Vec::new(), Vec::new());
    for row in 0..STEPS {
        let middle = STEPS / 2;
        let distance = row.abs_diff(middle);
        let wanted = (middle - distance) * HELD_MAX / middle;
        if held.len() > wanted {
            let (of, connection) = held.swap_remove(numbers.below(held.len()));
            let what = What::LetGo(of);
            steps.push(Step { connection, what });
            idle.push(connection);
            continue;
        }
        let connection = match idle.is_empty() || numbers.below(3) == 0 {
            true => {
                connections += 1;
                connections - 1
            }
            false => idle.swap_remove(numbers.below(idle.len())),
        };
        let often = numbers.below(40).min(numbers.below(40));
        let target = u64::try_from(often).expect("small") % TARGETS;
        // one of eight is answered at once: the connection has another request soon
        let what = match held.len() == wanted || numbers.below(8) == 0 {
            true => {
                idle.push(connection);
                What::Answered(target)
            }
            false => {
                held.push((row, connection));
                What::Held(target)
            }
        };
        steps.push(Step { connection, what });
    }
    for (row, connection) in held {
        let what = What::LetGo(row);
        steps.push(Step { connection, what });
    }
    steps
}

/// The path of a target.
fn path_of(target: u64) -> String {
    format!("/{target}")
}

/// What a front end chooses that knows the loads of its next hops, and the most that one had.
fn simulated(policy: PolicyKind, hops: &[SocketAddr], steps: &[Step]) -> (Vec<Choice>, u32) {
    let nodes = hops
        .iter()
        .map(|hop| Node::new(NodeKey::of(&AGREED, &hop.to_string())));
    let mut nodes: Vec<Node> = nodes.collect();
    let mut chooses = policy.build(&PolicyRules::PRESET_1999, 1);
    let mut last: BTreeMap<usize, Place> = BTreeMap::new();
    let mut held: BTreeMap<usize, Place> = BTreeMap::new();
    let mut most = 0;
    let mut choices = Vec::new();
    for (row, step) in steps.iter().enumerate() {
        let target = match step.what {
            What::Answered(target) | What::Held(target) => target,
            What::LetGo(row) => {
                held.remove(&row).expect("it is held");
                choices.push(None);
                continue;
            }
        };
        for (place, node) in (0..).map(Place).zip(&mut nodes) {
            let waiting = held.values().filter(|held| **held == place).count();
            let waiting = u32::try_from(waiting).expect("few");
            most = most.max(waiting);
            node.load = Load::requests(waiting);
            // each of them waits for its head
            node.miss_pressure = waiting;
        }
        let key = TargetKey::of(&AGREED, "a.example", &path_of(target));
        let handling = last.get(&step.connection).copied();
        let request = RoutedRequest {
            handling: handling.filter(|_| policy == PolicyKind::ExtendedLard),
            ..RoutedRequest::new(key, 0)
        };
        let at = Tick(STEP_MS * (u64::try_from(row).expect("few") + 1));
        let choice = chooses.choose(at, &ClusterView::new(&nodes), &request);
        let choice = choice.expect("all take requests");
        last.insert(step.connection, choice.place);
        if let What::Held(_) = step.what {
            held.insert(row, choice.place);
        }
        choices.push(Some((Some(choice.place), choice.why.as_str().to_owned())));
    }
    (choices, most)
}

/// A next hop that says when a request to be held has come, and answers it once its row is
/// released; all others at once.
fn next_hop(arrives: &Sender<()>, hold: &Hold) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("bound");
    let (arrives, hold) = (arrives.clone(), hold.clone());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (arrives, hold) = (arrives.clone(), hold.clone());
            thread::spawn(move || answer(stream, &arrives, &hold));
        }
    });
    address
}

fn answer(stream: TcpStream, arrives: &Sender<()>, hold: &Hold) {
    let mut out = stream.try_clone().expect("a socket");
    let mut held: Option<u32> = None;
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if let Some(row) = line.strip_prefix("X-Held: ") {
            held = row.parse().ok();
        }
        if line.is_empty() {
            if let Some(row) = held.take() {
                _ = arrives.send(());
                hold.wait(row);
            }
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
            if out.write_all(answer).is_err() {
                return;
            }
        }
    }
}

/// A gateway with one route.
fn front_end(
    policy: PolicyKind,
    hops: &[SocketAddr],
    log: &Path,
    clock: &Arc<ManualClock>,
) -> Proxy {
    let url = |hop: &SocketAddr| format!("http://{hop}").parse().expect("a URL");
    let mut config = Config {
        workers: 1,
        listeners: vec![Listener {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            mode: Mode::Gateway.into(),
            name: None,
            tls: None,
            http2: None,
            proxy_protocol: Vec::new(),
        }],
        routes: vec![Route {
            next_hops: hops.iter().map(url).collect(),
            policy,
            ..Route::default()
        }],
        ..Config::default()
    };
    config.admin.address = AdminAddress::Off;
    config.log.access = LogTarget::File(log.to_owned());
    config.log.format = LogFormat::Json;
    config.disk.enabled = false;
    // each request is sent to a next hop
    config.cache.enabled = false;
    // longer than anything is held on a busy machine
    config.limits.next_hop_silence = Span::from_secs(300);
    config.limits.client_idle = Span::from_secs(300);
    // all clients have one address: its share is more than is held
    config.limits.connections_per_next_hop_max = u32::try_from(2 * HELD_MAX).expect("few");
    config.validate().expect("a valid configuration");
    let reloaded = Arc::new(Mutex::new(config.clone()));
    super::start(config, &reloaded, clock)
}

/// A client's connection.
struct Client(TcpStream);

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("a front end");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Self(stream)
    }

    fn send(&mut self, row: usize, target: u64, field: &str) {
        let head = format!("GET {} HTTP/1.1\r\nHost: a.example", path_of(target));
        let request = format!("{head}\r\nUser-Agent: row/{row}\r\n{field}\r\n");
        self.0.write_all(request.as_bytes()).expect("sent");
    }

    /// Reads a response to its end.
    fn receive(&mut self) {
        let mut response = Vec::new();
        while !response.ends_with(b"\r\n\r\nx") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).expect("a response");
            response.push(byte[0]);
        }
        assert!(response.starts_with(b"HTTP/1.1 200 "), "{response:?}");
    }
}

fn live(
    policy: PolicyKind,
    hops: &[SocketAddr],
    (arrived, hold): (&Receiver<()>, &Hold),
    steps: &[Step],
) -> Vec<Choice> {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("front-end.log");
    let clock = Arc::new(ManualClock::new(Timestamp(784_111_777)));
    let proxy = front_end(policy, hops, &log, &clock);
    let address = proxy.control().listeners()[0].address;
    let mut clients: BTreeMap<usize, Client> = BTreeMap::new();
    for (row, step) in steps.iter().enumerate() {
        clock.advance_ms(STEP_MS);
        let client = clients
            .entry(step.connection)
            .or_insert_with(|| Client::connect(address));
        match step.what {
            What::Answered(target) => {
                client.send(row, target, "");
                client.receive();
            }
            What::Held(target) => {
                client.send(row, target, &format!("X-Held: {row}\r\n"));
                arrived.recv_timeout(PATIENCE).expect("at a next hop");
            }
            What::LetGo(row) => {
                hold.release(u32::try_from(row).expect("few"));
                client.receive();
            }
        }
    }
    drop(clients);
    assert!(proxy.stop(), "a request was cut off");
    let chosen = choices_in(&log, hops);
    let rows = 0..steps.len();
    rows.map(|row| chosen.get(&row).cloned()).collect()
}

/// The next hops of requests in a log by row, and why they were chosen.
fn choices_in(log: &Path, hops: &[SocketAddr]) -> BTreeMap<usize, (Option<Place>, String)> {
    let text = std::fs::read_to_string(log).expect("a log");
    let lines = text.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let row = line["user_agent"].as_str()?.strip_prefix("row/")?;
        let hop: SocketAddr = line["next_hop"].as_str()?.parse().expect("an address");
        let place = (0..).zip(hops).find(|(_, it)| **it == hop);
        let why = line["next_hop_choice"].as_str().unwrap_or_default();
        let choice = (place.map(|(place, _)| Place(place)), why.to_owned());
        Some((row.parse().expect("a number"), choice))
    });
    lines.collect()
}

fn check(policy: PolicyKind, must_occur: &[&str]) {
    let (arrives, arrived) = channel();
    let hold = Hold::default();
    let hops = NAMES.map(|_| next_hop(&arrives, &hold));
    let steps = steps();
    let (simulated, most) = simulated(policy, &hops, &steps);
    assert!(most >= 140, "{policy}: {most} requests at one next hop");
    let live = live(policy, &hops, (&arrived, &hold), &steps);
    for (row, (live, simulated)) in live.iter().zip(&simulated).enumerate() {
        assert_eq!(live, simulated, "{policy}, row {row} (live, simulated)");
    }
    let words: BTreeSet<&str> = simulated.iter().flatten().map(|(_, why)| &**why).collect();
    for word in must_occur {
        assert!(words.contains(word), "{policy}: no `{word}`, but {words:?}");
    }
}

#[test]
fn front_end_chooses_for_requests_of_connections_as_a_simulated_one_does() {
    check(PolicyKind::Lard, &["not-mapped", "mapped", "moved"]);
    check(PolicyKind::LardR, &["not-mapped", "mapped", "replicated"]);
    let of_costs = ["not-mapped", "mapped", "disk-idle", "disk-busy", "lateral"];
    check(PolicyKind::ExtendedLard, &of_costs);
}
