//! What becomes of requests between nodes that have different lists of the members: one has learnt
//! of another, which has not learnt of it yet.

use crate::nodes::{Nodes, fresh, get, set_secret};
use weir_measure::Metric;
use weir_proxy::admin::{PurgeCall, PurgeReach};
use weir_proxy::config::{Config, MembersSource};

/// Paths that node c keeps.
const PATHS: usize = 16;

/// Node c does not know node a while `before` is in force there, and does once `after` is.
fn check(cluster: &Nodes, before: impl FnOnce(&Nodes), after: impl FnOnce(&Nodes)) {
    let mut paths: Vec<String> = cluster.paths_of(2).take(PATHS).collect();
    let last = paths.pop().expect("paths");
    let asks = &cluster.nodes[0];
    let asked = asks.count(Metric::PeerRequests);
    before(cluster);
    for (count, path) in (1..).zip(&paths) {
        let response = cluster.get(0, path);
        assert_eq!((response.status(), response.text()), (200, path.clone()));
        assert_eq!(cluster.asked(path), 2, "the origin is asked once more");
        assert_eq!(asks.count(Metric::PeersDeclined), count);
    }
    assert_eq!(asks.count(Metric::PeersFailed), 0, "it is not ejected");
    let asked = asks.count(Metric::PeerRequests) - asked;
    assert!(asked > paths.len() as u64, "the next in order is asked");
    after(cluster);
    let mut client = asks.client();
    assert_eq!(client.ask(get(&last)).text(), last);
    assert_eq!(cluster.asked(&last), 1, "it is asked again at once");
}

#[test]
fn node_that_another_one_does_not_know_yet_asks_the_next_one_and_ejects_none() {
    for has_secret in [false, true] {
        let cluster = Nodes::start(fresh);
        let _folder = has_secret.then(|| set_secret(&cluster));
        check(
            &cluster,
            |cluster| {
                cluster.nodes[2].reload(|config| {
                    config.cluster.members.remove(0);
                });
            },
            |cluster| {
                let members = cluster.members();
                cluster.nodes[2].reload(|config| config.cluster.members = members);
            },
        );
    }
}

#[test]
fn node_that_does_not_know_itself_to_be_a_member_yet_is_not_ejected() {
    for has_secret in [false, true] {
        let cluster = Nodes::start(fresh);
        let _secret = has_secret.then(|| set_secret(&cluster));
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("members.toml");
        let source: MembersSource = format!("file:{}", file.display()).parse().expect("a file");
        let others: String = cluster.members()[..2]
            .iter()
            .map(|member| {
                let (name, url) = (&member.name, &member.url);
                format!("[[member]]\nname = \"{name}\"\nurl = \"{url}\"\n")
            })
            .collect();
        std::fs::write(&file, others).expect("a file");
        let lacking = "no member has the name `c`";
        let alone = format!(
            "cluster: {source}: members 2, none of which is this node ({lacking}): it serves alone"
        );
        check(
            &cluster,
            |cluster| {
                cluster.nodes[2].reload(|config: &mut Config| {
                    config.cluster.members = Vec::new();
                    config.cluster.source = source;
                });
                let node = &cluster.nodes[2];
                node.wait_until_said(&alone, 1);
                // what is purged there is purged there alone
                let unused = PurgeCall::Url("http://a.example/unused".to_owned());
                let report = node.purge_at(PurgeReach::Cluster, unused);
                let report = report.expect("purged here");
                let why = format!(
                    "no other node was told: none of the 2 members is this node: {lacking} (file:"
                );
                let problem = report.problem.unwrap_or_default();
                assert!(problem.starts_with(&why), "{problem}");
            },
            |cluster| {
                let members = cluster.members();
                cluster.nodes[2].reload(|config| {
                    config.cluster.members = members;
                    config.cluster.source = MembersSource::Config;
                });
            },
        );
    }
}
