//! A request at one node: of a client, or of another node for a request there.

use weir_policy::Tick;
use weir_policy::route::{AskedBy, AskedNode, Place};

/// Numbers of requests are never used again.
pub(crate) type RequestId = u64;

#[derive(Debug)]
pub(crate) struct Request {
    /// The node that it is at.
    pub(crate) at: usize,
    pub(crate) target: usize,
    pub(crate) asked_by: AskedBy,
    /// It is answered from the store or not at all.
    pub(crate) is_stored_only: bool,
    /// The request of the node that asks.
    pub(crate) parent: Option<RequestId>,
    /// The nodes that it has come through, this one last.
    pub(crate) way: Vec<usize>,
    /// The oldest version that may answer it, if it is a client's.
    pub(crate) version_min: u64,
    /// Nodes that were asked for it in vain.
    pub(crate) failed: Vec<Place>,
    /// Why it was sent to the origin.
    pub(crate) at_origin: Option<OriginReason>,
    /// It waits for no other request: it did once.
    pub(crate) is_alone: bool,
    /// What became of a response that is on disk and not in memory.
    pub(crate) on_disk: OnDisk,
    pub(crate) stage: Stage,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing was looked up.
    New,
    /// It waits for the response to another request at the same node.
    Following(RequestId),
    /// Where it is sent is to be chosen.
    Choosing,
    /// It is about to be sent there; `None`: to the origin.
    Sending(Option<AskedNode>),
    /// It was sent to a node as another request, since then.
    AtNode {
        node: AskedNode,
        child: RequestId,
        ticket: u64,
        since: Tick,
    },
    /// It was sent to a node that says nothing.
    AtSilentNode { node: AskedNode, since: Tick },
    /// It was sent to the origin.
    AtOrigin { ticket: u64 },
    /// The response is under way.
    Arriving {
        version: u64,
        received: Tick,
        is_kept: bool,
        ticket: u64,
    },
    /// It is over, and the node that asked has not seen that yet.
    Over(Answer),
}

/// A response on the disk of the node whose client asks, while that is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDisk {
    /// There was none, or another node may be asked for it.
    Unread,
    /// Another node is asked for what it has in memory.
    AskedElsewhere,
    /// It is read: the other node gave no response.
    ToBeRead,
}

/// Why a request is sent to the origin, and not to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OriginReason {
    /// The target is held: a purge of it is under way, or the node has just started.
    Held,
    /// This node is the one that asks the origin.
    Owner,
    /// The nodes that may be asked for it were asked, and did not answer.
    NodesAsked,
    /// No other node takes requests, as far as this one knows.
    NoNode,
    /// The node that asks the origin has answered that it cannot reach it.
    OwnerHasNone,
}

/// What a request is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A version, from the store of the node or not.
    Version { version: u64, is_hit: bool },
    /// Nothing is stored, and nothing else was asked for.
    NotStored,
    /// The origin cannot be reached.
    NoOrigin,
    /// The connection was closed.
    Broken,
}
