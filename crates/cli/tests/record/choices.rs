//! Why a node and a next hop were chosen: the trace has the words of the access log.

use crate::support::{Config, Nginx, Weir};
use crate::{Client, LOCATIONS, only, record_with, wait_for};
use serde_json::Value;
use std::net::SocketAddr;

/// Of so many targets, both nodes have some: one has all of them once in 2^39.
const FILES: usize = 40;

fn node(name: &str, origin: &str, members: &str) -> Config {
    Config::gateway(&[origin])
        .listener("127.0.0.1:0", "peer")
        .set("cluster.node", &format!("{name:?}"))
        .set("cluster.policy", "\"hash\"")
        .set("cluster.join_time", "\"0s\"")
        // each row is one of the client's requests
        .set("cluster.digest_memory", "\"0B\"")
        .set("cluster.state_interval", "\"0s\"")
        .set("cluster.member", members)
}

fn member(name: &str, address: SocketAddr) -> String {
    format!("{{ name = \"{name}\", url = \"http://{address}\" }}")
}

#[test]
fn row_has_the_reasons_of_the_access_log_for_its_node_and_next_hop() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let nginx = Nginx::start(LOCATIONS);
    for number in 0..FILES {
        nginx.file(&format!("{number}"), b"x");
    }
    // the port of the other one is known once it listens
    let unknown = SocketAddr::from(([127, 0, 0, 1], 9));
    let origin = nginx.origin();
    let config = node("a", &origin, &format!("[{}]", member("a", unknown)));
    let arguments = ["--access-log", "access.log"];
    let mut a = record_with(&config, folder.path(), &arguments);
    let of_a = member("a", a.peer_listeners[0]);
    let members = format!("[{of_a}, {}]", member("b", unknown));
    let b = Weir::serve(&node("b", &origin, &members));
    let members = format!("[{of_a}, {}]", member("b", b.peer_listeners[0]));
    a.rewrite(&node("a", &origin, &members).text());
    a.ask("POST", "/reload").expect(200);

    let mut client = Client::new(&a, "a.example");
    for number in 0..FILES {
        for _ in 0..2 {
            let reply = client.get(&format!("/hour/{number}"), "");
            assert_eq!(reply.status(), 200);
        }
    }
    wait_for(&a, 2 * FILES as u64);
    assert_eq!(a.stop().code(), Some(0));
    let log = std::fs::read_to_string(a.file("access.log")).expect("a log");
    let rows = only(folder.path());
    assert_eq!((rows.len(), log.lines().count()), (2 * FILES, 2 * FILES));
    let mut found = Vec::new();
    for (row, line) in rows.iter().zip(log.lines()) {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let choices = (row.node_choice.as_deref(), row.next_hop_choice.as_deref());
        let logged = (
            line["node_choice"].as_str(),
            line["next_hop_choice"].as_str(),
        );
        assert_eq!(choices, logged, "{line}");
        found.push(choices);
    }
    for expected in [
        // it has a copy
        (None, None),
        // the other node has it
        (Some("first-in-order"), None),
        // it is the one that has it, and asks the origin
        (Some("first-in-order"), Some("in-turn")),
    ] {
        assert!(found.contains(&expected), "{expected:?}: {found:?}");
    }
}
