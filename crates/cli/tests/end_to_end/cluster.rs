//! Three real nodes before a real origin: each target is fetched once, every byte arrives, and a
//! node that is killed, stands still, leaves or has another secret costs no request.

mod dns;
mod etcd;
mod front_end;
mod hand_off;
mod hierarchies;
mod members;
mod purge_log;
mod purges;
mod states;

use crate::support::{ClientsEnd, Config, Nginx, PATIENCE, RawClient, Signal, Weir, ask, content};
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;
use tempfile::TempDir;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Files at the origin.
const FILES: u32 = 30;

/// A cluster, its origin and the file with its secret.
struct Nodes {
    nodes: Vec<Weir>,
    nginx: Nginx,
    configs: Vec<Config>,
    members: Vec<(&'static str, SocketAddr)>,
    folder: TempDir,
}

/// From nothing to some KiB, each of another length.
fn file(number: u32) -> Vec<u8> {
    content(number, (number * 991) as usize)
}

fn path(number: u32) -> String {
    format!("/f/{number}")
}

fn secret_file(folder: &Path, name: &str, secret: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, secret).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("ours");
    path
}

/// The setting for these members.
fn members_toml(members: &[(&str, SocketAddr)]) -> String {
    let mut text = String::from("[");
    for (name, address) in members {
        let _infallible = write!(
            text,
            "{{ name = \"{name}\", url = \"http://{address}\" }}, "
        );
    }
    text + "]"
}

impl Nodes {
    /// Nodes that wait for each other for as long as they do by default: a loaded machine makes no
    /// node fail.
    fn start() -> Self {
        Self::start_waiting("5s")
    }

    /// Nodes that wait so long for the head of another one's response.
    fn start_waiting(peer_timeout: &str) -> Self {
        let unknown = SocketAddr::from(([127, 0, 0, 1], 9));
        let nodes = Self::start_listed(|name, config| {
            config
                .set("cluster.node", &format!("{name:?}"))
                .set("cluster.peer_timeout", &format!("{peer_timeout:?}"))
                // the ports of the others are known once they listen
                .set("cluster.member", &members_toml(&[(name, unknown)]))
        });
        for at in 0..NAMES.len() {
            nodes.reload(at, &nodes.members);
        }
        nodes
    }

    /// Nodes whose members are listed as `list` has it, by the name of each.
    fn start_listed(list: impl Fn(&'static str, Config) -> Config) -> Self {
        let nginx = Nginx::start(
            "access_log requests.log; add_header Cache-Control max-age=3600; \
             location /f/ { dav_methods PUT; } location /slow/ { limit_rate 1k; }",
        );
        for number in 0..FILES {
            nginx.file(&path(number)[1..], &file(number));
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let secret = secret_file(folder.path(), "secret", "0123456789abcdef-of-the-cluster\n");
        let configs = NAMES.map(|name| {
            let config = Config::gateway(&[&nginx.origin()])
                .listener("127.0.0.1:0", "peer")
                .set("cluster.policy", "\"hash\"")
                .set("cluster.join_time", "\"0s\"")
                .set("cluster.secret_file", &format!("{:?}", secret.display()));
            list(name, config)
        });
        let nodes: Vec<Weir> = configs.iter().map(Weir::serve).collect();
        let addresses = nodes.iter().map(|node| node.peer_listeners[0]);
        let members: Vec<_> = NAMES.into_iter().zip(addresses).collect();
        Self {
            nodes,
            nginx,
            configs: configs.to_vec(),
            members,
            folder,
        }
    }

    /// Has node number `at` know these members.
    fn reload(&self, at: usize, members: &[(&str, SocketAddr)]) {
        let config = self.configs[at].clone();
        let config = config.set("cluster.member", &members_toml(members));
        self.nodes[at].rewrite(&config.text());
        self.nodes[at].ask("POST", "/reload").expect(200);
    }

    /// Every file from node number `at`, whole; how many requests it sent to other nodes for them.
    fn check_files(&self, at: usize) -> u64 {
        let sent = || self.nodes[at].metrics().count("weir_peer_requests_total");
        let before = sent();
        let mut client = RawClient::connect(self.nodes[at].address());
        for number in 0..FILES {
            check_file(&mut client, number).expect("a whole response");
        }
        sent() - before
    }

    /// How often the origin was asked for each file, in order of the numbers; polled until there
    /// are `all` requests, as nginx writes its log behind the response.
    fn asked(&self, all: usize) -> Vec<usize> {
        let until = Instant::now() + PATIENCE;
        loop {
            let log = self.nginx.path("../requests.log");
            let log = std::fs::read_to_string(log).unwrap_or_default();
            if log.lines().count() >= all {
                let asked = |number| {
                    let line = format!("\"GET {} HTTP/1.1\" 200", path(number));
                    log.lines().filter(|found| found.contains(&line)).count()
                };
                return (0..FILES).map(asked).collect();
            }
            assert!(Instant::now() < until, "fewer than {all} requests: {log}");
        }
    }

    /// Waits until node number `at` has node `name` in this state.
    fn wait_for_state(&self, at: usize, name: &str, state: &str) {
        let until = Instant::now() + PATIENCE;
        let mut admin = RawClient::connect(self.nodes[at].admin);
        loop {
            let text = ask(&mut admin, "GET", "/cluster").expect(200).text();
            let mut lines = text.lines();
            let line = lines.find(|line| line.starts_with(&format!("{name} ")));
            let words = line.expect("a member").split_whitespace();
            if words
                .clone()
                .nth(3)
                .is_some_and(|word| word.trim_end_matches(',') == state)
            {
                return;
            }
            assert!(Instant::now() < until, "{name} is never {state}: {text}");
        }
    }
}

/// Requests a file on an open connection; fails for wrong content, returns what else went wrong.
fn check_file(client: &mut RawClient, number: u32) -> io::Result<()> {
    let reply = client.try_get(&format!("http://a.example{}", path(number)))?;
    if reply.status() == 502 {
        // the node that was to answer was killed
        return Err(io::Error::other(reply.text()));
    }
    assert_eq!(reply.status(), 200, "{}\n{}", reply.head, reply.text());
    assert!(reply.body == file(number), "file {number}: {}", reply.head);
    Ok(())
}

/// Clients that request file after file at the first two nodes while `work` runs. Returns when the
/// failed requests began and ended.
fn under_load(nodes: &[SocketAddr; 2], work: impl FnOnce(&AtomicUsize)) -> Vec<[Instant; 2]> {
    let (done, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let _end = ClientsEnd::new(&done);
        for address in nodes.iter().chain(nodes) {
            let (done, count, failed) = (&done, &count, &failed);
            scope.spawn(move || {
                let mut client = RawClient::connect(*address);
                for number in (0..FILES).cycle() {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    let began = Instant::now();
                    if check_file(&mut client, number).is_err() {
                        let times = [began, Instant::now()];
                        failed.lock().expect("no panic").push(times);
                        client = RawClient::connect(*address);
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        work(&count);
    });
    failed.into_inner().expect("no panic")
}

/// Waits until so many more requests were answered.
fn wait_for_more(count: &AtomicUsize, more: usize) {
    let wanted = count.load(Ordering::Relaxed) + more;
    let until = Instant::now() + PATIENCE;
    while count.load(Ordering::Relaxed) < wanted {
        assert!(Instant::now() < until, "requests are not answered");
        std::thread::yield_now();
    }
}

#[test]
fn each_file_comes_whole_from_each_node_and_the_origin_is_asked_once() {
    let nodes = Nodes::start();
    for at in 0..NAMES.len() {
        let lateral = nodes.check_files(at);
        assert!(
            lateral > 0,
            "{} of {FILES} files are fetched from other nodes",
            lateral
        );
    }
    assert_eq!(nodes.asked(FILES as usize), [1; FILES as usize]);
    for node in &nodes.nodes {
        let metrics = node.metrics();
        // a digest may be asked of a node that does not know this one yet, and is refused
        assert_eq!(metrics.count("weir_peer_failures_total"), 0);
    }
}

/// The node that the admin interface of `node` has for a file.
fn node_of(node: &Weir, number: u32) -> String {
    chosen_for(node, &path(number))
}

/// The same for a path.
fn chosen_for(node: &Weir, path: &str) -> String {
    let question = format!("/route?url=http://a.example{path}");
    let text = node.ask("GET", &question).expect(200).text();
    let chosen = text.lines().find(|line| line.contains("first-in-order"));
    let name = chosen.and_then(|line| line.split_whitespace().nth(1));
    assert!(text.contains("next-hop"), "{text}");
    name.unwrap_or_else(|| panic!("none is chosen: {text}"))
        .to_owned()
}

#[test]
fn all_nodes_name_the_node_that_a_file_is_fetched_from() {
    let nodes = Nodes::start();
    let mut client = RawClient::connect(nodes.nodes[0].address());
    for number in 0..FILES {
        let names = [0, 1, 2].map(|at| node_of(&nodes.nodes[at], number));
        assert!(names[0] == names[1] && names[1] == names[2], "{names:?}");
        let reply = client.get(&format!("http://a.example{}", path(number)));
        let is_lateral = reply.cache_status().contains("on-peer");
        assert_eq!(is_lateral, names[0] != "a", "{}", reply.head);
    }
    // a question requests nothing
    assert_eq!(nodes.asked(FILES as usize), [1; FILES as usize]);
}

#[test]
fn killed_node_fails_no_request_but_those_it_was_answering() {
    let mut nodes = Nodes::start();
    for at in 0..NAMES.len() {
        nodes.check_files(at);
    }
    let clients = [nodes.nodes[0].address(), nodes.nodes[1].address()];
    let mut killed = [Instant::now(); 2];
    let failed = under_load(&clients, |count| {
        wait_for_more(count, 200);
        killed[0] = Instant::now();
        nodes.nodes[2].kill();
        killed[1] = Instant::now();
        nodes.wait_for_state(0, "c", "gone");
        nodes.wait_for_state(1, "c", "gone");
        wait_for_more(count, 400);
    });
    for [began, ended] in &failed {
        assert!(
            *began < killed[1] && *ended > killed[0],
            "a request failed that the killed node was not answering"
        );
    }
    assert!(failed.len() <= 4, "more requests than there are clients");
    // its share, once more; the two others share it. What they were asking it for at its end both
    // may ask the origin for: the one does not wait for what the other waits for
    let asked = nodes.asked(FILES as usize);
    assert!(
        asked.iter().all(|asked| (1..=3).contains(asked)),
        "{asked:?}"
    );
    let twice = asked.iter().filter(|asked| **asked == 3).count();
    assert!(twice <= 4, "more files than there are clients: {asked:?}");
    assert!(nodes.check_files(0) > 0);
    assert_eq!(nodes.asked(FILES as usize), asked);
}

#[test]
fn requests_pass_over_a_node_that_stands_still_until_it_goes_on() {
    let nodes = Nodes::start_waiting("300ms");
    for at in 0..NAMES.len() {
        nodes.check_files(at);
    }
    let served = || nodes.nodes[2].metrics().all_requests();
    nodes.nodes[2].signal(Signal::Stop);
    let clients = [nodes.nodes[0].address(), nodes.nodes[1].address()];
    let failed = under_load(&clients, |count| {
        nodes.wait_for_state(0, "c", "gone");
        nodes.wait_for_state(1, "c", "gone");
        wait_for_more(count, 200);
    });
    assert!(failed.is_empty(), "{} requests failed", failed.len());
    nodes.nodes[0].until("failed", |metrics| {
        metrics.count("weir_peer_failures_total") > 0
    });
    nodes.nodes[2].signal(Signal::Continue);
    nodes.wait_for_state(0, "c", "in");
    let before = served();
    nodes.check_files(0);
    let after = nodes.nodes[2].until("asked", |metrics| metrics.all_requests() > before);
    assert_eq!(after.count("weir_panics_total"), 0);
}

#[test]
fn node_that_stands_still_within_a_response_holds_up_that_one_alone_and_goes_on_with_it() {
    // more than all sockets between the origin and a client hold
    const LARGE_BYTES: usize = 32 << 20;
    let nodes = Nodes::start_waiting("300ms");
    for at in 0..NAMES.len() {
        nodes.check_files(at);
    }
    let number = (1000..).find(|number| node_of(&nodes.nodes[0], *number) == "c");
    let number = number.expect("one of three or so");
    let large = content(number, LARGE_BYTES);
    nodes.nginx.file(&path(number)[1..], &large);
    let ask = |at: usize| {
        let mut client = RawClient::connect(nodes.nodes[at].address());
        let target = path(number);
        client.send(format!("GET {target} HTTP/1.1\r\nHost: a.example\r\n\r\n"));
        client
    };
    let mut held_up = ask(0);
    assert_eq!(held_up.head().status(), 200);
    let begin = held_up.take(100_000);
    nodes.nodes[2].signal(Signal::Stop);
    let clients = [nodes.nodes[0].address(), nodes.nodes[1].address()];
    let failed = under_load(&clients, |count| {
        nodes.wait_for_state(0, "c", "gone");
        nodes.wait_for_state(1, "c", "gone");
        wait_for_more(count, 200);
        // of the same target, too
        let reply = ask(1).reply();
        assert_eq!(reply.status(), 200, "{}", reply.head);
        assert!(reply.body == large, "{}", reply.head);
    });
    assert!(failed.is_empty(), "{} requests failed", failed.len());
    nodes.nodes[2].signal(Signal::Continue);
    let rest = held_up.take(LARGE_BYTES - begin.len());
    assert!(begin == large[..begin.len()] && rest == large[begin.len()..]);
}

#[test]
fn reload_that_removes_and_adds_a_member_fails_no_request() {
    let nodes = Nodes::start();
    let clients = [nodes.nodes[0].address(), nodes.nodes[1].address()];
    let failed = under_load(&clients, |count| {
        for members in [
            &nodes.members[..2],
            &nodes.members,
            &nodes.members[..2],
            &nodes.members,
        ] {
            wait_for_more(count, 200);
            for at in 0..2 {
                nodes.reload(at, members);
                wait_for_more(count, 50);
            }
        }
    });
    assert!(failed.is_empty(), "{} requests failed", failed.len());
    assert!(nodes.check_files(0) > 0);
    for node in &nodes.nodes {
        assert_eq!(node.metrics().count("weir_peer_failures_total"), 0);
    }
}

#[test]
fn requests_of_a_node_with_another_secret_are_answered_by_the_origin_and_counted() {
    let mut nodes = Nodes::start();
    let wrong = secret_file(
        nodes.folder.path(),
        "wrong",
        "fedcba9876543210-of-another-cluster\n",
    );
    let config = nodes.configs[2].clone();
    nodes.configs[2] = config.set("cluster.secret_file", &format!("{:?}", wrong.display()));
    nodes.reload(2, &nodes.members);
    let sent = nodes.check_files(2);
    let metrics = nodes.nodes[2].metrics();
    let failures = metrics.count("weir_peer_failures_total");
    assert!(failures > 0 && failures == sent, "{failures} of {sent}");
    let refused = nodes.nodes[..2].iter();
    let name = "weir_peer_refusals_total{reason=\"not-proved\"}";
    let refused = refused.map(|node| node.metrics().count(name));
    // digests are refused, too
    assert!(refused.sum::<u64>() >= failures);
    assert_eq!(nodes.asked(FILES as usize), [1; FILES as usize]);
    // and the others go on without it
    nodes.check_files(0);
    nodes.check_files(1);
}
