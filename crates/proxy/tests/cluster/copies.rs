//! Copies of what another node keeps.

use crate::nodes::Nodes;
use crate::support::Head;
use weir_policy::route::policy::PolicyKind;

/// A response of 20 KiB that may be stored.
fn large(_: &Head, _: &[u8]) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: 20480\r\n\r\n";
    [head.as_bytes(), &[b'x'; 20_480]].concat()
}

impl Nodes {
    fn is_hit(&self, at: usize, path: &str) -> bool {
        let response = self.get(at, path);
        assert_eq!(response.status(), 200);
        let statuses = response.head.all("cache-status").join(", ");
        let own = statuses.rsplit(", ").next().expect("a status");
        own.starts_with("weir;hit")
    }
}

#[test]
fn copies_leave_full_memory_before_what_the_node_keeps() {
    let cluster = Nodes::start(large);
    let full = &cluster.nodes[0];
    full.reload(|config| {
        config.cache.memory = "1MiB".parse().expect("a size");
        config.cache.largest_response = config.cache.memory;
    });
    // three times what it has room for, and then half of that
    let others = cluster
        .paths_of(1)
        .take(60)
        .chain(cluster.paths_of(2).take(60));
    let others: Vec<String> = others.collect();
    let own: Vec<String> = cluster.paths_of(0).take(20).collect();
    // with this policy each node keeps a copy of all that it gets from others
    for node in &cluster.nodes {
        node.reload(|config| config.cluster.policy = PolicyKind::ExtendedLard);
    }
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
