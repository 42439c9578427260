//! The nodes that share what they store, and how a node is chosen for a target.

use crate::config::listener::{Listener, ListenerKind};
use crate::config::route::balancing::{constants_settings, with_constants};
use crate::config::route::mechanism::Mechanism;
use crate::config::route::members_source::MembersSource;
use crate::config::route::own_member::{Mismatch, mismatch};
use crate::config::setting::Setting;
use crate::config::setting::check_range;
use crate::config::setting::invalid::Invalid;
use crate::config::setting::mistakes::Mistakes;
use crate::config::values::byte_size::ByteSize;
use crate::config::values::next_hop_url::{ClearUrl, NextHopUrl};
use crate::config::values::time::span::Span;
use crate::config::values::token_file::TokenFile;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use weir_cluster::{ETCD_PREFIX, Source};
use weir_policy::connections::hand_off::HandOffKind;
use weir_policy::route::NODES_MAX;
use weir_policy::route::policy::PolicyKind;
use weir_semantics::is_node_name;

with_constants! {
    /// The `[cluster]` table.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Cluster {
        /// Which of the members this node is; absent outside a cluster.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub node: Option<String>,
        /// Where the members are listed.
        #[serde(rename = "members")]
        pub source: MembersSource,
        /// What keys in etcd begin with.
        pub etcd_prefix: String,
        /// Where others reach the peer listener of this node, announced in etcd.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub url: Option<NextHopUrl>,
        /// The weight of this node, announced in etcd.
        pub weight: u16,
        /// The file with the secret that members have in common.
        pub secret_file: TokenFile,
        /// How a node is chosen for a target.
        pub policy: PolicyKind,
        /// How a request reaches the node that keeps its target.
        pub mechanism: Mechanism,
        /// How often a connection may be handed over.
        pub hand_off: HandOffKind,
        /// The network device by which clients reach this front end.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub device: Option<String>,
        /// How long the head of a response may take that another node sends.
        pub peer_timeout: Span,
        /// How long this node is joining after its start.
        pub join_time: Span,
        /// How often other nodes are asked how they are.
        pub state_interval: Span,
        /// How often other nodes are asked what they hold.
        pub digest_interval: Span,
        /// The memory for what nodes hold.
        pub digest_memory: ByteSize,
    }
    {
        /// The nodes, this one included.
        #[serde(rename = "member", skip_serializing_if = "Vec::is_empty")]
        pub members: Vec<Member>,
    }
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
    /// It keeps nothing, and sends what its clients request to the others.
    #[serde(default, skip_serializing_if = "is_no")]
    pub front_end: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_no(flag: &bool) -> bool {
    !*flag
}

const fn weight() -> u16 {
    100
}

impl Default for Cluster {
    /// No cluster.
    fn default() -> Self {
        Self {
            node: None,
            source: MembersSource::Config,
            etcd_prefix: ETCD_PREFIX.into(),
            url: None,
            weight: weight(),
            secret_file: TokenFile::Off,
            policy: PolicyKind::ReplicatedHash,
            mechanism: Mechanism::Forwarding,
            hand_off: HandOffKind::Single,
            device: None,
            peer_timeout: Span::from_secs(5),
            join_time: Span::from_secs(60),
            state_interval: Span::from_secs(5),
            digest_interval: Span::from_secs(10),
            digest_memory: ByteSize::from_mib(64),
            preset: None,
            load_factor_pct: None,
            load_low: None,
            load_high: None,
            replica_time: None,
            load_idle: None,
            load_overload: None,
            miss_cost: None,
            disk_busy: None,
            targets_max: None,
            members: Vec::new(),
        }
    }
}

/// The shortest and the longest time for the head of another node.
const PEER_TIMEOUTS: [Span; 2] = [Span::from_millis(10), Span::from_mins(5)];

/// The shortest and the longest time between two questions for the state of a node: what it says
/// counts for three times as long.
const STATE_INTERVALS: [Span; 2] = [Span::from_millis(0), Span::from_secs(10)];

/// The shortest and the longest time between two questions for a digest.
const DIGEST_INTERVALS: [Span; 2] = [Span::from_secs(1), Span::from_hours(24)];

/// The least and the most memory for digests.
const DIGEST_MEMORIES: [ByteSize; 2] = [ByteSize::from_bytes(0), ByteSize::from_gib(64)];

/// The shortest and the longest time in which a node is joining: none, and enough to fill a store.
const JOIN_TIMES: [Span; 2] = [Span::from_millis(0), Span::from_mins(60)];

impl Cluster {
    pub(in crate::config) fn settings() -> Vec<Setting> {
        let default = Self::default();
        let mut settings = vec![
            Setting::new::<String>(
                "cluster.node",
                &[
                    "Which of the members this node is. Without it, and with the members in the configuration, there is no cluster.",
                    "With members from elsewhere a node without a name is the member at the address of its peer listener.",
                ],
            ),
            Setting::new::<MembersSource>(
                "cluster.members",
                &[
                    "Where the members are listed: in `[[cluster.member]]` tables, the same on every node, or elsewhere, where",
                    "changes are noticed. What cannot be read there leaves the members as they are.",
                ],
            )
            .by_default(&default.source),
        ];
        settings.extend(Self::announced_settings());
        settings.extend([
            Setting::new::<TokenFile>(
                "cluster.secret_file",
                &[
                    "File with the secret that the members have in common, as `admin.token_file` has its token. Each node proves",
                    "to the others that it knows it, and never sends it. `\"off\"` is permitted while all members are on the loopback.",
                    "While the secret is changed the file has a second line: another secret that is accepted, too.",
                ],
            )
            .by_default(&default.secret_file),
            Setting::new::<PolicyKind>(
                "cluster.policy",
                &[
                    "Which node keeps the response for a target. All nodes must have the same. With `hash`, `bounded-hash` and",
                    "`replicated-hash` each node computes the same node for a target, without messages; with the last one,",
                    "targets requested often are kept by each node that is asked for them.",
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
            Setting::new::<Span>(
                "cluster.join_time",
                &[
                    "Time after its start in which this node, if there are others, asks the previous owner of a target for what that",
                    "has stored, before it asks the origin: its own store is still to be filled.",
                ],
            )
            .by_default(&default.join_time)
            .within(&JOIN_TIMES[0], &JOIN_TIMES[1]),
        ]);
        settings.extend(Self::mechanism_settings());
        settings.extend(Self::message_settings());
        settings.extend(Self::member_settings());
        settings.extend(constants_settings!("cluster", "node", "nodes"));
        settings
    }

    /// How clients' connections reach the node that answers.
    fn mechanism_settings() -> Vec<Setting> {
        vec![
            Setting::new::<Mechanism>(
                "cluster.mechanism",
                &[
                    "How a request reaches the node that keeps its target. `forwarding`: the node or front end whose client asks",
                    "fetches from the other one. `hand-off`, experimental: a front end hands the client's connection over to the",
                    "node that its first request is for, and the node answers by itself. The same on all members. It takes Linux,",
                    "CAP_NET_ADMIN, nftables, and one address of the service that all members have: docs/hand-off.md.",
                ],
            )
            .by_default(&Mechanism::Forwarding),
            Setting::new::<HandOffKind>(
                "cluster.hand_off",
                &[
                    "How often a connection is handed over, with cluster.mechanism = `hand-off`. `single`: once, and requests for",
                    "other nodes are forwarded. `multiple`: a node moves it on to another one that has the response to a later",
                    "request, at most 8 times at once and then once in a second. The same on all members.",
                ],
            )
            .by_default(&HandOffKind::Single),
            Setting::new::<String>(
                "cluster.device",
                &[
                    "The network device by which clients reach this front end, and it reaches the nodes. For",
                    "cluster.mechanism = `hand-off` alone.",
                ],
            ),
        ]
    }

    /// What each member has.
    fn member_settings() -> Vec<Setting> {
        vec![
            Setting::new::<String>(
                "cluster.member[].name",
                &[
                    "Name of a node: a letter, then letters, digits, `-`, `_` and `.`, at most 64 characters. Which targets a",
                    "node has follows from its name: one that moves to another address keeps them.",
                ],
            ),
            Setting::new::<ClearUrl>(
                "cluster.member[].url",
                &["Where its listener of the mode `peer` is."],
            ),
            Setting::new::<u16>(
                "cluster.member[].weight",
                &["Its share of the targets, relative to the weights of the others."],
            )
            .by_default(&weight())
            .within(&1, &u16::MAX),
            Setting::new::<bool>(
                "cluster.member[].front_end",
                &[
                    "It keeps no targets: each request of its clients that may be stored is sent to the node that keeps the target.",
                    "Its weight does not matter. At least one member must be none.",
                ],
            )
            .by_default(&false),
        ]
    }

    /// What is for etcd alone.
    fn announced_settings() -> Vec<Setting> {
        let default = Self::default();
        vec![
            Setting::new::<String>(
                "cluster.etcd_prefix",
                &[
                    "What the keys of the cluster begin with, if members are listed in etcd. Several clusters in one etcd",
                    "need several.",
                ],
            )
            .by_default(&default.etcd_prefix),
            Setting::new::<ClearUrl>(
                "cluster.url",
                &[
                    "Where the other members reach the peer listener of this node, which announces it in etcd. Without it,",
                    "where that listens.",
                ],
            ),
            Setting::new::<u16>(
                "cluster.weight",
                &["The weight that this node announces in etcd."],
            )
            .by_default(&default.weight)
            .within(&1, &u16::MAX),
        ]
    }

    /// What nodes tell each other beside requests.
    fn message_settings() -> Vec<Setting> {
        let default = Self::default();
        vec![
            Setting::new::<Span>(
                "cluster.state_interval",
                &[
                    "How often each other node is asked whether it answers and in which state it is, and told the state of this",
                    "one, which counts for 30 s. One that does not answer is gone until it does. `\"0s\"`: never, but what is known",
                    "of others comes from requests alone.",
                ],
            )
            .by_default(&default.state_interval)
            .within(&STATE_INTERVALS[0], &STATE_INTERVALS[1]),
            Setting::new::<Span>(
                "cluster.digest_interval",
                &[
                    "How often each other node is asked what it has stored since: its digest, 10 bits a response. The whole is",
                    "asked for once. It is used while the node that keeps a target is gone, and by a node that joins.",
                ],
            )
            .by_default(&default.digest_interval)
            .within(&DIGEST_INTERVALS[0], &DIGEST_INTERVALS[1]),
            Setting::new::<ByteSize>(
                "cluster.digest_memory",
                &[
                    "Memory for the digests of all nodes: 1.25 MB for a million responses of one node. What does not fit is",
                    "refused; with 0 none is asked for, and this node answers others all the same.",
                ],
            )
            .by_default(&default.digest_memory)
            .within(&DIGEST_MEMORIES[0], &DIGEST_MEMORIES[1]),
        ]
    }

    /// Whether this node is in a cluster.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.node.is_some() || self.source != MembersSource::Config
    }

    /// Whether other nodes are asked at intervals how they are.
    #[must_use]
    pub fn has_state_messages(&self) -> bool {
        !self.state_interval.as_duration().is_zero()
    }

    /// Where the members are listed, if not in the configuration.
    #[must_use]
    pub fn followed_source(&self) -> Option<Source> {
        match &self.source {
            MembersSource::Config => None,
            MembersSource::Of(Source::Etcd { endpoints, .. }) => Some(Source::Etcd {
                endpoints: endpoints.clone(),
                prefix: self.etcd_prefix.clone(),
            }),
            MembersSource::Of(source) => Some(source.clone()),
        }
    }

    pub(in crate::config) fn check_ranges(&self, mistakes: &mut Mistakes) {
        mistakes.note(check_range("cluster.weight", &self.weight, &1, &u16::MAX));
        let [shortest, longest] = &JOIN_TIMES;
        let time = &self.join_time;
        mistakes.note(check_range("cluster.join_time", time, shortest, longest));
        let [shortest, longest] = &PEER_TIMEOUTS;
        let time = &self.peer_timeout;
        mistakes.note(check_range("cluster.peer_timeout", time, shortest, longest));
        let [shortest, longest] = &STATE_INTERVALS;
        let interval = &self.state_interval;
        mistakes.note(check_range(
            "cluster.state_interval",
            interval,
            shortest,
            longest,
        ));
        let [shortest, longest] = &DIGEST_INTERVALS;
        let interval = &self.digest_interval;
        mistakes.note(check_range(
            "cluster.digest_interval",
            interval,
            shortest,
            longest,
        ));
        let [least, most] = &DIGEST_MEMORIES;
        let memory = &self.digest_memory;
        mistakes.note(check_range("cluster.digest_memory", memory, least, most));
        mistakes.note(self.constants().check(|key| format!("cluster.{key}")));
    }
}

/// Refuses members that cannot be told apart or reached, a node that is none of them, and peers of
/// whom anyone could be one.
pub(in crate::config) fn check(cluster: &Cluster, listeners: &[Listener]) -> Result<(), Invalid> {
    let peers = |listener: &Listener| listener.mode == ListenerKind::Peer;
    let peer_listener = listeners.iter().position(peers);
    if !cluster.exists() {
        return check_alone(cluster, peer_listener);
    }
    check_members(&cluster.members)?;
    let no_tls = "members of a cluster speak no TLS with each other";
    for (place, member) in cluster.members.iter().enumerate() {
        let key = || format!("cluster.member[{place}].url");
        member.url.refuse_tls(key, no_tls)?;
    }
    if let Some(url) = &cluster.url {
        url.refuse_tls(|| "cluster.url".to_owned(), no_tls)?;
    }
    check_source(cluster)?;
    let Some(listener) = peer_listener else {
        let key = match cluster.node {
            Some(_) => "cluster.node",
            None => "cluster.members",
        };
        return Err(Invalid::new(
            key,
            "other members cannot reach this node: it has no listener for them",
            "add a [[listener]] table with mode = \"peer\" at the address of the member's url",
        ));
    };
    if let MembersSource::Of(Source::Etcd { .. }) = cluster.source {
        check_announced(cluster, &listeners[listener])?;
    }
    if cluster.secret_file == TokenFile::Off {
        if let MembersSource::Of(Source::Services(_)) = cluster.source {
            return Err(Invalid::new(
                "cluster.members",
                "nothing proves to a node that a program at a name from the DNS is a member, wherever the name leads",
                SECRET_HINT,
            ));
        }
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
    check_mechanism(cluster, listeners)?;
    match mismatch(cluster, listeners) {
        Some(Mismatch {
            invalid,
            is_error: true,
        }) => Err(invalid),
        _ => Ok(()),
    }
}

/// The address of the service whose connections are handed over; `None` if none are.
pub(crate) fn service(cluster: &Cluster, listeners: &[Listener]) -> Option<SocketAddrV4> {
    let gateways = listeners.iter();
    let mut gateways = gateways.filter(|listener| listener.mode == ListenerKind::Gateway);
    let (Some(gateway), None) = (gateways.next(), gateways.next()) else {
        return None;
    };
    match gateway.address {
        SocketAddr::V4(address)
            if cluster.mechanism == Mechanism::HandOff
                && !address.ip().is_unspecified()
                && !address.ip().is_loopback()
                && address.port() != 0 =>
        {
            Some(address)
        }
        _ => None,
    }
}

/// Refuses a hand-off that cannot be.
fn check_mechanism(cluster: &Cluster, listeners: &[Listener]) -> Result<(), Invalid> {
    if cluster.mechanism != Mechanism::HandOff {
        return Ok(());
    }
    if cluster.secret_file == TokenFile::Off {
        return Err(Invalid::new(
            "cluster.mechanism",
            "a node that takes connections over speaks for any client, and nothing proves who hands them over",
            SECRET_HINT,
        ));
    }
    if service(cluster, listeners).is_none() {
        return Err(Invalid::new(
            "cluster.mechanism",
            "it is not said which address the service has, whose connections are handed over",
            "use one [[listener]] with mode = \"gateway\", at an IPv4 address that all members have, and a port",
        ));
    }
    check_device(cluster)
}

/// A front end hands connections over, and a node takes them: what a file, the DNS or etcd lists is
/// not known here.
fn check_device(cluster: &Cluster) -> Result<(), Invalid> {
    let mut members = cluster.members.iter();
    let own = members.find(|member| Some(&member.name) == cluster.node.as_ref());
    match own.map(|own| own.front_end) {
        Some(true) if cluster.device.is_none() => Err(Invalid::new(
            "cluster.mechanism",
            "this node is a front end, and hands no connection over without the device by which clients reach it",
            "name the device in cluster.device, or set cluster.mechanism = \"forwarding\" here",
        )),
        Some(false) if cluster.device.is_some() => Err(Invalid::new(
            "cluster.device",
            "no node takes connections of this one over, which is no front end",
            "set front_end = true for this node in the lists of all members, or leave the device away",
        )),
        _ => Ok(()),
    }
}

/// What a valid cluster is probably not meant to be.
pub(in crate::config) fn warnings(cluster: &Cluster, listeners: &[Listener]) -> Vec<Invalid> {
    let mut warnings = Vec::new();
    if !cluster.exists() {
        return warnings;
    }
    warnings.extend(mismatch(cluster, listeners).map(|mismatch| mismatch.invalid));
    if let MembersSource::Of(Source::Addresses(hop)) = &cluster.source
        && cluster.secret_file == TokenFile::Off
    {
        let ip: Option<IpAddr> = hop.host.parse().ok();
        if ip.is_none_or(|ip| !ip.is_loopback()) {
            warnings.push(Invalid::new(
                "cluster.members",
                "without a secret all addresses must be on the loopback: a list with another one is refused",
                SECRET_HINT,
            ));
        }
    }
    let policy = cluster.policy;
    if let PolicyKind::InTurn | PolicyKind::Least | PolicyKind::TwoChoices = policy {
        warnings.push(Invalid::new(
            "cluster.policy",
            format!("`{policy}` chooses a node whatever the target is: no node keeps a target, and each asks others for what these may not have"),
            "use a policy by target, such as \"replicated-hash\"; this one is for the next hops of a route",
        ));
    }
    warnings
}

const SECRET_HINT: &str =
    "name the file with the secret that all nodes have in common in cluster.secret_file";

/// Refuses what cannot be announced in etcd.
fn check_announced(cluster: &Cluster, peer_listener: &Listener) -> Result<(), Invalid> {
    if cluster.node.is_none() {
        return Err(Invalid::new(
            "cluster.members",
            "a node announces itself in etcd by its name, and this one has none",
            "set cluster.node to a name that no other node has",
        ));
    }
    let address = peer_listener.address;
    if cluster.url.is_none() && address.ip().is_unspecified() {
        return Err(Invalid::new(
            "cluster.members",
            format!("{address}, all addresses, is not where others reach this node"),
            "set cluster.url to the URL of its peer listener",
        ));
    }
    let prefix = &cluster.etcd_prefix;
    let is_key = prefix.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_key || prefix.is_empty() || prefix.len() > ETCD_PREFIX_BYTES_MAX {
        return Err(Invalid::new(
            "cluster.etcd_prefix",
            format!("`{prefix}` is not what keys can begin with"),
            "use 1 to 256 printable characters without spaces, such as \"/weir/cluster/\"",
        ));
    }
    Ok(())
}

/// The longest prefix of keys, bytes.
const ETCD_PREFIX_BYTES_MAX: usize = 256;

/// Refuses a node that is not among the members, as far as they are known.
fn check_source(cluster: &Cluster) -> Result<(), Invalid> {
    let node = cluster.node.as_deref();
    if cluster.source != MembersSource::Config {
        if !cluster.members.is_empty() {
            return Err(Invalid::new(
                "cluster.member",
                format!("members are listed by {} already", cluster.source),
                "use [[cluster.member]] tables, or cluster.members",
            ));
        }
        return match node.filter(|node| !is_node_name(node)) {
            None => Ok(()),
            Some(node) => Err(Invalid::new("cluster.node", no_name(node), NAME_HINT)),
        };
    }
    let node = node.unwrap_or_default();
    if !cluster.members.iter().any(|member| member.name == node) {
        return Err(Invalid::new(
            "cluster.node",
            format!("`{node}` is not the name of a member"),
            "use the name of a [[cluster.member]] table, or add one for this node",
        ));
    }
    Ok(())
}

fn no_name(name: &str) -> String {
    format!("`{name}` is not a name for a node")
}

/// As [`is_node_name`] has it.
const NAME_HINT: &str =
    "use a letter, then letters, digits, `-`, `_` and `.`, at most 64 characters";

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
    if !members.is_empty() && members.iter().all(|member| member.front_end) {
        return Err(Invalid::new(
            "cluster.member",
            "no member keeps a target: all are front ends",
            "leave front_end away for the nodes that are to store",
        ));
    }
    if members.len() > NODES_MAX {
        return Err(Invalid::new(
            "cluster.member",
            format!("{} members are more than {NODES_MAX}", members.len()),
            "make several clusters",
        ));
    }
    let (mut names, mut urls) = (BTreeSet::new(), BTreeMap::new());
    for (index, member) in members.iter().enumerate() {
        let key = |of: &str| format!("cluster.member[{index}].{of}");
        if !is_node_name(&member.name) {
            return Err(Invalid::new(key("name"), no_name(&member.name), NAME_HINT));
        }
        if !names.insert(&member.name) {
            return Err(Invalid::new(
                key("name"),
                format!("`{}` is the name of an earlier member already", member.name),
                "give each node a name of its own",
            ));
        }
        if let Some(earlier) = urls.insert(&member.url, &member.name) {
            return Err(Invalid::new(
                key("url"),
                format!("{} is the url of member `{earlier}` already", member.url),
                "give each node its own address and port",
            ));
        }
        check_range(&key("weight"), &member.weight, &1, &u16::MAX)?;
    }
    Ok(())
}
