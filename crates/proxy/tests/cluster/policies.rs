//! What the policies of the papers look at in live nodes: miss pressure, and what `Cache-Status` of
//! an answer says.

use crate::nodes::{Nodes, fresh, get};
use crate::support::{Response, ScriptedOrigin};
use weir_measure::{Metric, RouteChoice};
use weir_policy::route::policy::PolicyKind;
use weir_proxy::admin::{PurgeCall, PurgeReach};

/// A cluster whose node a has this policy, and of which each node keeps one of these paths.
fn start(policy: PolicyKind) -> (Nodes, [String; 3]) {
    let cluster = Nodes::start(fresh);
    let paths = [0, 1, 2].map(|at| cluster.path_of(at));
    forget(&cluster, 0);
    cluster.nodes[0].reload(|config| {
        config.cluster.policy = policy;
        config.cluster.disk_busy = Some(1);
    });
    (cluster, paths)
}

/// Node number `at` loses what it has stored.
fn forget(cluster: &Nodes, at: usize) {
    let purged = cluster.nodes[at].purge_at(PurgeReach::ThisNode, PurgeCall::All);
    purged.expect("no disk");
}

/// What both nodes say of a response.
fn statuses(response: &Response) -> String {
    response.head.all("cache-status").join(", ")
}

/// How often node a has chosen for this reason.
fn chosen(cluster: &Nodes, why: RouteChoice) -> u64 {
    cluster.nodes[0].count(Metric::NodeChoices(why))
}

/// Node a chooses for this reason next; what it answers.
#[track_caller]
fn check(cluster: &Nodes, path: &str, why: RouteChoice) -> Response {
    let before = chosen(cluster, why);
    let response = cluster.get(0, path);
    assert_eq!((response.status(), response.text()), (200, path.to_owned()));
    assert_eq!(chosen(cluster, why), before + 1, "{why:?}");
    response
}

#[test]
fn node_whose_disk_is_busy_fetches_laterally_and_keeps_a_copy_when_it_is_idle() {
    let (cluster, [own, _, path]) = start(PolicyKind::ExtendedLard);
    let node = &cluster.nodes[0];
    let silent = ScriptedOrigin::new();
    let url = format!("http://{}", silent.address());
    node.reload(|config| config.routes[0].next_hops = vec![url.parse().expect("a URL")]);
    // one fetch waits for the origin, which is all that may
    let mut client = node.client();
    client.send(get(&own));
    let mut hop = silent.accept();
    hop.read_head();
    check(&cluster, &path, RouteChoice::NotMapped);
    for _ in 0..2 {
        let response = check(&cluster, &path, RouteChoice::Lateral);
        assert!(statuses(&response).ends_with("detail=on-peer"));
        assert_eq!(node.count(Metric::StoreEntries), 0);
    }
    hop.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nCache-Control: no-store\r\n\r\nown");
    assert_eq!(client.read_response().text(), "own");
    let copied = check(&cluster, &path, RouteChoice::DiskIdle);
    assert!(statuses(&copied).ends_with(";stored"), "{:?}", copied.head);
    let hit = statuses(&cluster.get(0, &path));
    assert!(hit.contains("weir;hit"), "{hit}");
    assert_eq!(chosen(&cluster, RouteChoice::DiskIdle), 1);
    assert_eq!(cluster.asked(&path), 1);
    silent.expect_untouched();
}

#[test]
fn answer_of_a_node_corrects_what_a_front_end_takes_it_to_hold() {
    let (cluster, [_, _, path]) = start(PolicyKind::ExtendedLard);
    for node in &cluster.nodes {
        node.reload(|config| config.cluster.members[0].front_end = true);
    }
    // the node has it, and has said so
    check(&cluster, &path, RouteChoice::NotMapped);
    check(&cluster, &path, RouteChoice::Mapped);
    forget(&cluster, 2);
    // it says that it had to fetch it, and then that it has it again
    check(&cluster, &path, RouteChoice::Mapped);
    check(&cluster, &path, RouteChoice::NotMapped);
    check(&cluster, &path, RouteChoice::Mapped);
    assert_eq!(cluster.asked(&path), 2);
}

#[test]
fn target_stays_with_its_node_that_has_lost_it_with_lard() {
    for policy in [PolicyKind::Lard, PolicyKind::LardR] {
        let (cluster, [_, _, path]) = start(policy);
        for node in &cluster.nodes {
            node.reload(|config| config.cluster.members[0].front_end = true);
        }
        check(&cluster, &path, RouteChoice::NotMapped);
        forget(&cluster, 2);
        for _ in 0..3 {
            check(&cluster, &path, RouteChoice::Mapped);
        }
        assert_eq!(cluster.asked(&path), 2, "{policy}");
    }
}
