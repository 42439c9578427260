//! A front end that hands its clients' connections over to nodes: real machines but for the
//! hardware, in network namespaces on one bridge.

mod multiple;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use xtask::namespace::ethernet::Ethernet;
use xtask::namespace::{Namespace, is_permitted};

const WAIT_MAX: Duration = Duration::from_secs(60);

const SERVICE: &str = "10.77.0.100:8080";
const ADMIN: &str = "127.0.0.1:9000";

/// Bytes of the files of the origin, which are requested in turn.
const FILES: [usize; 4] = [100, 100_000, 5_000, 300_000];

/// The members, and the numbers of their machines.
const MEMBERS: [(&str, u8); 3] = [("f", 2), ("a", 3), ("b", 4)];
const CLIENT: u8 = 1;
const ORIGIN: u8 = 5;

/// Ends with it.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Machines {
    directory: TempDir,
    _ethernet: Ethernet,
    /// By number, from 1.
    all: Vec<Namespace>,
}

impl Machines {
    fn make() -> Self {
        let ethernet = Ethernet::make().expect("a network");
        let join = |number| ethernet.join(number).expect("a machine");
        let all: Vec<Namespace> = (1..=ORIGIN).map(join).collect();
        for (name, number) in MEMBERS {
            let device = if name == "f" { "e0" } else { "lo" };
            let words = format!("addr add 10.77.0.100/32 dev {device}");
            let machine = &all[usize::from(number) - 1];
            machine.ip(&words).expect("an address");
        }
        let directory = tempfile::tempdir().expect("a directory");
        let secret = directory.path().join("secret");
        std::fs::write(&secret, "an-agreed-secret-of-nodes").expect("a file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o400);
        std::fs::set_permissions(&secret, mode).expect("a file");
        let files = directory.path().join("files");
        std::fs::create_dir(&files).expect("a directory");
        for bytes in FILES {
            std::fs::write(files.join(bytes.to_string()), content(bytes)).expect("a file");
        }
        Self {
            directory,
            _ethernet: ethernet,
            all,
        }
    }

    fn machine(&self, number: u8) -> &Namespace {
        &self.all[usize::from(number) - 1]
    }

    fn run(&self, number: u8, words: &[&str]) -> Command {
        let inside = self.machine(number).command();
        let mut command = Command::new(&inside[0]);
        command.args(&inside[1..]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn origin(&self) -> Process {
        let files = self.directory.path().join("files");
        let files = files.to_str().expect("text");
        let mut words = vec!["python3", "-m", "http.server", "8000"];
        words.extend(["--bind", "10.77.0.5", "--directory", files]);
        let mut command = self.run(ORIGIN, &words);
        let process = Process(command.stderr(Stdio::null()).spawn().expect("python3"));
        self.wait_for(ORIGIN, "10.77.0.5:8000");
        process
    }

    /// The command that is the node `name`, with `more` in its `[cluster]`.
    fn node(&self, name: &str, number: u8, more: &str) -> Command {
        let file = self.directory.path().join(format!("{name}.toml"));
        std::fs::write(&file, config(self.directory.path(), name, number, more)).expect("a file");
        let file = file.to_str().expect("text");
        let weir = env!("CARGO_BIN_EXE_weir");
        self.run(number, &[weir, "serve", "--config", file, "--disk", "off"])
    }

    /// Changes the configuration that was written for the node `name`.
    fn replace(&self, name: &str, part: &str, by: &str) {
        let file = self.directory.path().join(format!("{name}.toml"));
        let text = std::fs::read_to_string(&file).expect("a file");
        assert!(text.contains(part), "{text}");
        std::fs::write(&file, text.replace(part, by)).expect("a file");
    }

    fn start(&self, name: &str, number: u8, more: &str) -> Process {
        self.begin(&mut self.node(name, number, more), number)
    }

    fn begin(&self, command: &mut Command, number: u8) -> Process {
        let process = Process(command.stderr(Stdio::null()).spawn().expect("weir"));
        self.wait_for(number, ADMIN);
        // it answers when all else has begun
        let _ = self.count(number, "weir_hand_offs_total");
        process
    }

    fn start_all(&self) -> Vec<Process> {
        let more = |name| if name == "f" { "device = \"e0\"" } else { "" };
        let start = |(name, number)| self.start(name, number, more(name));
        MEMBERS.into_iter().rev().map(start).collect()
    }

    fn wait_for(&self, number: u8, address: &str) {
        let address: SocketAddr = address.parse().expect("an address");
        let is_open = || TcpStream::connect(address).is_ok();
        self.wait_until(address, || {
            self.machine(number).inside(is_open).expect("it")
        });
    }

    fn wait_until(&self, what: impl std::fmt::Debug, mut is_so: impl FnMut() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < WAIT_MAX, "waited for {what:?}");
            std::thread::yield_now();
        }
    }

    /// A counter of a member, the sum over its labels.
    fn count(&self, number: u8, metric: &str) -> u64 {
        let ask = || {
            let mut stream = TcpStream::connect(ADMIN).expect("the admin interface");
            let request = format!("GET /metrics HTTP/1.0\r\nHost: {ADMIN}\r\n\r\n");
            stream.write_all(request.as_bytes()).expect("open");
            let mut text = String::new();
            stream.read_to_string(&mut text).expect("an answer");
            text
        };
        let text = self.machine(number).inside(ask).expect("its network");
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let is_of = |name: &str| {
            let rest = name.strip_prefix(metric);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('{'))
        };
        let values = lines.filter(|(name, _)| is_of(name));
        values
            .map(|(_, value)| value.parse::<u64>().expect("a number"))
            .sum()
    }

    /// Requests all files on one connection, pipelined, and compares them.
    fn get_all(&self, salt: usize) {
        let connect = || TcpStream::connect(SERVICE).expect("a connection");
        let mut stream = self.machine(CLIENT).inside(connect).expect("its network");
        stream.set_read_timeout(Some(WAIT_MAX)).expect("a socket");
        let mut order = FILES;
        order.rotate_left(salt % FILES.len());
        let requests: String = order
            .iter()
            .map(|bytes| format!("GET /{bytes}?{salt} HTTP/1.1\r\nHost: a.example\r\n\r\n"))
            .collect();
        stream.write_all(requests.as_bytes()).expect("open");
        let mut reader = BufReader::new(stream);
        for bytes in order {
            read_response(&mut reader, bytes);
        }
    }

    /// A connection of the client that is at a node.
    fn handed_over(&self) -> BufReader<TcpStream> {
        let handed = || self.count(2, "weir_hand_offs_total");
        let stayed = || self.count(2, "weir_hand_offs_refused_total");
        let mut stream = None;
        self.wait_until("a connection at a node", || {
            let before = (handed(), stayed());
            let connect = || TcpStream::connect(SERVICE).expect("a connection");
            let opened = self.machine(CLIENT).inside(connect).expect("its network");
            opened.set_read_timeout(Some(WAIT_MAX)).expect("a socket");
            let mut reader = BufReader::new(opened);
            get(&mut reader, FILES[0]);
            self.wait_until("its count", || (handed(), stayed()) != before);
            stream = Some(reader).filter(|_| handed() > before.0);
            stream.is_some()
        });
        stream.expect("one of them")
    }
}

/// Requests a file.
fn get(reader: &mut BufReader<TcpStream>, bytes: usize) {
    let request = format!("GET /{bytes} HTTP/1.1\r\nHost: a.example\r\n\r\n");
    reader
        .get_mut()
        .write_all(request.as_bytes())
        .expect("open");
    read_response(reader, bytes);
}

/// Reads the response that is this file.
fn read_response(reader: &mut BufReader<TcpStream>, bytes: usize) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).expect("no reset") > 0, "{head}");
    }
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let mut received = vec![0; bytes];
    reader.read_exact(&mut received).expect("no reset");
    assert!(received == content(bytes), "file of {bytes} bytes");
}

fn content(bytes: usize) -> Vec<u8> {
    let byte = |place: usize| u8::try_from((place * 31 + place / 251) % 256).expect("a byte");
    (0..bytes).map(byte).collect()
}

fn config(directory: &Path, name: &str, number: u8, more: &str) -> String {
    let directory = directory.display();
    let members: String = MEMBERS
        .iter()
        .map(|(name, number)| {
            let front_end = *name == "f";
            format!(
                "[[cluster.member]]\nname = \"{name}\"\nurl = \"http://10.77.0.{number}:4000\"\n\
                 front_end = {front_end}\n"
            )
        })
        .collect();
    format!(
        "[cluster]\nnode = \"{name}\"\nsecret_file = \"{directory}/secret\"\n\
         mechanism = \"hand-off\"\njoin_time = \"0s\"\n{more}\n{members}\
         [[listener]]\naddress = \"{SERVICE}\"\nmode = \"gateway\"\n\
         [[listener]]\naddress = \"10.77.0.{number}:4000\"\nmode = \"peer\"\n\
         [[route]]\nnext_hops = [\"http://10.77.0.5:8000\"]\n\
         [admin]\naddress = \"{ADMIN}\"\n\
         [limits]\nclient_idle = \"10min\"\n"
    )
}

#[test]
fn front_end_hands_connections_over_and_responses_bypass_it() {
    const CONNECTIONS: u64 = 20;
    if !is_permitted() {
        return;
    }
    let machines = Machines::make();
    let _origin = machines.origin();
    let mut members = machines.start_all();
    for salt in 0..CONNECTIONS {
        machines.get_all(usize::try_from(salt).expect("few"));
    }
    // one that was handed over is no longer a connection of the front end
    let [front_end, a, b] = MEMBERS.map(|(_, number)| number);
    let (handed, refused) = ("weir_hand_offs_total", "weir_hand_offs_refused_total");
    // the last one is counted when its node has answered, and that may be after the client's end
    machines.wait_until("all connections", || {
        let refused = machines.count(front_end, refused);
        machines.count(front_end, handed) + refused == CONNECTIONS
    });
    let adopted = |node| machines.count(node, "weir_connections_adopted_total");
    assert_eq!(adopted(a) + adopted(b), machines.count(front_end, handed));
    assert!(machines.count(front_end, handed) > 0);
    // a packet may have been under way when one was to be handed over
    let stayed = machines.count(front_end, refused);
    let sum: usize = FILES.iter().sum();
    // what it sends itself is for nodes alone: less than one client received
    let sum = u64::try_from(sum).expect("few");
    let sent = machines.count(front_end, "weir_client_sent_body_bytes_total");
    assert!(sent < (stayed + 1) * sum, "{sent} bytes");
    // a node that fails leaves the service to the others
    drop(members.remove(0));
    for salt in 0..8 {
        machines.get_all(salt + 1000);
    }
}

#[test]
fn connection_that_no_node_takes_is_relayed_and_its_node_chosen_once() {
    const CONNECTIONS: usize = 3;
    if !is_permitted() {
        return;
    }
    let machines = Machines::make();
    let _origin = machines.origin();
    // members that know nothing of hand-off
    let mut members = Vec::new();
    for (name, number) in [("a", 3), ("b", 4)] {
        let mut command = machines.node(name, number, "");
        machines.replace(name, "mechanism = \"hand-off\"", "");
        members.push(machines.begin(&mut command, number));
    }
    members.push(machines.start("f", 2, "device = \"e0\""));
    for salt in 0..CONNECTIONS {
        machines.get_all(salt);
    }
    let connections = u64::try_from(CONNECTIONS).expect("few");
    let requests = connections * u64::try_from(FILES.len()).expect("few");
    assert_eq!(machines.count(2, "weir_hand_offs_total"), 0);
    let all = machines.count(2, "weir_hand_offs_refused_total");
    assert_eq!(all, connections);
    // `state` if a packet was under way
    let refused = |reason: &str| {
        let metric = format!("weir_hand_offs_refused_total{{reason=\"{reason}\"}}");
        machines.count(2, &metric)
    };
    assert_eq!(refused("node") + refused("state"), connections);
    assert_eq!(machines.count(2, "weir_node_choices_total"), requests);
}

#[test]
fn silent_client_whose_connection_a_node_has_hears_when_the_front_end_is_started_again() {
    if !is_permitted() {
        return;
    }
    let machines = Machines::make();
    let _origin = machines.origin();
    let mut members = machines.start_all();
    let mut connection = machines.handed_over();
    // its rules stay in the kernel when it is killed
    drop(members.pop());
    get(&mut connection, FILES[2]);
    members.push(machines.start("f", 2, "device = \"e0\""));
    match connection.read(&mut [0]) {
        Ok(0) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        Ok(_) => panic!("a response without a request"),
    }
    let mut connection = machines.handed_over();
    get(&mut connection, FILES[1]);
}

#[test]
fn node_with_another_mtu_is_named_when_the_front_end_starts() {
    if !is_permitted() {
        return;
    }
    let machines = Machines::make();
    let _nodes = [("a", 3), ("b", 4)].map(|(name, number)| machines.start(name, number, ""));
    machines
        .machine(4)
        .ip("link set e0 mtu 1400")
        .expect("an MTU");
    let mut command = machines.node("f", 2, "device = \"e0\"");
    let mut front_end = Process(command.stderr(Stdio::piped()).spawn().expect("weir"));
    let lines = BufReader::new(front_end.0.stderr.take().expect("a pipe")).lines();
    let (tell, told) = channel();
    let reader = std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let _ = tell.send(line);
        }
    });
    let is_of_mtu = |line: &String| line.contains("(MTU)");
    let found = std::iter::from_fn(|| told.recv_timeout(WAIT_MAX).ok()).find(is_of_mtu);
    let line = found.expect("a line about it");
    assert!(
        line.contains("1500 bytes (MTU), and those to node b 1400"),
        "{line}"
    );
    drop(front_end);
    reader.join().expect("no panic");
}

#[test]
fn hand_off_is_refused_at_start_with_what_is_missing() {
    if !is_permitted() {
        return;
    }
    let machines = Machines::make();
    let fails = |name: &str, number: u8, more: &str, expected: &str| {
        let mut command = machines.node(name, number, more);
        let output = command.stderr(Stdio::piped()).output().expect("weir");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{text}");
        assert!(text.contains(expected), "{text}");
    };
    let no_device = "device = \"e7\"";
    fails("f", 2, no_device, "packets cannot be led to nodes");
    let node = machines.machine(3);
    node.set("net/ipv4/conf/all/arp_ignore", "0")
        .expect("a setting");
    fails("a", 3, "", "net.ipv4.conf.all.arp_ignore = 1");
}
