//! Members that are listed elsewhere than in the configuration, and change under load.

use super::{NAMES, Nodes, under_load, wait_for_more};
use crate::support::{Config, PATIENCE, RawClient, ask};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

impl Nodes {
    /// Waits until the admin interface of node number `at` says `part` of the cluster, and returns
    /// all that it says.
    #[track_caller]
    pub(super) fn wait_for_cluster(&self, at: usize, part: &str) -> String {
        let until = Instant::now() + PATIENCE;
        let mut admin = RawClient::connect(self.nodes[at].admin);
        loop {
            let text = ask(&mut admin, "GET", "/cluster").expect(200).text();
            if text.contains(part) {
                return text;
            }
            assert!(Instant::now() < until, "never `{part}`: {text}");
        }
    }

    /// Waits until node number `at` has so many members.
    #[track_caller]
    pub(super) fn wait_for_members(&self, at: usize, members: usize) {
        let wanted = members as u64;
        self.nodes[at].until("so many members", |metrics| {
            metrics.count("weir_cluster_members") == wanted
        });
    }
}

/// The file with these members.
pub(super) fn file_text(members: &[(&str, SocketAddr)]) -> String {
    let mut text = String::new();
    for (name, address) in members {
        let _infallible = writeln!(
            text,
            "[[member]]\nname = \"{name}\"\nurl = \"http://{address}\""
        );
    }
    text
}

/// Replaces the file at once: no reader sees a part of it.
pub(super) fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).expect("a file");
    std::fs::rename(&new, path).expect("the same folder");
}

/// Nodes whose members are in a file, which is not there yet.
fn start_with_file() -> (Nodes, PathBuf, tempfile::TempDir) {
    start_with_file_and(|_, config| config)
}

/// The same with more settings, by the name of each.
pub(super) fn start_with_file_and(
    more: impl Fn(&str, Config) -> Config,
) -> (Nodes, PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("members.toml");
    let source = format!("{:?}", format!("file:{}", path.display()));
    let nodes =
        Nodes::start_listed(|name, config| more(name, config.set("cluster.members", &source)));
    (nodes, path, folder)
}

#[test]
fn file_of_members_that_changes_under_load_fails_no_request() {
    let (nodes, path, _folder) = start_with_file();
    // without members each node serves alone
    assert_eq!(nodes.check_files(0), 0);
    replace(&path, &file_text(&nodes.members));
    for (at, name) in NAMES.iter().enumerate() {
        nodes.wait_for_members(at, 3);
        // the node has found itself by the address of its listener
        nodes.wait_for_cluster(at, &format!("node {name}, policy hash"));
    }
    let clients = [nodes.nodes[0].address(), nodes.nodes[1].address()];
    let failed = under_load(&clients, |count| {
        for members in [
            &nodes.members[..2],
            &nodes.members,
            &nodes.members[..2],
            &nodes.members,
        ] {
            wait_for_more(count, 100);
            replace(&path, &file_text(members));
            for at in 0..2 {
                nodes.wait_for_members(at, members.len());
            }
            wait_for_more(count, 100);
        }
    });
    assert!(failed.is_empty(), "{} requests failed", failed.len());
    nodes.wait_for_members(2, 3);
    assert!(nodes.check_files(2) > 0);
}

#[test]
fn file_that_cannot_be_read_leaves_the_members_as_they_are() {
    let (mut nodes, path, _folder) = start_with_file();
    replace(&path, &file_text(&nodes.members));
    for at in 0..NAMES.len() {
        nodes.wait_for_members(at, 3);
    }
    let good = file_text(&nodes.members);
    let errors = |nodes: &Nodes| {
        let metrics = nodes.nodes[0].metrics();
        metrics.count("weir_member_source_errors_total")
    };
    for (bad, problem) in [
        (
            good.clone() + "weight = 0\n",
            "line 10, column 10: the weight 0",
        ),
        (
            good.clone() + &good,
            "is the name of an earlier member already",
        ),
        (String::new(), "it lists no member"),
    ] {
        let before = errors(&nodes);
        replace(&path, &bad);
        let text = nodes.wait_for_cluster(0, problem);
        assert_eq!(text.lines().count(), 6, "{text}");
        assert!(errors(&nodes) > before, "it is counted");
        assert!(nodes.check_files(0) > 0, "the others are asked");
        nodes.nodes[0].wait_for("the members stay as they are");
    }
    std::fs::remove_file(&path).expect("it is there");
    nodes.wait_for_cluster(0, "No such file");
    assert!(nodes.check_files(0) > 0, "the others are asked");
    replace(&path, &good);
    nodes.nodes[0].wait_for("good again");
    nodes.wait_for_members(0, 3);
    assert_eq!(
        nodes.nodes[0].metrics().count("weir_peer_failures_total"),
        0
    );
}
