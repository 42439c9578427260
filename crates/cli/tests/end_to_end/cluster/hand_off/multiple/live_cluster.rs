//! A cluster whose nodes move connections on, and its clients.

use super::super::{CLIENT, FILES, MEMBERS, Machines, ORIGIN, Process, SERVICE, WAIT_MAX, content};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;
use std::fs::DirEntry;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

/// Targets that each of the two nodes keeps.
pub(super) const TARGETS: usize = 4;

/// Mappings alone decide, and no load changes them.
const SETTINGS: &str = "hand_off = \"multiple\"\npolicy = \"lard\"\nload_low = 10000\n\
                        load_high = 20000\ndigest_memory = \"0\"\nstate_interval = \"0s\"\npeer_timeout = \"2s\"";

pub(super) const FRONT_END: u8 = MEMBERS[0].1;
pub(super) const A: u8 = MEMBERS[1].1;
pub(super) const B: u8 = MEMBERS[2].1;

/// An origin whose responses are fresh for an hour, and say for which target they are.
const ORIGIN_PROGRAM: &str = "
import http.server as h, sys
class Files(h.SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def end_headers(self):
        self.send_header('Cache-Control', 'max-age=3600')
        self.send_header('Target', self.path)
        super().end_headers()
make = lambda *args: Files(*args, directory=sys.argv[1])
h.ThreadingHTTPServer(('10.77.0.5', 8000), make).serve_forever()
";

/// A cluster whose nodes move connections on.
pub(super) struct Cluster {
    pub(super) machines: Machines,
    pub(super) members: HashMap<u8, Process>,
    _origin: Process,
    /// The targets that the nodes A and B keep.
    pub(super) kept: [Vec<Target>; 2],
}

/// A target, and the bytes of its content.
pub(super) type Target = (String, usize);

/// A client's connection.
pub(super) struct Client {
    reader: BufReader<TcpStream>,
}

/// A response.
#[derive(Debug)]
pub(super) struct Response {
    /// The node that has the connection keeps the target, and had it stored.
    pub(super) is_hit: bool,
}

impl Client {
    pub(super) fn send(&mut self, targets: &[&Target]) {
        let requests: String = targets
            .iter()
            .map(|(path, _)| format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n"))
            .collect();
        let stream = self.reader.get_mut();
        stream.write_all(requests.as_bytes()).expect("open");
    }

    /// Receives the response for a target, of which each byte is compared.
    pub(super) fn receive(&mut self, (path, bytes): &Target) -> std::io::Result<Response> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.reader.read_line(&mut head)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let values = |name: &str| -> Vec<&str> {
            let fields = head.lines().filter_map(|line| line.split_once(": "));
            let named = fields.filter(|(other, _)| other.eq_ignore_ascii_case(name));
            named.map(|(_, value)| value).collect()
        };
        assert_eq!(values("target"), [path], "{head}");
        let mut received = vec![0; *bytes];
        self.reader.read_exact(&mut received)?;
        assert!(received == content(*bytes), "{path}");
        let status = values("cache-status");
        // one that was forwarded has a line of the other node, too
        Ok(Response {
            is_hit: matches!(status[..], [one] if one.to_ascii_lowercase().starts_with("weir;hit")),
        })
    }

    pub(super) fn get(&mut self, target: &Target) -> Response {
        self.send(&[target]);
        self.receive(target).expect("no reset")
    }
}

impl Cluster {
    pub(super) fn start() -> Self {
        let machines = Machines::make();
        let files = machines.directory.path().join("files");
        let files = files.to_str().expect("text");
        let mut origin = machines.run(ORIGIN, &["python3", "-c", ORIGIN_PROGRAM, files]);
        let origin = origin.stderr(Stdio::null()).spawn().expect("python3");
        let origin = Process(origin);
        machines.wait_for(ORIGIN, "10.77.0.5:8000");
        let more = |name| match name {
            "f" => format!("device = \"e0\"\n{SETTINGS}"),
            _ => SETTINGS.to_owned(),
        };
        let start = |(name, number)| (number, machines.start(name, number, &more(name)));
        let members = MEMBERS.into_iter().rev().map(start).collect();
        let mut cluster = Self {
            machines,
            members,
            _origin: origin,
            kept: [Vec::new(), Vec::new()],
        };
        cluster.fill();
        cluster
    }

    /// Has each node request targets at itself: those that are its own it stores, and of the others
    /// it learns which node has them.
    fn fill(&mut self) {
        for number in 0.. {
            if self.kept.iter().all(|kept| kept.len() >= TARGETS) {
                return;
            }
            let bytes = FILES[number % FILES.len()];
            let target = (format!("/{bytes}?t{number}"), bytes);
            // the second one is a hit where the target is kept
            let get = |node| {
                let mut client = self.connect(node);
                client.get(&target);
                client.get(&target).is_hit
            };
            let at_a = get(A);
            assert!(get(B) != at_a, "{target:?} is kept by one of them");
            let kept = &mut self.kept[usize::from(!at_a)];
            if kept.len() < TARGETS {
                kept.push(target);
            }
        }
    }

    /// A connection from this machine to the service, which is there on the nodes, too.
    pub(super) fn connect(&self, machine: u8) -> Client {
        let connect = || TcpStream::connect(SERVICE).expect("a connection");
        let stream = self.machines.machine(machine).inside(connect).expect("it");
        stream.set_read_timeout(Some(WAIT_MAX)).expect("a socket");
        Client {
            reader: BufReader::new(stream),
        }
    }

    /// A client's connection that node A has, with its first response received.
    pub(super) fn connect_at_a(&self) -> Client {
        loop {
            let adopted = "weir_connections_adopted_total";
            let (before, tried) = (self.count(A, adopted), self.tried());
            let mut client = self.connect(CLIENT);
            client.get(&self.kept[0][0]);
            // the front end must have heard that the node goes on with it
            self.wait_until("the hand-off is over", || self.tried() > tried);
            // it stays if a packet was under way
            if self.count(A, adopted) > before {
                return client;
            }
        }
    }

    /// Connections that the front end has handed over, or not.
    fn tried(&self) -> u64 {
        let counters = ["weir_hand_offs_total", "weir_hand_offs_refused_total"];
        counters.map(|it| self.count(FRONT_END, it)).iter().sum()
    }

    /// Whether a message waits for the node B, which stands still.
    pub(super) fn has_message(&self) -> bool {
        const PEER_PORT: &str = ":0FA0";
        self.sockets(B).lines().any(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (local, queues) = (words.next(), words.nth(2));
            let is_peer = local.is_some_and(|local| local.ends_with(PEER_PORT));
            is_peer && queues.is_some_and(|queues| !queues.ends_with(":00000000"))
        })
    }

    pub(super) fn count(&self, member: u8, metric: &str) -> u64 {
        self.machines.count(member, metric)
    }

    /// Connections that nodes have moved on, by the reckoning of the front end.
    pub(super) fn moved(&self) -> u64 {
        self.count(FRONT_END, "weir_flows_moved_total")
    }

    fn signal(&self, member: u8, signal: Signal) -> u32 {
        let id = self.members[&member].0.id();
        let process = i32::try_from(id).ok().and_then(Pid::from_raw);
        kill_process(process.expect("a process"), signal).expect("it runs");
        id
    }

    /// Has a member stand still. Its threads stop one after the other, and meanwhile those that run
    /// answer messages.
    pub(super) fn stop(&self, member: u8) {
        let id = self.signal(member, Signal::STOP);
        let is_stopped = |thread: DirEntry| {
            let Ok(stat) = std::fs::read_to_string(thread.path().join("stat")) else {
                // it has ended
                return true;
            };
            // behind its name, which is in parentheses
            let (_, state) = stat.rsplit_once(") ").expect("its state");
            state.starts_with('T')
        };
        self.wait_until("it stands still", || {
            let threads = std::fs::read_dir(format!("/proc/{id}/task")).expect("it runs");
            threads
                .map(|thread| thread.expect("a thread"))
                .all(is_stopped)
        });
    }

    pub(super) fn go_on(&self, member: u8) {
        self.signal(member, Signal::CONT);
    }

    pub(super) fn kill(&mut self, member: u8) {
        // when it is dropped
        assert!(self.members.remove(&member).is_some());
    }

    pub(super) fn wait_until(&self, what: &str, is_so: impl FnMut() -> bool) {
        self.machines.wait_until(what, is_so);
    }

    /// Whether packets of a client are held.
    pub(super) fn holds(&self) -> bool {
        self.flows("set", "held") > 0
    }

    /// Flows of the client in a set or map of the front end's kernel.
    pub(super) fn flows(&self, kind: &str, name: &str) -> usize {
        const TABLE: &str = "weir_10_77_0_100_8080";
        let words = ["nft", "list", kind, "netdev", TABLE, name];
        let mut command = self.machines.run(FRONT_END, &words);
        let output = command.stdout(Stdio::piped()).output();
        let text = output.expect("nftables").stdout;
        String::from_utf8_lossy(&text)
            .matches("10.77.0.1 .")
            .count()
    }

    /// Whether a node waits for a client that reads nothing, and sends it probes.
    pub(super) fn is_probed(&self, member: u8) -> bool {
        const SERVICE_PORT: &str = ":1F90";
        const PROBE_TIMER: &str = "04:";
        self.sockets(member).lines().any(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (local, timer) = (words.next(), words.nth(3));
            let is_of = |word: Option<&str>, end: &str| word.is_some_and(|it| it.ends_with(end));
            let is_probe = timer.is_some_and(|timer| timer.starts_with(PROBE_TIMER));
            is_of(local, SERVICE_PORT) && is_probe
        })
    }

    /// The table of a member's TCP sockets.
    fn sockets(&self, member: u8) -> String {
        let read = || std::fs::read_to_string("/proc/thread-self/net/tcp").expect("sockets");
        self.machines.machine(member).inside(read).expect("it")
    }
}
