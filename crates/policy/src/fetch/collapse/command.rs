//! What a request is to do, and the names of groups and followers.

/// A group; no other one of its [`Collapse`](super::Collapse) ever has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId {
    pub(super) place: u32,
    pub(super) serial: u64,
}

/// A follower of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FollowerId {
    /// Its group.
    pub group: GroupId,
    /// Its number among those that ever followed there.
    pub(super) place: u64,
}

/// Whether an in-flight response is the variant for a request (RFC 9111 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection<V> {
    /// It is.
    Selected,
    /// It is another variant; that of the request is this one, by the same `Vary`.
    Other(V),
}

/// What a request is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command<P> {
    /// Forward the request, for the group too.
    Lead(GroupId),
    /// Wait for the next command, and [leave](super::Collapse::leave) after `Read` or by itself.
    Wait(FollowerId),
    /// Read the in-flight response, if that answers it; else the request passes by this group.
    Read(GroupId, P),
    /// The response is stored, or the request may not wait for it any longer: look it up again. If
    /// it does not answer the request, that passes by this group.
    LookUp(GroupId),
    /// The leader failed: forward the request, for the group too.
    TakeOver(GroupId),
    /// Forward the request, for itself only.
    Bypass,
    /// To a leader: no other request waits for the response head any more.
    NotAwaited,
}
