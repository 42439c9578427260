//! Where a request that no stored response answers is sent: to the node that keeps its target, or
//! to the origin.

use crate::cluster::purges::ClusterPurges;
use crate::cluster::{Cluster, node_health};
use crate::config::Mode;
use crate::exchange::next_hop::route_request;
use crate::exchange::state::RequestState;
use crate::log::client::ForPeers;
use crate::request::judge::key_of;
use crate::worker::core::Worker;
use std::sync::Arc;
use weir_measure::Metric;
use weir_net::http::NextHopStream;
use weir_net::next_hops::HopKey;
use weir_policy::now::Tick;
use weir_policy::route::{
    AskedBy, AskedNode, HoldsIt, LateralRequest, NodeKey, Place, Source, StoredRequest, TargetKey,
    Why,
};
use weir_policy::verdict::FROM_DISK;
use weir_policy::{Handling, RefuseReason, Secret};
use weir_semantics::{
    FieldLine, PEER_FIELD, PeerReport, PeerRequest, Target, has_detail, is_hit, lines_named,
};

/// Another node as the next hop of a request.
#[derive(Clone)]
pub(crate) struct PeerSource {
    cluster: Arc<Cluster>,
    node: AskedNode,
    target: TargetKey,
}

impl PeerSource {
    /// Whether another node may have what is not stored here, for a request that is refused because
    /// it may not reach an origin.
    pub(crate) fn may_have(exchange: &RequestState) -> bool {
        let refused = Handling::Refused(RefuseReason::OnlyIfCached);
        let is_own_client = exchange.client.facts().listener.peers == ForPeers::No;
        exchange.tx.verdict().handling == refused
            && exchange.tx.is_for_caches()
            && exchange.settings.cluster().is_some()
            && is_own_client
            && exchange.modules.is_none()
    }

    /// The node to ask for an exchange, of those that are not in `failed`, and why; no node: the
    /// origin.
    pub(crate) fn of(exchange: &RequestState, failed: &[NodeKey]) -> (Option<Self>, Option<Why>) {
        let (peer, why) = Self::choose(exchange, failed).unwrap_or_default();
        if let Some(why) = why {
            let reason = Metric::NodeChoices(route_request::label(why));
            exchange.worker.counters().inc(reason);
        }
        (peer, why)
    }

    /// `None` if no node is looked at.
    fn choose(exchange: &RequestState, failed: &[NodeKey]) -> Option<(Option<Self>, Option<Why>)> {
        let cluster = exchange.settings.cluster()?;
        let asked_by = asked_by(exchange, &cluster)?;
        let handling = exchange.tx.verdict().handling;
        let is_shared = is_shared(exchange);
        let failed = cluster.places_of(failed);
        let asks = LateralRequest::of(handling, asked_by, is_shared, &failed)?;
        let (state, now) = (cluster.state(), exchange.worker.now());
        let choose = |target, asks: LateralRequest<'_>, reads_waiting| {
            (target, state.source(now, target, asks, reads_waiting))
        };
        let (target, source) = with_knowledge(exchange, &cluster, asks, choose);
        Some((Self::chosen(&cluster, target, &source), source.why))
    }

    /// The node to ask for a response that is on the disk of this one and not in its memory, and
    /// why; no node: it is to be read. `None` if no node is looked at.
    pub(crate) fn instead_of_read(exchange: &RequestState) -> Option<(Option<Self>, Why)> {
        let cluster = exchange.settings.cluster()?;
        let request = exchange.tx.request();
        let stored = StoredRequest {
            policy: cluster.policy(),
            asked_by: asked_by(exchange, &cluster),
            method: request.method,
            is_no_cache: request.directives.no_cache,
            is_for_caches_alone: exchange.tx.is_for_caches_alone(),
            is_background: exchange.background,
            has_variant: exchange.variant.is_some(),
        };
        let asks = LateralRequest::instead_of_read(&stored, || is_shared(exchange))?;
        let (state, now) = (cluster.state(), exchange.worker.now());
        let choose = |target, asks: LateralRequest<'_>, reads_waiting| {
            let source = state.source_of_stored(now, target, asks, reads_waiting)?;
            Some((target, source))
        };
        let (target, source) = with_knowledge(exchange, &cluster, asks, choose)?;
        let why = source.why?;
        let reason = Metric::NodeChoices(route_request::label(why));
        exchange.worker.counters().inc(reason);
        Some((Self::chosen(&cluster, target, &source), why))
    }

    fn chosen(cluster: &Arc<Cluster>, target: TargetKey, source: &Source) -> Option<Self> {
        source.node.map(|node| Self {
            cluster: Arc::clone(cluster),
            node,
            target,
        })
    }

    /// Where to connect.
    pub(crate) fn hop(&self) -> &HopKey {
        self.cluster.hop(self.node.place)
    }

    /// Its place in the cluster.
    pub(crate) fn place(&self) -> Place {
        self.node.place
    }

    /// Which node it is.
    pub(crate) fn key(&self) -> NodeKey {
        self.cluster.key(self.node.place)
    }

    /// It has said nothing since then, and why that matters. If messages about states are sent, it
    /// is asked how it is, and that decides: it may wait for an origin, and clients choose what
    /// they request.
    pub(crate) fn silent(&self, worker: &Worker, why: &str, since: Tick) {
        let settings = worker.settings();
        if settings.config.cluster.has_state_messages() {
            let name = self.cluster.name(self.node.place);
            settings.membership.to_ask.add(name);
        } else {
            self.failed(worker, why, Some(since));
        }
    }

    /// It did not answer as a member does, and why; since when it was silent, if that is all.
    pub(crate) fn failed(&self, worker: &Worker, why: &str, silent_since: Option<Tick>) {
        let (log, now) = (&worker.shared.module_log, worker.now());
        let node = (&*self.cluster, self.node.place);
        node_health::failed(log, now, node, (why, silent_since));
    }

    /// A request is about to be sent to it on `hop`, and is outstanding until that is dropped.
    pub(crate) fn ask(&self, worker: &Worker, hop: &mut NextHopStream) -> LateralFetch {
        hop.hold(Box::new(self.cluster.state().ask(self.node.place)));
        LateralFetch {
            began_us: worker.network().clock().us(),
            nonce: self.cluster.nonce(),
            source: self.clone(),
        }
    }
}

/// The node that was chosen for a request before it is forwarded: a choice is counted, and may
/// change the next one, so that there is one for a request.
pub(crate) struct ChosenNode {
    node: Option<PeerSource>,
    why: Option<Why>,
    /// Of which request it was chosen.
    handling: Handling,
}

impl ChosenNode {
    /// Chooses it.
    pub(crate) fn of(exchange: &RequestState) -> Self {
        let (node, why) = PeerSource::of(exchange, &[]);
        Self {
            node,
            why,
            handling: exchange.tx.verdict().handling,
        }
    }

    /// That which was chosen for `exchange` before, or another one if that is another request now.
    pub(crate) fn take(exchange: &RequestState) -> (Option<PeerSource>, Option<Why>) {
        let chosen = exchange.chosen_node.take().filter(|chosen| {
            chosen.handling == exchange.tx.verdict().handling && is_shared(exchange)
        });
        match chosen {
            Some(chosen) => (chosen.node, chosen.why),
            None => PeerSource::of(exchange, &[]),
        }
    }

    /// Its place in the cluster; `None` if the origin is asked from here.
    pub(crate) fn place(&self) -> Option<Place> {
        self.node.as_ref().map(PeerSource::place)
    }

    /// What decides whether the connection moves there with the request; `None` if the origin is
    /// asked from here.
    pub(crate) fn for_move(&self, exchange: &RequestState) -> Option<NodeForMove> {
        let PeerSource { cluster, node, .. } = self.node.as_ref()?;
        Some(NodeForMove {
            place: node.place,
            is_copied: node.is_copied,
            holds: holds(exchange, cluster)(node.place),
            is_mapped: matches!(self.why, Some(Why::Mapped | Why::Lateral | Why::Holder)),
        })
    }
}

/// A chosen node, to which the connection of a request may move.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeForMove {
    /// Its place in the cluster.
    pub(crate) place: Place,
    /// This node keeps what it sends, too.
    pub(crate) is_copied: bool,
    /// Whether its digest has the response.
    pub(crate) holds: HoldsIt,
    /// The policy of this node has the target as mapped to it.
    pub(crate) is_mapped: bool,
}

/// A request to another node.
pub(crate) struct LateralFetch {
    source: PeerSource,
    /// As [`weir_net::clock::Clock::us`] has it.
    began_us: u64,
    /// What the response is to be proved for.
    nonce: String,
}

impl LateralFetch {
    /// Whether this node keeps what comes: else it is sent to those that wait for it, and the other
    /// node alone keeps it.
    pub(crate) const fn is_kept(&self) -> bool {
        self.source.node.is_copied
    }

    /// Whether the other node keeps what it gives.
    pub(crate) const fn brings_copy(&self) -> bool {
        self.source.node.keeps_it()
    }

    /// Whether the other node may have what was purged.
    pub(crate) fn is_behind(&self, purges: &ClusterPurges) -> bool {
        purges.is_any_behind(Arc::as_ptr(&self.source.cluster).addr())
            && purges.is_behind(self.source.cluster.name(self.source.node.place))
    }

    /// Whether the other node may wait for another request, and that for this one: not for what is
    /// stored alone.
    pub(crate) const fn may_wait(&self) -> bool {
        !self.is_stored_only()
    }

    /// Whether the other node is asked for what it has stored alone.
    pub(crate) const fn is_stored_only(&self) -> bool {
        self.source.node.is_stored_only
    }

    /// Appends the field line of its request to the head of that, which is whole but for its end.
    pub(crate) fn seal_request(&self, mode: Mode, head: &mut Vec<u8>) {
        let PeerSource { cluster, node, .. } = &self.source;
        cluster.seal_request(node.place, mode.as_str(), &self.nonce, head);
    }

    /// Takes what the node says of itself from the head of its response.
    pub(crate) fn take_report(
        &self,
        worker: &Worker,
        (status, fields): (u16, &[FieldLine<'_>]),
    ) -> LateralAnswer {
        let cluster = &self.source.cluster;
        let place = self.source.node.place;
        let Some(report) = cluster.report_in(place, &self.nonce, (status, fields)) else {
            return LateralAnswer::Stranger;
        };
        let status_line = lines_named(fields, "cache-status").last();
        let is_from_disk = status_line.is_some_and(|line| has_detail(line, FROM_DISK.0));
        let is_for_memory = self.source.node.is_instead_of_read;
        let hit = status_line.and_then(is_hit);
        let hit = hit.map(|hit| hit && !(is_for_memory && is_from_disk));
        let us = worker.network().clock().us().saturating_sub(self.began_us);
        let of_target = (self.source.target, hit);
        let (log, node) = (&worker.shared.module_log, (&**cluster, place));
        node_health::answered(log, worker.now(), node, (us, &report), of_target);
        match report {
            PeerReport {
                is_unlisted: true, ..
            } => LateralAnswer::Declined(Decline::Unlisted),
            PeerReport { is_own: true, .. } => LateralAnswer::Declined(Decline::NoResponse),
            _ => LateralAnswer::Usable,
        }
    }
}

/// Why another node or a sibling has no response for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decline {
    /// It has none that it may give: others may lack it, too.
    NoResponse,
    /// It does not know yet that this node is a member: others may.
    Unlisted,
}

/// What the head of a response to a request to another node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LateralAnswer {
    /// The response of the origin, or a stored one.
    Usable,
    /// The node's own: it has no response, for a reason that may hold for it alone.
    Declined(Decline),
    /// Not that of a member, or of one that takes this node for a stranger.
    Stranger,
}

/// The other nodes that may have what was purged: they are asked for nothing.
pub(crate) fn places_behind(purges: &ClusterPurges, cluster: &Arc<Cluster>) -> Vec<Place> {
    if !purges.is_any_behind(Arc::as_ptr(cluster).addr()) {
        return Vec::new();
    }
    let others = cluster.other_places();
    let is_behind = |place: &Place| purges.is_behind(cluster.name(*place));
    others.filter(is_behind).collect()
}

/// Whether another node may be asked for it: responses are not known to be for one client each, no
/// module of this node is called, and the target was not purged a moment ago.
fn is_shared(exchange: &RequestState) -> bool {
    let (shared, now) = (&exchange.worker.shared, exchange.worker.now());
    exchange.modules.is_none()
        && !shared.collapsed.is_uncollapsible(now, exchange.key)
        && !shared.cluster_purges.is_held(exchange.key)
}

/// Calls `choose` with the hash of the target, what is known of the other nodes, and the reads that
/// wait for the disk of this one.
fn with_knowledge<T>(
    exchange: &RequestState,
    cluster: &Arc<Cluster>,
    asks: LateralRequest<'_>,
    choose: impl FnOnce(TargetKey, LateralRequest<'_>, u32) -> T,
) -> T {
    let (shared, request) = (&exchange.worker.shared, &exchange.request);
    let target = target_of(exchange);
    let holds = holds(exchange, cluster);
    let behind = places_behind(&shared.cluster_purges, cluster);
    let asks = asks.with_holds(&holds).without(&behind);
    let hashed = TargetKey(key_of(request.mode, &target, cluster.target_secret()).0);
    choose(hashed, asks, shared.reads_waiting())
}

fn target_of(exchange: &RequestState) -> Target<'_> {
    let request = &exchange.request;
    Target {
        scheme: request.scheme,
        host: &request.host,
        port: request.port,
        path_and_query: request.path_and_query(),
    }
}

/// Whether the nodes have the target, as their digests say.
fn holds(exchange: &RequestState, cluster: &Cluster) -> impl Fn(Place) -> HoldsIt {
    move |place| {
        let target = target_of(exchange);
        let key_of = |secret: &Secret| key_of(exchange.request.mode, &target, secret);
        let digests = &exchange.worker.shared.digests;
        digests.holds(cluster.name(place), key_of)
    }
}

/// Whose request it is; `None` if it is of a node that is none of the cluster now.
fn asked_by(exchange: &RequestState, cluster: &Cluster) -> Option<AskedBy> {
    if exchange.client.facts().listener.peers == ForPeers::No {
        return Some(AskedBy::Client);
    }
    let fields = exchange.request.fields();
    let line = lines_named(&fields, PEER_FIELD).next()?;
    let place = cluster.place_of(PeerRequest::read(line)?.node)?;
    Some(AskedBy::Node(place))
}
