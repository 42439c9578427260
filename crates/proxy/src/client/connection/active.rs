//! What only some connections hold, and only for a time: it is in a box.

use crate::client::hand_off::NodeConnection;
use crate::client::outgoing::Outgoing;
use crate::exchange::state::RequestState;
use crate::log::served::UnsentResponses;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tokio::sync::oneshot;
use tokio::time::Instant;
use weir_net::next_hops::DistinctPeers;
use weir_policy::route::ConnectionHops;
use weir_wire::Arrival;

/// What a connection holds of requests that are not over, and of those that were forwarded.
#[derive(Default)]
pub(super) struct Active {
    /// Bytes read and not yet used: a head in pieces, or what was sent behind one.
    pub(super) unread: Vec<u8>,
    pub(super) outgoing: Outgoing,
    /// Next hops that its requests were sent to.
    pub(super) next_hops: Cell<DistinctPeers>,
    /// Where its requests were sent, by route, once a route looks at that.
    pub(super) hops: Option<Rc<RefCell<ConnectionHops>>>,
    /// `unread` begins with a head that is not whole, and its time limit runs.
    pub(super) partial: Option<Box<PartialHead>>,
    /// Responses whose end the kernel has not accepted yet.
    pub(super) unsent: Option<Box<UnsentResponses>>,
    pub(super) exchange: Option<Box<RequestState>>,
    /// The connection ends once `outgoing` is sent.
    pub(super) is_closing: bool,
    /// Its login is being verified, for the request that `unread` begins with.
    pub(super) login: Option<Box<oneshot::Receiver<()>>>,
    /// The head of the request that it may be handed over with, as it was received.
    pub(super) head: Option<Box<[u8]>>,
    /// What is known of it if it was handed over to this node.
    pub(super) handed: Option<Rc<NodeConnection>>,
}

/// A head that is received in pieces.
pub(super) struct PartialHead {
    /// When its first byte was read.
    pub(super) began: Instant,
    /// Decides when it is parsed again.
    pub(super) arrival: Arrival,
}

impl Active {
    /// Whether nothing is held.
    pub(super) fn is_empty(&mut self) -> bool {
        self.unread.is_empty()
            && self.outgoing.is_empty()
            && self.next_hops.get_mut().is_empty()
            && self.hops.is_none()
            && self.partial.is_none()
            && self.unsent.is_none()
            && self.exchange.is_none()
            && self.login.is_none()
            && self.head.is_none()
            && self.handed.is_none()
            && !self.is_closing
    }
}
