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
    /// One that carries no other request: it may end its connection, and the requests of others
    /// with it.
    Alone,
    /// The same, and it is repeated, as a connection that it shared has
    /// broken. It may have brought that about itself, or any of the others.
    Exclusive,
}

impl ConnectionNeed {
    /// Whether it is that of a request which is repeated.
    #[must_use]
    pub const fn is_fresh(self) -> bool {
        matches!(self, Self::Fresh | Self::Exclusive)
    }

    /// The same of one that is to carry no other request.
    #[must_use]
    pub const fn alone(self) -> Self {
        match self {
            Self::Any | Self::Alone => Self::Alone,
            Self::Fresh | Self::Exclusive => Self::Exclusive,
        }
    }

    /// Whether it carries no other request.
    #[must_use]
    pub const fn is_alone(self) -> bool {
        matches!(self, Self::Alone | Self::Exclusive)
    }
}
