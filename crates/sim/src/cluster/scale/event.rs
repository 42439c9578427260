//! What happens to a network in the middle of the trace.

/// How long a node that has joined asks the node that kept a target before it, milliseconds: the
/// default of `cluster.join_time`.
pub(super) const JOIN_TIME_MS: u64 = 60_000;

/// One thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Nothing.
    None,
    /// The last node comes, empty, and with it its share of the clients.
    Join,
    /// The last node goes, and its clients ask the others. All notice it at once.
    Death,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Before the event.
    Before,
    /// Since it.
    After,
    /// The node that has joined is like the others.
    Joined,
}
