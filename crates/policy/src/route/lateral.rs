//! Where a node sends a request that no stored response answers: to the node that keeps its target,
//! or to the origin.
//!
//! Back-end forwarding of extended LARD (Aron, Druschel, Zwaenepoel: Efficient Support for P-HTTP
//! in Cluster-Based Web Servers. USENIX 1999), without a front end. Its rules:
//!
//! 1. The node whose client asks sends the request to the *owner* of the target, the node that the
//!    policy chooses. The owner alone asks the origin.
//!    With `extended-lard`, a node whose disk is idle keeps a copy of what the owner gives it, and
//!    one whose disk is busy keeps none. In the paper the node of the connection reads from its own
//!    disk; here that would be a second request to the origin, so the choice of the owner has no
//!    handling node.
//! 2. If the owner does not answer as a member does, the next one in rendezvous order is asked, and
//!    after [`NODES_ASKED_MAX`] the origin. No node is asked twice.
//! 3. A request of another node is never sent on to a third one, but for rule 4. So views that
//!    differ cost an origin request, never a loop.
//! 4. An owner that is *joining* asks the *previous owner*, the first in rendezvous order without
//!    it, before the origin: for what that has stored, and for nothing else. That request is
//!    answered from the store alone, so that it ends there. A node that has just asked for the
//!    target does not have it, and is not asked.
//! 5. What nodes hold, as far as their digests say: while the owner is gone, the first in order of
//!    those whose digest has the target is asked in its place; and rule 4 asks one that has it, and
//!    none that has not. Without digests, nothing of this rule holds.
//! 6. A *front end* keeps nothing: it owns no target and makes no copy, and sends a request to the
//!    very node that the policy chooses.
//! 7. A node that is draining owns nothing, and answers what it is asked for. It asks others for
//!    its own clients.
//! 8. With `extended-lard`, the node whose client asks handles the connection. What is on its disk
//!    and not in its memory, or the content of a head in its memory, it reads there while its disk
//!    is idle. While that is busy, it asks
//!    another node for what that has stored, and keeps no copy; that is the lateral fetch of the
//!    paper. A node has it in memory as far as the mapping says. If the target is mapped to no
//!    other node, the first in rendezvous order is asked, unless its digest has it not: that one
//!    reads it, if it must, and so the memory of one node comes to hold it. In the paper the
//!    mapping of the front end does that, which nodes without one do not share; the order they do.
//!    If that is this node, or has it not, one whose digest has it is asked, if it says that its
//!    own disk is idle: digests do not tell memory from disk. The answer does, and corrects the
//!    mapping. A node with so many more requests that it costs more than a read here is not asked.
//!    If no node is, or the one that is asked does not answer with it, it is read here: neither the
//!    origin nor a second node is asked for it.

use crate::now::Tick;
use crate::route::cluster::{HoldsIt, NodeState, Place, TargetKey};
use crate::route::members::Members;
use crate::route::policy::{Costs, Hash, NodeChoice, Policy as _, PolicyKind, RoutedRequest};
use crate::route::why::Why;
use crate::verdict::Handling;
use alloc::vec::Vec;
use core::fmt;
use weir_semantics::{Fwd, Method};

use super::cluster::Node;

/// Nodes that are asked one after the other, before the origin is.
pub const NODES_ASKED_MAX: usize = 2;

/// Whose request it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedBy {
    /// A client of this node.
    Client,
    /// The node at this place.
    Node(Place),
}

/// A request that no stored response answers, and that another node may answer.
#[derive(Clone, Copy)]
pub struct LateralRequest<'a> {
    asked_by: AskedBy,
    failed: &'a [Place],
    left_out: &'a [Place],
    holds: &'a dyn Fn(Place) -> HoldsIt,
}

/// A request for a response that is on the disk of this node and not in its memory.
#[derive(Clone, Copy, Debug)]
pub struct StoredRequest {
    /// The policy of the cluster.
    pub policy: PolicyKind,
    /// Whose it is; `None` if it is of a node that is none of the cluster.
    pub asked_by: Option<AskedBy>,
    /// Its method.
    pub method: Method,
    /// It has the directive `no-cache`: the origin is to be asked.
    pub is_no_cache: bool,
    /// No origin may be asked for it.
    pub is_for_caches_alone: bool,
    /// It has no client.
    pub is_background: bool,
    /// Modules of this node make a variant of what it gets.
    pub has_variant: bool,
}

/// Where a request is sent, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Which node is asked; `None`: the origin.
    pub node: Option<AskedNode>,
    /// Why this one. `None`: no choice was made, since another node made it.
    pub why: Option<Why>,
}

/// Another node that is asked for a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedNode {
    /// Which.
    pub place: Place,
    /// This node keeps what comes, too: the target is requested often, the owner has more than its
    /// share of the requests, or this node is joining and takes over the target.
    pub is_copied: bool,
    /// For what it has stored alone: it answers from its store or not at all.
    pub is_stored_only: bool,
    /// For what this node has on disk: if it does not answer with that, this node reads it.
    pub is_instead_of_read: bool,
}

/// What would be chosen for a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerPreview {
    /// The node that keeps it, whether each node that is asked for it keeps a copy, and why;
    /// `None` if no node takes requests.
    pub owner: Option<(Place, bool, Why)>,
    /// The nodes as the policy sees them, with their costs, by place.
    pub nodes: Vec<(Node, Costs)>,
}

impl AskedNode {
    /// Whether it keeps what it gives, so that what is stored here is a copy
    /// ([`Catalog::admit_copy`](crate::catalog::Catalog::admit_copy)). What this node takes over
    /// while it is joining is its own.
    #[must_use]
    pub const fn keeps_it(&self) -> bool {
        !self.is_stored_only
    }

    /// A node that is asked for what it has or what the origin gives it.
    const fn for_all(place: Place, is_copied: bool) -> Self {
        Self {
            place,
            is_copied,
            is_stored_only: false,
            is_instead_of_read: false,
        }
    }
}

impl<'a> LateralRequest<'a> {
    /// A request that is forwarded, as `handling` says; `None` if no other node is asked for it.
    ///
    /// `is_shared` is `false` if responses to it are known to be for one client each
    /// (hit-for-miss), or a module of this node is called for it: another node would only be a
    /// second hop. So it is if the target was purged a moment ago: another node may not know yet.
    /// `failed` are the nodes that were asked for it before in vain.
    #[must_use]
    pub const fn of(
        handling: Handling,
        asked_by: AskedBy,
        is_shared: bool,
        failed: &'a [Place],
    ) -> Option<Self> {
        let is_cacheable = matches!(
            handling,
            Handling::Forward(
                Fwd::UriMiss | Fwd::VaryMiss | Fwd::Miss | Fwd::Request | Fwd::Stale | Fwd::Partial
            )
        );
        if is_cacheable && is_shared && failed.len() < NODES_ASKED_MAX {
            Some(Self {
                asked_by,
                failed,
                left_out: &[],
                holds: &|_| HoldsIt::Unknown,
            })
        } else {
            None
        }
    }

    /// A request for a response that is on the disk of this node ([`Members::source_of_stored`]);
    /// `None` if it is to be read, whatever other nodes have: where rule 8 does not apply.
    ///
    /// `is_shared` is asked last, for the same as in [`Self::of`].
    #[must_use]
    pub fn instead_of_read(
        stored: &StoredRequest,
        is_shared: impl FnOnce() -> bool,
    ) -> Option<Self> {
        let is_plain = matches!(stored.method, Method::Get | Method::Head)
            && !stored.is_no_cache
            && !stored.is_for_caches_alone
            && !stored.is_background
            && !stored.has_variant;
        let applies = stored.policy == PolicyKind::ExtendedLard
            && stored.asked_by == Some(AskedBy::Client)
            && is_plain
            && is_shared();
        applies.then_some(Self {
            asked_by: AskedBy::Client,
            failed: &[],
            left_out: &[],
            holds: &|_| HoldsIt::Unknown,
        })
    }

    /// The same with what the digests of other nodes say of the target. Few requests need it.
    #[must_use]
    pub fn with_holds(self, holds: &'a dyn Fn(Place) -> HoldsIt) -> Self {
        Self { holds, ..self }
    }

    /// The same without these nodes: they may have what was purged.
    #[must_use]
    pub const fn without(self, left_out: &'a [Place]) -> Self {
        Self { left_out, ..self }
    }

    fn is_out(&self, place: Place) -> bool {
        self.failed.contains(&place) || self.left_out.contains(&place)
    }
}

impl fmt::Debug for LateralRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LateralRequest")
            .field("asked_by", &self.asked_by)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// Which node keeps a target.
#[derive(Clone, Copy, Debug)]
struct Owner {
    place: Place,
    is_copied: bool,
    why: Why,
}

impl Source {
    const fn origin(why: Option<Why>) -> Self {
        Self { node: None, why }
    }

    /// This node reads it, although its disk is busy.
    const fn read() -> Self {
        Self::origin(Some(Why::DiskBusy))
    }
}

impl Members {
    /// Where a request for `target` is sent. `requests` says how many requests of this node are
    /// outstanding at a place; of its own place, how many it serves.
    pub fn source(
        &mut self,
        now: Tick,
        target: TargetKey,
        request: LateralRequest<'_>,
        requests: impl Fn(Place) -> u32,
    ) -> Source {
        let LateralRequest {
            asked_by, failed, ..
        } = request;
        let own = self.own();
        let AskedBy::Client = asked_by else {
            return self.source_as_owner(now, target, request, None, requests);
        };
        self.see(now, &requests, |place| request.is_out(place));
        let Some(owner) = self.owner(now, target, failed.is_empty()) else {
            return Source::origin(Some(Why::AllEjected));
        };
        if owner.why == Why::OthersEjected
            && let Some(place) = self.holder(target, &request)
        {
            self.begin(now, place);
            return Source {
                node: Some(AskedNode::for_all(place, false)),
                why: Some(Why::Holder),
            };
        }
        if owner.place == own {
            return self.source_as_owner(now, target, request, Some(owner.why), requests);
        }
        let is_probe = self.begin(now, owner.place);
        let owner = self.as_asked(owner, is_probe);
        Source {
            node: Some(AskedNode::for_all(owner.place, owner.is_copied)),
            why: Some(owner.why),
        }
    }

    /// Where the response to a client's request is had that is on the disk of this node and not in
    /// its memory: from another node that has it in memory or comes to have it there, or, with no
    /// node, by a read. `None`: nothing decides that. Rule 8.
    pub fn source_of_stored(
        &mut self,
        now: Tick,
        target: TargetKey,
        request: LateralRequest<'_>,
        requests: impl Fn(Place) -> u32,
    ) -> Option<Source> {
        if self.is_disk_busy() != Some(true) {
            return None;
        }
        let own = self.own();
        self.see(now, requests, |place| request.is_out(place));
        let is_idle = |node: &Node, busy: u32| node.miss_pressure < busy;
        let mapped = |place, _: &Node, _| match (request.holds)(place) {
            _ if place == own => HoldsIt::No,
            HoldsIt::No => HoldsIt::No,
            HoldsIt::Yes | HoldsIt::Unknown => HoldsIt::Unknown,
        };
        let stored = |place, node: &Node, busy| match (request.holds)(place) {
            HoldsIt::Yes if place != own && is_idle(node, busy) => HoldsIt::Yes,
            _ => HoldsIt::No,
        };
        let first = first_in_order(now, self, &RoutedRequest::new(target, 0));
        let kept = |place, _: &Node, _| match (request.holds)(place) {
            HoldsIt::Yes | HoldsIt::Unknown if Some(place) == first => HoldsIt::Yes,
            _ => HoldsIt::No,
        };
        let other = self.other_with(now, target, mapped);
        let other = other.or_else(|| self.other_with(now, target, kept));
        let Some(place) = other.or_else(|| self.other_with(now, target, stored)) else {
            return Some(Source::read());
        };
        self.begin(now, place);
        Some(Source {
            node: Some(AskedNode {
                place,
                is_copied: false,
                is_stored_only: true,
                is_instead_of_read: true,
            }),
            why: Some(Why::Lateral),
        })
    }

    /// What [`Members::source`] would say of a client's request, without the nodes that are
    /// `behind` in what was purged. Nothing is noted of it.
    pub fn preview(
        &mut self,
        now: Tick,
        target: TargetKey,
        requests: impl Fn(Place) -> u32,
        behind: &[Place],
    ) -> OwnerPreview {
        self.see(now, requests, |place| behind.contains(&place));
        let request = RoutedRequest::new(target, 0);
        let (view, policy) = self.view();
        let choice = policy.preview(now, &view, &request);
        let owner = choice.and_then(|choice| {
            let is_frequent = policy.is_copied(target);
            let owner = self.owner_of(now, choice, is_frequent, &request)?;
            let owner = self.as_asked(owner, self.is_probed(now, owner.place));
            Some((owner.place, owner.is_copied, owner.why))
        });
        let nodes = self.nodes_with(|place| policy.costs(&view, &request, place));
        OwnerPreview { owner, nodes }
    }

    /// The node that keeps `target`: the one that the policy chooses `first`, then the next in
    /// order.
    fn owner(&mut self, now: Tick, target: TargetKey, is_first: bool) -> Option<Owner> {
        let (view, policy, random) = self.chooser();
        let request = RoutedRequest::new(target, random);
        let choice = if is_first {
            policy.choose(now, &view, &request)?
        } else {
            Hash.choose(now, &view, &request)?
        };
        let (_, policy) = self.view();
        let is_frequent = is_first && policy.is_copied(target);
        self.owner_of(now, choice, is_frequent, &request)
    }

    /// The first in order of the nodes that take requests and whose digest has the target, without
    /// this one.
    fn holder(&self, target: TargetKey, request: &LateralRequest<'_>) -> Option<Place> {
        let (view, _) = self.view();
        let routed = RoutedRequest::new(target, 0);
        let others = view.all_taking().map(|(place, _)| place);
        let others = others.filter(|place| *place != self.own());
        let holders = others.filter(|place| (request.holds)(*place) == HoldsIt::Yes);
        holders.min_by_key(|place| Hash.costs(&view, &routed, *place).total())
    }

    /// One node asks the origin, and others that are to keep it ask that one, the first in order: a
    /// node that has more than its share is relieved by copies, not by misses. What is requested
    /// often is copied before a node has more than its share: a lateral hit costs more.
    fn owner_of(
        &self,
        now: Tick,
        choice: NodeChoice,
        is_frequent: bool,
        request: &RoutedRequest,
    ) -> Option<Owner> {
        let keeps = self.own_state() != NodeState::FrontEnd;
        let is_relieved = keeps && matches!(choice.why, Why::Replica | Why::NextInOrder);
        Some(Owner {
            place: match is_relieved {
                true => first_in_order(now, self, request)?,
                false => choice.place,
            },
            is_copied: is_relieved || keeps && is_frequent,
            why: match choice.why {
                Why::FirstInOrder if keeps && is_frequent => Why::Replica,
                why => why,
            },
        })
    }

    /// The owner as this node asks it, if it is another one: whether this node keeps a copy may
    /// depend on its own disk, and so does why that one is asked.
    fn as_asked(&self, owner: Owner, is_probe: bool) -> Owner {
        let is_busy = self.is_disk_busy().filter(|_| owner.place != self.own());
        Owner {
            is_copied: owner.is_copied || is_busy == Some(false),
            why: match (is_probe, is_busy, owner.why) {
                (true, ..) => Why::Probe,
                (false, Some(false), _) => Why::DiskIdle,
                (false, Some(true), Why::Mapped) => Why::Lateral,
                (false, _, why) => why,
            },
            ..owner
        }
    }

    /// Where this node asks as the owner of `target`: rule 4.
    fn source_as_owner(
        &mut self,
        now: Tick,
        target: TargetKey,
        request: LateralRequest<'_>,
        why: Option<Why>,
        requests: impl Fn(Place) -> u32,
    ) -> Source {
        let LateralRequest {
            asked_by,
            failed,
            holds,
            ..
        } = request;
        let is_first = failed.is_empty();
        if self.own_state() != NodeState::Joining || !is_first {
            return Source::origin(why);
        }
        let own = self.own();
        self.see(now, requests, |place| request.is_out(place));
        // one that is joining has no more than this one, one that is draining has all it had
        self.with_states(|place, state| match state {
            NodeState::In | NodeState::Draining if place != own => NodeState::In,
            _ => NodeState::Gone,
        });
        let previous = first_in_order(now, self, &RoutedRequest::new(target, 0));
        let previous = previous.filter(|place| holds(*place) != HoldsIt::No);
        match self.holder(target, &request).or(previous) {
            Some(place) if asked_by != AskedBy::Node(place) => {
                self.begin(now, place);
                Source {
                    node: Some(AskedNode {
                        place,
                        is_copied: true,
                        is_stored_only: true,
                        is_instead_of_read: false,
                    }),
                    why: Some(Why::PreviousOwner),
                }
            }
            _ => Source::origin(why),
        }
    }
}

/// The first node in the rendezvous order of those that take requests.
fn first_in_order(now: Tick, members: &Members, request: &RoutedRequest) -> Option<Place> {
    let (view, _) = members.view();
    Some(Hash.choose(now, &view, request)?.place)
}
