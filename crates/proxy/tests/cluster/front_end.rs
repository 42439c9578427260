//! A member that keeps nothing, and sends what its clients request to the others.

use crate::nodes::{Nodes, fresh, get};
use weir_measure::{Metric, NotStored};
use weir_proxy::admin::{PurgeCall, PurgeReach};

/// Three nodes, of which the first one is a front end for all.
fn start() -> Nodes {
    let cluster = Nodes::start(fresh);
    for node in &cluster.nodes {
        node.reload(|config| config.cluster.members[0].front_end = true);
    }
    cluster
}

#[test]
fn front_end_stores_nothing_and_the_node_that_keeps_a_target_is_asked_for_it() {
    let cluster = start();
    let mut client = cluster.nodes[0].client();
    for number in (0..20).chain(0..20) {
        let path = format!("/{number}");
        // for each request of one connection a node is chosen
        let response = client.ask(get(&path));
        assert_eq!((response.status(), response.text()), (200, path.clone()));
        let statuses = response.head.all("cache-status").join(", ");
        assert!(statuses.ends_with("detail=on-peer"), "{statuses}");
    }
    assert_eq!(cluster.nodes[0].count(Metric::StoreEntries), 0);
    let kept = [1, 2].map(|at: usize| cluster.nodes[at].count(Metric::StoreEntries));
    assert_eq!(kept.iter().sum::<u64>(), 20);
    assert!(kept.iter().all(|kept| *kept > 2), "{kept:?}");
    for number in 0..20 {
        assert_eq!(cluster.asked(&format!("/{number}")), 1);
    }
}

#[test]
fn no_node_asks_a_front_end() {
    let cluster = start();
    for number in 0..20 {
        let path = format!("/{number}");
        for at in [1, 2] {
            assert_eq!(cluster.get(at, &path).text(), path);
        }
        assert_eq!(cluster.asked(&path), 1);
    }
    assert_eq!(cluster.nodes[0].count(Metric::FirstRequests), 0);
}

#[test]
fn front_end_asks_the_next_node_for_what_a_node_does_not_answer() {
    let mut cluster = start();
    let paths: Vec<String> = (0..20).map(|number| format!("/{number}")).collect();
    for path in &paths {
        assert_eq!(cluster.get(0, path).text(), *path);
    }
    let moved = cluster.nodes[2].count(Metric::StoreEntries);
    let stopped = cluster.nodes.pop().expect("three nodes");
    assert!(stopped.stop().join().expect("no panic"));
    for path in paths.iter().chain(&paths) {
        assert_eq!(cluster.get(0, path).text(), *path);
    }
    let asked: usize = paths.iter().map(|path| cluster.asked(path)).sum();
    assert_eq!(
        asked as u64,
        20 + moved,
        "what moved is requested once more"
    );
    assert_eq!(cluster.nodes[0].count(Metric::StoreEntries), 0);
}

#[test]
fn front_end_stores_nothing_of_what_it_fetches_from_the_origin_itself() {
    let cluster = start();
    let front_end = &cluster.nodes[0];
    let url = "http://a.example/purged".to_owned();
    let purged = front_end.purge_at(PurgeReach::Cluster, PurgeCall::Url(url));
    assert!(purged.expect("purged").is_everywhere());
    // for a while no node is asked for it
    for count in 1..=3 {
        let response = cluster.get(0, "/purged");
        let status = response.head.cache_status().to_owned();
        let expected = "fwd=uri-miss;fwd-status=200;detail=front-end";
        assert!(status.ends_with(expected), "{status}");
        let reason = Metric::ResponsesNotStored(NotStored::FrontEnd);
        front_end.wait_for(reason, count as u64);
        assert_eq!(cluster.asked("/purged"), count);
        assert_eq!(front_end.count(Metric::StoreEntries), 0);
    }
}
