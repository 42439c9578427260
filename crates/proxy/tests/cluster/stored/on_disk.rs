//! What a node has on disk and not in memory, or only the head of in memory: with `extended-lard`,
//! while the disk is busy, a node that has it in memory is asked for it.

use crate::digests::{ask_often, wait_for_round};
use crate::nodes::{Nodes, fresh, start_node_with};
use crate::support::{Head, PATIENCE, RawClient, Response, Running};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex};
use std::time::Instant;
use weir_measure::{Metric, RouteChoice};
use weir_policy::route::policy::PolicyKind;
use weir_proxy::admin::{PurgeCall, PurgeReach};
use weir_proxy::config::{ByteSize, Config, Directory, LogTarget};

/// What holds back the answer to a POST.
struct Gate {
    arrives: Mutex<Sender<()>>,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn new() -> (&'static Self, Receiver<()>) {
        let (arrives, arrived) = channel();
        // a thread of the origin has it until the process ends
        let gate = Box::leak(Box::new(Self {
            arrives: Mutex::new(arrives),
            is_open: Mutex::new(false),
            opened: Condvar::new(),
        }));
        (gate, arrived)
    }

    fn open(&self) {
        *self.is_open.lock().expect("no panic") = true;
        self.opened.notify_all();
    }

    fn pass(&self) {
        self.arrives
            .lock()
            .expect("no panic")
            .send(())
            .expect("a test");
        let is_open = self.is_open.lock().expect("no panic");
        let waited = self.opened.wait_while(is_open, |is_open| !*is_open);
        drop(waited.expect("no panic"));
    }
}

/// Three nodes, the first of which has responses on disk and not in memory, and the second has
/// them in memory. A client of the first waits for the origin: by its own count, its disk is busy.
struct Busy {
    cluster: Nodes,
    paths: Vec<String>,
    gate: &'static Gate,
    waiting: RawClient,
    disk: tempfile::TempDir,
}

fn on_disk(folder: &Path) -> impl FnOnce(&mut Config) {
    let directory = Directory {
        path: folder.join("store"),
        size: Some(ByteSize::from_mib(64)),
    };
    let access_log = LogTarget::File(folder.join("access.log"));
    move |config| {
        config.log.access = access_log;
        config.disk.enabled = true;
        config.disk.directories = vec![directory];
        config.cluster.disk_busy = Some(1);
    }
}

impl Busy {
    fn new(policy: PolicyKind) -> Self {
        let (gate, arrived) = Gate::new();
        let mut cluster = Nodes::start(posts_held_by(gate));
        let disk = tempfile::tempdir().expect("a folder");
        restart_first(&mut cluster, disk.path());
        // each is stored at the node that owns it
        let paths: Vec<String> = cluster.paths_of(0).take(3).collect();
        for node in &cluster.nodes {
            node.reload(|config| config.cluster.policy = policy);
        }
        for path in &paths {
            assert_eq!(cluster.get(1, path).text(), *path);
            if policy == PolicyKind::ExtendedLard {
                assert!(
                    is_hit(&cluster.get(1, path)),
                    "its disk is idle: it keeps a copy"
                );
            }
        }
        restart_first(&mut cluster, disk.path());
        cluster.nodes[0].reload(|config| {
            config.cluster.policy = policy;
            ask_often(config);
        });
        wait_for_round(&cluster, 0);
        let waiting = wait_at_origin(&cluster, &arrived);
        Self {
            cluster,
            paths,
            gate,
            waiting,
            disk,
        }
    }

    /// Nothing waits any more.
    fn end(&mut self) {
        self.gate.open();
        assert_eq!(self.waiting.read_response().status(), 200);
    }

    /// The line in the log of the first node about a client's request for `path` that was answered
    /// from disk.
    fn logged_read(&self, path: &str) -> serde_json::Value {
        let file = self.disk.path().join("access.log");
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let text = std::fs::read_to_string(&file).expect("a log");
            let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
            let lines = whole
                .lines()
                .map(|line| serde_json::from_str(line).expect("JSON"));
            let is_of_it = |line: &serde_json::Value| {
                let status = line["cache_status"].as_str().unwrap_or_default();
                line["target"] == path && status.ends_with(";detail=disk")
            };
            if let Some(line) = { lines }.rfind(is_of_it) {
                return line;
            }
            std::thread::yield_now();
        }
        panic!("no line about {path}");
    }

    /// A response that was read is logged as one, whatever was asked before.
    fn check_logged_as_read(&self, path: &str) {
        let line = self.logged_read(path);
        assert_eq!(line["node_choice"], "disk-busy", "{line}");
        for absent in ["next_hop", "connect_us", "first_byte_us"] {
            assert!(line.get(absent).is_none(), "{line}");
        }
    }

    fn chosen(&self, why: RouteChoice) -> u64 {
        self.cluster.nodes[0].count(Metric::NodeChoices(why))
    }
}

/// What the origin answers.
fn posts_held_by(gate: &'static Gate) -> impl Fn(&Head, &[u8]) -> Vec<u8> {
    move |head, content| {
        if head.start_line().starts_with("POST ") {
            gate.pass();
        }
        fresh(head, content)
    }
}

/// A client of the first node that waits for the origin: the disk of that node is busy by its own
/// count.
fn wait_at_origin(cluster: &Nodes, arrived: &Receiver<()>) -> RawClient {
    let mut waiting = cluster.nodes[0].client();
    waiting.send("POST /held HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n");
    arrived.recv_timeout(PATIENCE).expect("at the origin");
    waiting
}

/// Starts the first node anew, with what is on its disk.
fn restart_first(cluster: &mut Nodes, disk: &Path) {
    let stopped = cluster.nodes.remove(0);
    assert!(stopped.stop().join().expect("no panic"));
    let started = start_node_with("a", cluster.origin.address(), on_disk(disk));
    started.wait_for(Metric::DiskLoading, 0);
    cluster.nodes.insert(0, started);
    let members = cluster.members();
    for node in &cluster.nodes {
        node.reload(|config| config.cluster.members.clone_from(&members));
    }
}

/// What the caches on the way of a response say, this node last.
fn status(response: &Response) -> String {
    assert_eq!(response.status(), 200);
    response.head.all("cache-status").join(", ")
}

fn is_hit(response: &Response) -> bool {
    status(response).starts_with("weir;hit")
}

#[test]
fn response_on_a_busy_disk_comes_from_the_memory_of_another_node_and_stays_on_disk() {
    let mut busy = Busy::new(PolicyKind::ExtendedLard);
    let [first, second, _] = &busy.paths[..] else {
        panic!("three paths");
    };
    for path in [first, first, second] {
        let response = busy.cluster.get(0, path);
        assert_eq!(response.text(), *path);
        let status = status(&response);
        assert!(status.starts_with("weir;hit;"), "{status}");
        assert!(
            status.ends_with(";detail=on-peer"),
            "no copy is kept: {status}"
        );
        assert_eq!(busy.cluster.asked(path), 1);
    }
    assert_eq!(busy.chosen(RouteChoice::Lateral), 3);
    let (first, second) = (first.clone(), second.clone());
    busy.end();
    for path in [first, second] {
        let response = busy.cluster.get(0, &path);
        assert_eq!(response.text(), path);
        let status = status(&response);
        assert!(status.starts_with("weir;hit"), "{status}");
        assert!(status.ends_with(";detail=disk"), "{status}");
        assert_eq!(busy.cluster.asked(&path), 1);
    }
    assert_eq!(busy.chosen(RouteChoice::Lateral), 3);
}

#[test]
fn response_on_a_busy_disk_is_asked_of_its_first_node_if_none_is_known_to_have_it() {
    let (gate, arrived) = Gate::new();
    let mut cluster = Nodes::start(posts_held_by(gate));
    let paths: Vec<String> = cluster.paths_of(1).take(2).collect();
    let disk = tempfile::tempdir().expect("a folder");
    restart_first(&mut cluster, disk.path());
    // the first node stores them as well, while it is alone
    cluster.nodes[0].reload(|config| config.cluster.members.truncate(1));
    for path in &paths {
        assert_eq!(cluster.get(0, path).text(), *path);
        assert_eq!(cluster.asked(path), 2);
    }
    restart_first(&mut cluster, disk.path());
    for node in &cluster.nodes {
        node.reload(|config| config.cluster.policy = PolicyKind::ExtendedLard);
    }
    let mut waiting = wait_at_origin(&cluster, &arrived);
    for path in &paths {
        let response = cluster.get(0, path);
        assert_eq!(response.text(), *path);
        let status = status(&response);
        assert!(status.starts_with("weir;hit"), "{status}");
        assert!(status.ends_with(";detail=on-peer"), "{status}");
        assert_eq!(cluster.asked(path), 2);
    }
    let lateral = Metric::NodeChoices(RouteChoice::Lateral);
    assert_eq!(cluster.nodes[0].count(lateral), 2);
    gate.open();
    assert_eq!(waiting.read_response().status(), 200);
}

/// A response of 300 KB: its content does not come with its head.
fn large(head: &Head, _: &[u8]) -> Vec<u8> {
    let path = head.start_line().split(' ').nth(1).expect("a target");
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: 300000\r\n\r\n";
    let content = path.bytes().cycle().take(300_000);
    head.bytes().chain(content).collect()
}

/// The node answers a HEAD.
fn ask_for_head(node: &Running, path: &str) {
    let mut client = node.client();
    client.send(format!("HEAD {path} HTTP/1.1\r\nHost: a.example\r\n\r\n"));
    assert_eq!(client.read_head().status(), 200);
}

#[test]
fn content_on_a_busy_disk_whose_head_is_in_memory_is_asked_of_its_first_node() {
    let (gate, arrived) = Gate::new();
    let answer = posts_held_by(gate);
    let mut cluster =
        Nodes::start(
            move |head, content| match head.start_line().starts_with("GET ") {
                true => large(head, content),
                false => answer(head, content),
            },
        );
    let path = cluster.path_of(1);
    let disk = tempfile::tempdir().expect("a folder");
    restart_first(&mut cluster, disk.path());
    // the first node stores it as well, while it is alone
    cluster.nodes[0].reload(|config| config.cluster.members.truncate(1));
    let whole = cluster.get(0, &path).text();
    assert_eq!((whole.len(), cluster.asked(&path)), (300_000, 2));
    cluster.nodes[0].wait_for_at_least(Metric::DiskStored, 1);
    restart_first(&mut cluster, disk.path());
    for node in &cluster.nodes {
        node.reload(|config| config.cluster.policy = PolicyKind::ExtendedLard);
    }
    let first = &cluster.nodes[0];
    ask_for_head(first, &path);
    assert_eq!(first.count(Metric::StoreEntries), 1);
    assert!(first.count(Metric::StoreUsedBytes) < 100_000);
    let mut waiting = wait_at_origin(&cluster, &arrived);
    let lateral = Metric::NodeChoices(RouteChoice::Lateral);
    let response = cluster.get(0, &path);
    assert!(response.text() == whole);
    let asked = status(&response);
    assert!(asked.starts_with("weir;hit"), "{asked}");
    assert!(asked.ends_with(";detail=on-peer"), "{asked}");
    assert_eq!(first.count(lateral), 1);
    // for a part of it, too; and a head needs no content
    let range = format!("GET {path} HTTP/1.1\r\nHost: a.example\r\nRange: bytes=7-8\r\n\r\n");
    let part = first.client().ask(range);
    assert_eq!((part.status(), part.text()), (206, whole[7..9].to_owned()));
    assert_eq!(first.count(lateral), 2);
    ask_for_head(first, &path);
    assert_eq!((first.count(lateral), cluster.asked(&path)), (2, 2));
    // a node that has it no more: it is read here
    let purged = cluster.nodes[1].purge_at(PurgeReach::ThisNode, PurgeCall::All);
    assert!(purged.is_ok(), "{purged:?}");
    let response = cluster.get(0, &path);
    assert!(response.text() == whole);
    let read = status(&response);
    assert_eq!(read.matches("weir;").count(), 1, "{read}");
    assert!(
        read.starts_with("weir;hit") && read.ends_with(";detail=disk"),
        "{read}"
    );
    assert_eq!(cluster.asked(&path), 2);
    gate.open();
    assert_eq!(waiting.read_response().status(), 200);
}

#[test]
fn response_that_the_other_node_has_no_more_is_read_from_the_busy_disk() {
    let mut busy = Busy::new(PolicyKind::ExtendedLard);
    let path = busy.paths[0].clone();
    let purged = busy.cluster.nodes[1].purge_at(PurgeReach::ThisNode, PurgeCall::All);
    assert!(purged.is_ok(), "{purged:?}");
    let response = busy.cluster.get(0, &path);
    assert_eq!(response.text(), path);
    let read = status(&response);
    assert!(read.ends_with(";detail=disk"), "{read}");
    assert_eq!(busy.cluster.asked(&path), 1);
    // its digest may say so by now, and is not awaited
    let declined = busy.cluster.nodes[0].count(Metric::PeersDeclined);
    assert_eq!(declined + busy.chosen(RouteChoice::DiskBusy), 1);
    busy.check_logged_as_read(&path);
    // a node that does not answer at all
    let gone = busy.cluster.nodes.remove(1);
    assert!(gone.stop().join().expect("no panic"));
    let path = busy.paths[1].clone();
    let read = status(&busy.cluster.get(0, &path));
    assert!(read.ends_with(";detail=disk"), "{read}");
    assert_eq!(busy.cluster.asked(&path), 1);
    busy.check_logged_as_read(&path);
    busy.end();
}

#[test]
fn response_on_a_busy_disk_is_read_with_other_policies() {
    for policy in [PolicyKind::ReplicatedHash, PolicyKind::LardR] {
        let mut busy = Busy::new(policy);
        let requests = busy.cluster.nodes[0].count(Metric::PeerRequests);
        for path in &busy.paths {
            let read = status(&busy.cluster.get(0, path));
            assert!(read.ends_with(";detail=disk"), "{read}");
        }
        assert_eq!(busy.cluster.nodes[0].count(Metric::PeerRequests), requests);
        busy.end();
    }
}

#[test]
fn response_on_a_busy_disk_is_not_asked_of_another_node_while_a_purge_of_it_is_under_way() {
    let mut busy = Busy::new(PolicyKind::ExtendedLard);
    let path = busy.paths[0].clone();
    let url = format!("http://a.example{path}");
    assert!(busy.cluster.nodes[0].try_purge(&url).is_ok());
    let response = busy.cluster.get(0, &path);
    assert_eq!(status(&response).matches("hit").count(), 0);
    assert_eq!(busy.cluster.asked(&path), 2);
    // what a client wants from the origin is neither on disk nor in a memory for it
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: a.example\r\nCache-Control: no-cache\r\n\r\n",
        busy.paths[1]
    );
    let response = busy.cluster.nodes[0].client().ask(request);
    assert_eq!(status(&response).matches("hit").count(), 0);
    assert_eq!(busy.chosen(RouteChoice::Lateral), 0);
    busy.end();
}
