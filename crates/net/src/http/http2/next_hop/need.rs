//! Which connections a request may be sent on.

/// Which connections a request may be sent on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionNeed {
    /// Any that has room for it, or a new one.
    #[default]
    Any,
    /// One that is new, or was heard of just now: the request is repeated, as a connection has
    /// failed it.
    Fresh,
    /// One that carries no other request: it is repeated, as a connection that it shared has
    /// broken. It may have brought that about itself, or any of the others.
    Exclusive,
}

impl ConnectionNeed {
    /// Whether it is that of a request which is repeated.
    #[must_use]
    pub const fn is_fresh(self) -> bool {
        !matches!(self, Self::Any)
    }
}
