//! The nodes that share what they store, and how a node is chosen for a target.

use crate::config::listener::{Listener, ListenerKind};
use crate::config::setting::Setting;
use crate::config::setting::check_range;
use crate::config::setting::invalid::Invalid;
use crate::config::values::next_hop_url::NextHopUrl;
use crate::config::values::span::Span;
use crate::config::values::token_file::TokenFile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_policy::route::NODES_MAX;
use weir_policy::route::policy::PolicyKind;
use weir_semantics::{NODE_NAME_BYTES_MAX, is_node_name};

/// The `[cluster]` table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cluster {
    /// Which of the members this node is; absent outside a cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The file with the secret that members have in common.
    pub secret_file: TokenFile,
    /// How a node is chosen for a target.
    pub policy: PolicyKind,
    /// How long the head of a response may take that another node sends.
    pub peer_timeout: Span,
    /// The nodes, this one included.
    #[serde(rename = "member", skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
}

/// One `[[cluster.member]]` table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its peer listener.
    pub url: NextHopUrl,
    /// Its share of the targets, relative to the others' weights.
    #[serde(default = "weight")]
    pub weight: u16,
}

const fn weight() -> u16 {
    100
}

impl Default for Cluster {
    /// No cluster.
    fn default() -> Self {
        Self {
            node: None,
            secret_file: TokenFile::Off,
            policy: PolicyKind::ReplicatedHash,
            peer_timeout: Span::from_secs(5),
            members: Vec::new(),
        }
    }
}

/// The shortest and the longest time for the head of another node.
const PEER_TIMEOUTS: [Span; 2] = [Span::from_millis(10), Span::from_mins(5)];

impl Cluster {
    pub(in crate::config) fn settings() -> Vec<Setting> {
        let default = Self::default();
        vec![
            Setting::new::<String>(
                "cluster.node",
                &[
                    "Which of the members this node is. Without it there is no cluster. Members are `[[cluster.member]]` tables,",
                    "the same on every node.",
                ],
            ),
            Setting::new::<TokenFile>(
                "cluster.secret_file",
                &[
                    "File with the secret that the members have in common, as `admin.token_file` has its token. Each node proves",
                    "to the others that it knows it, and never sends it. `\"off\"` is permitted while all members are on the loopback.",
                ],
            )
            .by_default(&default.secret_file),
            Setting::new::<PolicyKind>(
                "cluster.policy",
                &[
                    "Which node keeps the response for a target. All nodes must have the same. With `hash`, `bounded-hash` and",
                    "`replicated-hash` they agree without a word; with the last one, targets requested often are kept by",
                    "each node that is asked for them.",
                ],
            )
            .by_default(&default.policy),
            Setting::new::<Span>(
                "cluster.peer_timeout",
                &[
                    "Time that another node has for the head of its response, of which it may need most for the origin.",
                    "Then the next node in order is asked, and after that the origin.",
                ],
            )
            .by_default(&default.peer_timeout)
            .within(&PEER_TIMEOUTS[0], &PEER_TIMEOUTS[1]),
            Setting::new::<String>(
                "cluster.member[].name",
                &[
                    "Name of a node: a letter, then letters, digits, `-`, `_` and `.`, at most 64 characters. Which targets a",
                    "node has follows from its name: one that moves to another address keeps them.",
                ],
            ),
            Setting::new::<NextHopUrl>(
                "cluster.member[].url",
                &["Where its listener of the mode `peer` is."],
            ),
            Setting::new::<u16>(
                "cluster.member[].weight",
                &["Its share of the targets, relative to the weights of the others."],
            )
            .by_default(&weight())
            .within(&1, &u16::MAX),
        ]
    }

    pub(in crate::config) fn check_ranges(&self) -> Result<(), Invalid> {
        let [shortest, longest] = &PEER_TIMEOUTS;
        check_range(
            "cluster.peer_timeout",
            &self.peer_timeout,
            shortest,
            longest,
        )
    }
}

/// Refuses members that cannot be told apart or reached, a node that is none of them, and peers of
/// whom anyone could be one.
pub(in crate::config) fn check(cluster: &Cluster, listeners: &[Listener]) -> Result<(), Invalid> {
    let peers = |listener: &Listener| listener.mode == ListenerKind::Peer;
    let peer_listener = listeners.iter().position(peers);
    let Some(node) = &cluster.node else {
        return check_alone(cluster, peer_listener);
    };
    check_members(&cluster.members)?;
    let is_own = |member: &Member| member.name == *node;
    if !cluster.members.iter().any(is_own) {
        return Err(Invalid::new(
            "cluster.node",
            format!("`{node}` is not the name of a member"),
            "use the name of a [[cluster.member]] table, or add one for this node",
        ));
    }
    let Some(listener) = peer_listener else {
        return Err(Invalid::new(
            "cluster.node",
            "other members cannot reach this node: it has no listener for them",
            "add a [[listener]] table with mode = \"peer\" at the address of the member's url",
        ));
    };
    if cluster.secret_file == TokenFile::Off {
        let address = listeners[listener].address;
        if !address.ip().is_loopback() {
            return Err(Invalid::new(
                format!("listener[{listener}].address"),
                format!("other machines can reach {address}, and any of them could be a member"),
                "name the secret of the cluster in cluster.secret_file, or use a loopback address",
            ));
        }
        let is_remote = |member: &Member| member.url.host.ip().is_none_or(|ip| !ip.is_loopback());
        if let Some(index) = cluster.members.iter().position(is_remote) {
            return Err(Invalid::new(
                format!("cluster.member[{index}].url"),
                format!(
                    "{} is not on the loopback, and nothing would prove to it that this node is a member",
                    cluster.members[index].url
                ),
                "name the secret of the cluster in cluster.secret_file",
            ));
        }
    }
    Ok(())
}

fn check_alone(cluster: &Cluster, peer_listener: Option<usize>) -> Result<(), Invalid> {
    if !cluster.members.is_empty() {
        return Err(Invalid::new(
            "cluster.member",
            "there are members, and it is not said which one this node is",
            "set cluster.node to the name of one of them",
        ));
    }
    match peer_listener {
        None => Ok(()),
        Some(index) => Err(Invalid::new(
            format!("listener[{index}].mode"),
            "a peer listener is for the members of a cluster, and there is none",
            "set cluster.node and add [[cluster.member]] tables, or use another mode",
        )),
    }
}

fn check_members(members: &[Member]) -> Result<(), Invalid> {
    if members.len() > NODES_MAX {
        return Err(Invalid::new(
            "cluster.member",
            format!("{} members are more than {NODES_MAX}", members.len()),
            "make several clusters",
        ));
    }
    let (mut names, mut urls) = (BTreeMap::new(), BTreeMap::new());
    for (index, member) in members.iter().enumerate() {
        let key = |of: &str| format!("cluster.member[{index}].{of}");
        if !is_node_name(&member.name) {
            return Err(Invalid::new(
                key("name"),
                format!("`{}` is not a name for a node", member.name),
                format!(
                    "use a letter, then letters, digits, `-`, `_` and `.`, at most {NODE_NAME_BYTES_MAX} characters"
                ),
            ));
        }
        if let Some(earlier) = names.insert(&member.name, index) {
            return Err(Invalid::new(
                key("name"),
                format!("`{}` is the name of member {earlier} already", member.name),
                "give each node a name of its own",
            ));
        }
        if let Some(earlier) = urls.insert(&member.url, index) {
            return Err(Invalid::new(
                key("url"),
                format!("{} is the url of member {earlier} already", member.url),
                "give each node its own address and port",
            ));
        }
        check_range(&key("weight"), &member.weight, &1, &u16::MAX)?;
    }
    Ok(())
}
