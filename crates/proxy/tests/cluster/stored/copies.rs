//! Copies of what another node keeps.

use crate::nodes::Nodes;
use crate::support::{Head, Response};
use weir_policy::route::policy::PolicyKind;

/// A response of 20 KiB that may be stored.
fn large(_: &Head, _: &[u8]) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: 20480\r\n\r\n";
    [head.as_bytes(), &[b'x'; 20_480]].concat()
}

impl Nodes {
    /// From now on the first node has room for 40 responses or so.
    fn make_small(&self) {
        self.nodes[0].reload(|config| {
            config.cache.memory = "1MiB".parse().expect("a size");
            config.cache.largest_response = config.cache.memory;
        });
    }

    /// From now on each node keeps a copy of all that it gets from others.
    fn copy_all(&self) {
        for node in &self.nodes {
            node.reload(|config| config.cluster.policy = PolicyKind::ExtendedLard);
        }
    }

    fn is_hit(&self, at: usize, path: &str) -> bool {
        let statuses = statuses(&self.get(at, path));
        statuses.last().expect("a status").starts_with("weir;hit")
    }
}

/// What the caches on the way of a response say, the node that was asked last.
fn statuses(response: &Response) -> Vec<String> {
    assert_eq!(response.status(), 200);
    let all = response.head.all("cache-status").join(", ");
    all.split(", ").map(str::to_owned).collect()
}

#[test]
fn copies_leave_full_memory_before_what_the_node_keeps() {
    let cluster = Nodes::start(large);
    cluster.make_small();
    // three times what it has room for, and then half of that
    let others = cluster
        .paths_of(1)
        .take(60)
        .chain(cluster.paths_of(2).take(60));
    let others: Vec<String> = others.collect();
    let own: Vec<String> = cluster.paths_of(0).take(20).collect();
    cluster.copy_all();
    for path in &others {
        assert!(!cluster.is_hit(0, path), "{path}");
    }
    for path in &own {
        assert!(cluster.is_hit(0, path), "{path}");
    }
    let stay = others.iter().rev().filter(|path| cluster.is_hit(0, path));
    assert!((1..5).contains(&stay.count()));
    for path in own.iter().chain(&others) {
        assert_eq!(cluster.asked(path), 1, "{path}");
    }
}

#[test]
fn copy_is_the_own_of_the_node_that_has_got_it_from_the_origin_after_its_owner_stopped() {
    let mut cluster = Nodes::start(large);
    let lost: Vec<String> = cluster.paths_of(2).take(20).collect();
    let others: Vec<String> = cluster.paths_of(1).take(60).collect();
    cluster.copy_all();
    for path in &lost {
        assert!(!cluster.is_hit(0, path), "{path}");
    }
    let stopped = cluster.nodes.pop().expect("three nodes");
    assert!(stopped.stop().join().expect("no panic"));
    // copies are hits as before; a client that wants none has this node ask for them again
    let anew = lost.iter().filter(|path| {
        assert!(cluster.is_hit(0, path), "{path}");
        let fields = "Host: a.example\r\nCache-Control: no-cache\r\n";
        let request = format!("GET {path} HTTP/1.1\r\n{fields}\r\n");
        let response = cluster.nodes[0].client().ask(request);
        statuses(&response).len() == 1
    });
    let own: Vec<&String> = anew.collect();
    assert!((1..20).contains(&own.len()), "{}", own.len());
    cluster.make_small();
    for path in &others {
        assert!(!cluster.is_hit(0, path), "{path}");
    }
    for path in own {
        assert!(cluster.is_hit(0, path), "{path}");
    }
}
