//! The secret of a cluster is changed node by node, in three steps.

use crate::nodes::{Nodes, fresh};
use crate::purges::purge_url;
use crate::support::span;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use tempfile::TempDir;
use weir_measure::{Metric, PeerRefusal};
use weir_proxy::admin::PurgeReach;
use weir_proxy::config::TokenFile;

const OLD: &str = "an-old-secret-of-the-nodes";
const NEW: &str = "a-new-secret-of-the-nodes";

/// Gives node number `at` these secrets.
fn set_secrets(cluster: &Nodes, folder: &TempDir, at: usize, lines: &[&str]) {
    let file = secret_file(folder, at, &lines.join("\n"));
    let node = &cluster.nodes[at];
    node.reload(|config| config.cluster.secret_file = TokenFile::At(file));
}

/// A file of node number `at` with this text.
fn secret_file(folder: &TempDir, at: usize, text: &str) -> PathBuf {
    let file = folder.path().join(format!("secret-{at}"));
    fs::write(&file, text).expect("a file");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("ours");
    file
}

fn refused(cluster: &Nodes) -> u64 {
    let nodes = cluster.nodes.iter();
    let counts = nodes.map(|node| node.count(Metric::PeersRefused(PeerRefusal::NotProved)));
    counts.sum()
}

/// Every node takes every other one for a member: in messages about states, in requests and in
/// purges.
fn check(cluster: &Nodes, step: &str) {
    for node in &cluster.nodes {
        let sent = node.count(Metric::PeerStateMessages);
        node.wait_for_at_least(Metric::PeerStateMessages, sent + 4);
        let report = node.control().cluster().expect("a cluster");
        for member in &report.members {
            assert_eq!(member.state, "in", "{step}: {}", member.name);
        }
    }
    for (at, node) in cluster.nodes.iter().enumerate() {
        let path = format!("/{step}/{at}").replace(' ', "-");
        for other in 0..3 {
            assert_eq!(cluster.get(other, &path).text(), path, "{step}");
        }
        let purged = purge_url(node, &path, PurgeReach::Cluster);
        assert!(purged.is_everywhere(), "{step}: {purged:?}");
        let failed = [Metric::PeerStateFailures, Metric::PeersFailed];
        assert_eq!(failed.map(|metric| node.count(metric)), [0, 0], "{step}");
    }
}

#[test]
fn secret_is_changed_node_by_node_without_a_refusal_and_the_old_one_is_of_no_use_then() {
    let cluster = Nodes::start(fresh);
    let folder = tempfile::tempdir().expect("a folder");
    for at in 0..3 {
        set_secrets(&cluster, &folder, at, &[OLD]);
    }
    for node in &cluster.nodes {
        node.reload(|config| config.cluster.state_interval = span("50ms"));
    }
    check(&cluster, "before");
    let before = refused(&cluster);
    for (step, lines) in [
        ("both, the old one first", &[OLD, NEW][..]),
        ("both, the new one first", &[NEW, OLD]),
        ("the new one", &[NEW]),
    ] {
        for at in 0..3 {
            set_secrets(&cluster, &folder, at, lines);
            check(&cluster, &format!("{step}, node {at}"));
        }
    }
    assert_eq!(refused(&cluster), before);
    let disagreeing = cluster.nodes.iter().filter(|node| {
        let report = node.control().cluster().expect("a cluster");
        report.members.iter().any(|member| member.placement_differs)
    });
    assert_eq!(disagreeing.count(), 0);
    // what a node that has the old one alone sends is of no use
    set_secrets(&cluster, &folder, 0, &[OLD]);
    let why = "its proof is not made with the secret of this node";
    cluster.nodes[1].wait_until_said(&format!("refused node a from 127.0.0.1: {why}"), 1);
    let answer = purge_url(&cluster.nodes[0], "/x", PurgeReach::Cluster);
    assert!(!answer.is_everywhere(), "{answer:?}");
}

#[test]
fn file_with_what_is_no_secret_changes_nothing_and_is_named_with_line_and_column() {
    let cluster = Nodes::start(fresh);
    let folder = tempfile::tempdir().expect("a folder");
    for at in 0..3 {
        set_secrets(&cluster, &folder, at, &[OLD]);
    }
    let node = &cluster.nodes[0];
    for (text, place) in [
        (format!("{NEW}\n\n"), "line 2, column 1: "),
        (format!("\n{OLD}\n"), "line 1, column 1: "),
        (format!("{NEW}\n{OLD}\n{NEW}x\n"), "line 3, column 1: "),
    ] {
        let file = secret_file(&folder, 0, &text);
        let refused = node.try_reload(|config| config.cluster.secret_file = TokenFile::At(file));
        let refused = refused.expect_err("no secrets");
        assert!(refused.contains(place), "{refused}");
        // the node has the old one
        let purged = purge_url(&cluster.nodes[1], "/x", PurgeReach::Cluster);
        assert!(purged.is_everywhere(), "{purged:?}");
    }
}
