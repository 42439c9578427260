//! A connection in the cluster.

use crate::hit_ratio::keys::NumberedRequest;
use crate::world::Nanos;
use weir_policy::route::{Load, Place};

/// A connection; when it ends, the next one takes its memory.
#[derive(Debug, Default)]
pub(super) struct Connection {
    /// Its next request that is not chosen for, in the sequence.
    pub(super) next: usize,
    /// Behind its last one.
    pub(super) end: usize,
    /// The node that handles it; none behind a relay.
    pub(super) handling: Option<Place>,
    /// What the client has sent together.
    pub(super) batch: Vec<ChosenRequest>,
    /// Which of the batch is served.
    pub(super) served: usize,
    /// When the batch was sent.
    pub(super) batch_at: Nanos,
    /// When the request that is served reached its node.
    pub(super) asked_at: Nanos,
    /// What ends with its next event.
    pub(super) stage: Stage,
    /// It has begun and not ended.
    pub(super) is_open: bool,
    /// None of its requests has been served yet.
    pub(super) is_new: bool,
}

/// A request with the node that it is given to.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChosenRequest {
    pub(super) request: NumberedRequest,
    pub(super) place: Place,
    /// Whether that node keeps what it reads for it.
    pub(super) is_kept: bool,
    /// Its part of the load of that node, until it is done.
    pub(super) share: Load,
}

/// A step at a station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// A relaying front end has set it up.
    Accepted,
    /// The node has read the request.
    #[default]
    Asked,
    /// The node's disk has read the file.
    Read,
    /// The node has sent the response, to the client or to what passes it on.
    Sent,
    /// The node that handles the connection, or the front end, has passed it on.
    PassedOn,
}

impl Connection {
    /// The request that is served.
    pub(super) fn current(&self) -> ChosenRequest {
        self.batch[self.served]
    }

    /// Whether the response under way is the last one.
    pub(super) fn is_last(&self) -> bool {
        self.served + 1 == self.batch.len() && self.next == self.end
    }
}
