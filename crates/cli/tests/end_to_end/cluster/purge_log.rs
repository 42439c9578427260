//! The log of purges in a real etcd: a node that was away while a purge was made does not serve
//! what it has of it on disk, and validates all that it has if it cannot know what it has missed.

use super::{FILES, NAMES, Nodes, chosen_for, file, node_of, path};
use crate::support::{Etcd, RawClient, Reply, Weir};
use std::process::{Command, Output};
use tempfile::TempDir;

/// `/weir/cluster/applied/` and a name, in base64, for the JSON gateway.
const APPLIED: [&str; 3] = [
    "L3dlaXIvY2x1c3Rlci9hcHBsaWVkL2E=",
    "L3dlaXIvY2x1c3Rlci9hcHBsaWVkL2I=",
    "L3dlaXIvY2x1c3Rlci9hcHBsaWVkL2M=",
];

/// `/weir/cluster/purges-dropped`.
const DROPPED: &str = "L3dlaXIvY2x1c3Rlci9wdXJnZXMtZHJvcHBlZA==";

/// 1000000000.
const MUCH: &str = "MTAwMDAwMDAwMA==";

/// Nodes that have found each other in etcd, each with a store on disk.
struct Logged {
    nodes: Nodes,
    etcd: Etcd,
    /// The stores.
    _folder: TempDir,
}

impl Logged {
    fn start() -> Self {
        let etcd = Etcd::start();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let source = format!("\"etcd:{}\"", etcd.url());
        let nodes = Nodes::start_listed(|name, config| {
            let store = folder.path().join(name);
            let directories = format!("[{{ path = {store:?}, size = \"64MiB\" }}]");
            config
                .set("cluster.node", &format!("{name:?}"))
                .set("cluster.members", &source)
                .set("cluster.peer_timeout", "\"1s\"")
                .set("disk.enabled", "true")
                .set("disk.directories", &directories)
        });
        let logged = Self {
            nodes,
            etcd,
            _folder: folder,
        };
        for at in 0..NAMES.len() {
            logged.wait_for_log(at);
        }
        logged
    }

    /// Waits until node number `at` knows all members, and follows the log.
    fn wait_for_log(&self, at: usize) {
        self.nodes.wait_for_members(at, NAMES.len());
        let key = APPLIED[at];
        self.nodes.nodes[at].until("following", |_| {
            let answer = self
                .etcd
                .post("kv/range", &format!("{{\"key\":\"{key}\"}}"));
            answer.contains("\"kvs\"")
        });
    }

    /// Two files that node `c` keeps, which it has on disk, and which have changed at the origin
    /// since.
    fn files_of_c(&self) -> [u32; 2] {
        let at_c = (0..FILES).filter(|number| node_of(&self.nodes.nodes[0], *number) == "c");
        let files: Vec<u32> = at_c.take(2).collect();
        for number in &files {
            self.get(2, *number);
        }
        self.nodes.nodes[2].until("on disk", |metrics| metrics.count("weir_disk_entries") >= 2);
        [files[0], files[1]]
    }

    fn get(&self, at: usize, number: u32) -> Reply {
        let mut client = RawClient::connect(self.nodes.nodes[at].address());
        client.get(&format!("http://a.example{}", path(number)))
    }

    fn change(&self, number: u32) {
        self.nodes.nginx.file(&path(number)[1..], b"changed\n");
    }

    fn stop_c(&mut self) {
        assert!(self.nodes.nodes[2].stop().success());
    }

    /// Starts it again with the store that it had.
    fn start_c(&mut self) {
        self.nodes.nodes[2] = Weir::serve(&self.nodes.configs[2]);
        self.nodes.nodes[2].until("loaded", |metrics| metrics.count("weir_disk_loading") == 0);
    }

    fn purge(&self, at: usize, number: u32) -> (Output, String) {
        let admin = self.nodes.nodes[at].admin.to_string();
        let url = format!("http://a.example{}", path(number));
        let purged = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["purge", "--admin", &admin, &url])
            .output()
            .expect("the binary was built with this test");
        let said = String::from_utf8_lossy(&purged.stdout).into_owned();
        (purged, said)
    }
}

#[test]
fn purge_made_while_a_node_was_away_is_applied_before_it_serves_what_it_has() {
    let mut logged = Logged::start();
    let [purged_file, other] = logged.files_of_c();
    logged.stop_c();
    logged.nodes.wait_for_members(0, 2);
    logged.change(purged_file);
    let (purged, said) = logged.purge(0, purged_file);
    assert!(purged.status.success(), "{said}");
    assert!(said.contains("\nb: purged "), "{said}");
    assert!(
        said.contains("\nc: away; it reads the log before it serves"),
        "{said}"
    );
    assert!(said.contains("\nlog: revision "), "{said}");
    logged.start_c();
    let reply = logged.get(2, purged_file);
    assert_eq!(reply.text(), "changed\n", "{}", reply.head);
    logged.wait_for_log(2);
    logged.nodes.nodes[2].until("applied", |metrics| {
        metrics.count("weir_purge_log_applied_total") == 1
    });
    // what was not purged it has, and validates no more
    logged.nodes.nodes[2].until("in touch", |_| logged.get(2, other).is_hit());
    assert!(logged.get(2, other).body == file(other));
    assert_eq!(
        logged.nodes.nodes[2]
            .metrics()
            .count("weir_purge_log_missed_total"),
        0
    );
    let (purged, said) = logged.purge(1, other);
    assert!(
        purged.status.success() && said.contains("\nc: purged "),
        "{said}"
    );
}

#[test]
fn node_that_cannot_know_what_it_has_missed_validates_what_it_has() {
    let mut logged = Logged::start();
    let [changed, same] = logged.files_of_c();
    logged.stop_c();
    logged.nodes.wait_for_members(0, 2);
    logged.change(changed);
    let put = format!("{{\"key\":\"{DROPPED}\",\"value\":\"{MUCH}\"}}");
    logged.etcd.post("kv/put", &put);
    logged.start_c();
    logged.wait_for_log(2);
    logged.nodes.nodes[2].until("told", |metrics| {
        metrics.count("weir_purge_log_missed_total") == 1
    });
    for _ in 0..2 {
        let reply = logged.get(2, changed);
        assert_eq!(reply.text(), "changed\n", "{}", reply.head);
    }
    let reply = logged.get(2, same);
    assert!(reply.body == file(same), "{}", reply.head);
    for part in ["fwd-status=304", "detail=may-be-purged"] {
        assert!(reply.cache_status().contains(part), "{}", reply.head);
    }
    // once is enough, but for what came within the second
    logged.nodes.nodes[2].until("used again", |_| logged.get(2, same).is_hit());
}

#[test]
fn purge_without_etcd_is_applied_and_says_that_it_is_not_in_the_log() {
    let mut logged = Logged::start();
    let [number, _] = logged.files_of_c();
    logged.etcd.kill();
    logged.change(number);
    let (purged, said) = logged.purge(0, number);
    assert_eq!(purged.status.code(), Some(3), "{said}");
    assert!(said.contains("\nc: purged 1\n"), "{said}");
    assert!(
        said.contains("\nlog: not entered as far as is known: etcd does not answer"),
        "{said}"
    );
    for at in 0..NAMES.len() {
        assert_eq!(logged.get(at, number).text(), "changed\n", "node {at}");
    }
    // nothing waits for it to serve
    logged.etcd.start_again();
    for at in 0..NAMES.len() {
        logged.wait_for_log(at);
    }
    logged.nodes.nodes[1].until("back", |_| logged.purge(1, number).0.status.success());
}

#[test]
fn response_in_flight_since_before_touch_was_lost_is_not_joined() {
    let mut logged = Logged::start();
    let at_c = |slow: &String| chosen_for(&logged.nodes.nodes[0], slow) == "c";
    let mut paths = (0..).map(|number| format!("/slow/{number}"));
    let slow = paths.find(at_c).expect("one of three or so");
    logged.nodes.nginx.file(&slow[1..], &[b'x'; 100_000]);
    let ask = |logged: &Logged| {
        let mut client = RawClient::connect(logged.nodes.nodes[2].address());
        client.send(format!(
            "GET http://a.example{slow} HTTP/1.1\r\nHost: a.example\r\n\r\n"
        ));
        let reply = client.head();
        (client, reply)
    };
    let (_first, reply) = ask(&logged);
    assert!(
        reply.cache_status().contains("fwd=uri-miss"),
        "{}",
        reply.head
    );
    let (_joined, reply) = ask(&logged);
    assert!(reply.is_hit(), "{}", reply.head);
    logged.nodes.nodes[2].wait_for("all purges of the log are applied");
    logged.etcd.kill();
    logged.nodes.nodes[2].wait_for("touch with the log of purges is lost");
    let (_second, reply) = ask(&logged);
    assert!(!reply.is_hit(), "{}", reply.head);
    // what is requested since is shared as always
    let (_joined, reply) = ask(&logged);
    assert!(reply.is_hit(), "{}", reply.head);
}

#[test]
fn node_that_is_restarted_before_it_has_validated_what_it_has_validates_it_then() {
    let mut logged = Logged::start();
    let [number, _] = logged.files_of_c();
    logged.stop_c();
    let dropped = |value: &str| format!("{{\"key\":\"{DROPPED}\",\"value\":\"{value}\"}}");
    logged.etcd.post("kv/put", &dropped(MUCH));
    logged.start_c();
    logged.nodes.nodes[2].until("told", |metrics| {
        metrics.count("weir_purge_log_missed_total") == 1
    });
    logged.wait_for_log(2);
    logged.stop_c();
    // "0": from now on nothing is missed
    logged.etcd.post("kv/put", &dropped("MA=="));
    logged.start_c();
    logged.nodes.nodes[2].until("in touch", |metrics| {
        metrics.count("weir_purge_log_behind") == 0
    });
    assert_eq!(
        logged.nodes.nodes[2]
            .metrics()
            .count("weir_purge_log_missed_total"),
        0
    );
    let reply = logged.get(2, number);
    assert!(
        reply.cache_status().contains("fwd-status=304"),
        "{}",
        reply.head
    );
    logged.nodes.nodes[2].until("used again", |_| logged.get(2, number).is_hit());
}
