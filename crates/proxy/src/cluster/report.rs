//! What an operator sees of a cluster, as one of its nodes knows it, and of where a request goes.

use crate::cluster::members::Cluster;
use serde::Serialize;
use weir_policy::Now;
use weir_policy::route::policy::Costs;
use weir_policy::route::{
    KnownNode, Node, NodeReport, NodeState, OwnerPreview, PassedOver, Place, TargetKey, Why,
};

/// A cluster as one node knows it. The names are those of the JSON form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClusterReport {
    /// The name of the node that says this; `None` if it is none of the members.
    pub node: Option<String>,
    /// The policy that chooses which node keeps a target.
    pub policy: &'static str,
    /// Where the members are listed; `None` for the configuration.
    pub source: Option<MembersReport>,
    /// What is wrong with this node as a member; `None` if nothing is known to be.
    pub problem: Option<String>,
    /// All members, in the order of their names.
    pub members: Vec<MemberReport>,
}

/// How the source of the members is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MembersReport {
    /// Where members are listed, as `cluster.members` has it.
    pub source: String,
    /// What is wrong with it now: the last good list stays in force.
    pub problem: Option<String>,
    /// How often it did not give a good list.
    pub errors: u64,
    /// How long ago it had the list that is in force, milliseconds; `None` before the first one.
    pub age_ms: Option<u64>,
}

/// The states of members. One that is `to-be-probed` has failed, and has not answered since.
pub(crate) const MEMBER_STATES: [&str; 6] = [
    "joining",
    "in",
    "draining",
    "front-end",
    TO_BE_PROBED,
    "gone",
];

const TO_BE_PROBED: &str = "to-be-probed";

/// A member of a cluster as one node knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemberReport {
    /// Its name.
    pub name: String,
    /// Its peer listener.
    pub url: String,
    /// Its share of the targets, relative to the weights of the others.
    pub weight: u16,
    /// It is the node that says this.
    pub is_own: bool,
    /// `joining`, `in`, `draining`, `front-end`, `to-be-probed` or `gone`.
    pub state: &'static str,
    /// For how long it is still not asked, milliseconds.
    pub gone_for_ms: Option<u64>,
    /// Requests that this node has outstanding there; of the node itself, that it is serving.
    pub outstanding: u32,
    /// How fast it answers requests of this node, microseconds; not what is older than 10 s.
    pub response_time_us: Option<u32>,
    /// Purges and invalidations that it has not been told yet, since it does not answer.
    pub purges_overdue: u64,
    /// Other nodes that say it has not been told all of theirs: this one does not ask it, either.
    pub behind_at: Vec<String>,
    /// It has other nodes keep targets than this one does: their policies, constants, members,
    /// weights or secrets differ.
    pub placement_differs: bool,
    /// What it said of itself last.
    pub report: Option<LoadReport>,
}

/// What a node said of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LoadReport {
    /// Requests that it serves.
    pub outstanding: u32,
    /// Its fetches that wait for an origin, and its reads that wait for a disk.
    pub miss_pressure: u32,
    /// How long ago it said so, milliseconds.
    pub age_ms: u64,
}

/// Where a request for a URL that is not stored here would be sent, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RouteReport {
    /// The URL.
    pub url: String,
    /// The mode of the listeners that a client asks for it.
    pub mode: &'static str,
    /// The node of a cluster that says this.
    pub node: Option<String>,
    /// Each node of the cluster that is asked for it keeps a copy.
    pub is_copied: bool,
    /// The nodes of the cluster, then the next hops of the route, or siblings and parents.
    pub candidates: Vec<CandidateReport>,
    /// Whether the host of the URL is asked itself, where there are parents or siblings:
    /// `fallback`, `never`, `prefer`, `always`.
    pub direct: Option<&'static str>,
}

/// A node or a next hop to which a request could be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CandidateReport {
    /// What it is.
    pub kind: CandidateKind,
    /// The name of a node.
    pub name: Option<String>,
    /// Where it listens.
    pub url: String,
    /// Of a node as [`MemberReport::state`]; of others `in`, or `gone`: it failed, and is not
    /// asked.
    pub state: &'static str,
    /// Its weight.
    pub weight: u16,
    /// Outstanding requests as the policy sees them: of a node, those beyond what it has when idle.
    pub load: u32,
    /// The delay by other requests, in a unit of the policy; `None` if it is infinite.
    pub balancing: Option<u64>,
    /// The delay if it does not hold the response, or lies far in the rendezvous order.
    pub locality: Option<u64>,
    /// The later delay of others.
    pub replacement: Option<u64>,
    /// Why it is chosen, if it is.
    pub chosen: Option<&'static str>,
    /// Why it is not chosen, wherever it stands in the order of the policy: `ejected`, `gone`,
    /// `draining`, `front-end`, `behind` or `at-bound`; `None` if it could be.
    pub passed_over: Option<&'static str>,
}

/// What a candidate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CandidateKind {
    /// A node of the cluster.
    Node,
    /// A next hop of a route.
    NextHop,
    /// A sibling, asked for what it has stored.
    Sibling,
    /// A parent.
    Parent,
}

impl CandidateKind {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::NextHop => "next-hop",
            Self::Sibling => "sibling",
            Self::Parent => "parent",
        }
    }
}

impl MemberReport {
    /// A member of a cluster that the node which says this is not in.
    pub(crate) fn unknown(member: &weir_cluster::Member) -> Self {
        Self {
            name: member.name.clone(),
            url: format!("http://{}", member.hop),
            weight: member.weight.get(),
            is_own: false,
            state: member.state.as_str(),
            gone_for_ms: None,
            outstanding: 0,
            response_time_us: None,
            purges_overdue: 0,
            behind_at: Vec::new(),
            placement_differs: false,
            report: None,
        }
    }
}

/// The state of a node, in a word.
const fn state_word(known: &KnownNode) -> &'static str {
    match known.is_to_be_probed {
        true => TO_BE_PROBED,
        false => known.state.as_str(),
    }
}

impl CandidateReport {
    /// A next hop of a route.
    pub(crate) fn next_hop(url: String, node: &Node, costs: Costs, chosen: Option<Why>) -> Self {
        Self {
            kind: CandidateKind::NextHop,
            name: None,
            url,
            state: node.state.as_str(),
            weight: node.weight.get(),
            load: node.load.parts().div_ceil(1024),
            balancing: costs.balancing.units(),
            locality: costs.locality.units(),
            replacement: costs.replacement.units(),
            chosen: chosen.map(Why::as_str),
            passed_over: match chosen {
                Some(_) => None,
                None => PassedOver::of(node, costs).map(PassedOver::as_str),
            },
        }
    }
}

impl Cluster {
    /// The cluster as this node knows it. `reads_waiting` are reads that wait for its disk.
    pub(crate) fn report(&self, now: Now, reads_waiting: u32) -> ClusterReport {
        let known = self.state().known(now);
        let members = known.into_iter().zip(0..);
        let members = members.map(|((known, outstanding), place)| {
            let place = Place(place);
            let is_own = place == self.own();
            let own_reads = if is_own { reads_waiting } else { 0 };
            let report = known.report.map(|(report, age_ms)| {
                let NodeReport {
                    outstanding,
                    miss_pressure,
                    ..
                } = report;
                LoadReport {
                    outstanding,
                    miss_pressure: miss_pressure.saturating_add(own_reads),
                    age_ms,
                }
            });
            MemberReport {
                name: self.name(place).to_owned(),
                url: format!("http://{}", self.hop(place)),
                weight: self.weight(place),
                is_own,
                state: state_word(&known),
                gone_for_ms: known.ejected_for_ms,
                outstanding,
                response_time_us: known.response_time_us,
                purges_overdue: 0,
                behind_at: Vec::new(),
                placement_differs: self.is_placement_different(place),
                report,
            }
        });
        ClusterReport {
            node: Some(self.name(self.own()).to_owned()),
            policy: self.policy().as_str(),
            source: None,
            problem: None,
            members: members.collect(),
        }
    }

    /// The nodes for a target, and whether each node that is asked for it keeps a copy.
    /// `reads_waiting` are reads that wait for the disk of this one, `behind` the nodes that may
    /// have what was purged.
    pub(crate) fn candidates(
        &self,
        now: Now,
        target: TargetKey,
        reads_waiting: u32,
        behind: &[Place],
    ) -> (Vec<CandidateReport>, bool) {
        let preview = self.state().preview(now, target, reads_waiting, behind);
        let OwnerPreview { owner, nodes } = preview;
        let known = self.state().known(now);
        let nodes = nodes.iter().zip(&known).zip(0..);
        let candidates = nodes.map(|(((node, costs), (known, _)), place)| {
            let place = Place(place);
            let chosen = owner.filter(|(owner, ..)| *owner == place);
            let hop = format!("http://{}", self.hop(place));
            let chosen = chosen.map(|(.., why)| why);
            let as_hop = CandidateReport::next_hop(hop, node, *costs, chosen);
            let is_gone = known.state == NodeState::Gone;
            // it is left out of the policy's view, as one that is gone
            let passed_over = match (is_gone, known.ejected_for_ms) {
                (true, None) => Some(PassedOver::Gone.as_str()),
                (false, _) if behind.contains(&place) => Some(PassedOver::Behind.as_str()),
                _ => as_hop.passed_over,
            };
            CandidateReport {
                kind: CandidateKind::Node,
                name: Some(self.name(place).to_owned()),
                state: state_word(known),
                passed_over,
                ..as_hop
            }
        });
        let is_copied = owner.is_some_and(|(_, is_copied, _)| is_copied);
        (candidates.collect(), is_copied)
    }
}
