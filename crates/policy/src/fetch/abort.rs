//! Whether a fetch continues without a reader.
//!
//! PROXIM (INFOCOM 1999) measured both simple answers on a modem pool with 11 % of its transfers
//! aborted: a proxy that always continues fetched 18 % *more* than clients without a proxy, more
//! than its cache saved. One that always stops saves bytes, but with HTTP/1.1 must close the
//! connection, and there connections are worth more than data. Squid decides by three numbers
//! ([`AbortPolicy::Squid`]). [`AbortPolicy::Value`] weighs in bytes:
//!
//! ```text
//! go on if   again x saved + new connection  >  still to come
//!
//! again           the chance that it is asked for again while it would be stored (Popularity)
//! saved           what that next request would not fetch because we went on: if the part is kept and can be completed
//!                 later (a strong validator), no more than what is still to come; if not, all of it
//! new connection  what it costs to open the connection that stopping closes: its set-up time x the rate
//! ```
//!
//! So a fetch whose part can be kept stops, unless a further request is nearly certain, or so few
//! bytes are missing that the connection is worth more. A fetch whose part would be lost is
//! completed if a further request is likely enough. Either is within the budget of background
//! bytes, and if little is left nothing is weighed but that.

use super::popularity::Chance;
use weir_semantics::words;

/// The facts that decide whether a fetch without readers continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortPolicy {
    /// Never.
    Stop,
    /// Always, whatever it costs, if it is for the store.
    Finish,
    /// Squid's `quick_abort_min`, `quick_abort_max`, `quick_abort_pct`, looked at in this order:
    /// finish if less than `min_bytes` are still to come; else stop if more than `max_bytes` are;
    /// else finish if more than `pct` percent have been received; else stop. A response whose
    /// length is not known is stopped.
    Squid {
        /// [`u64::MAX`] is Squid's `-1 KB`: always finish, whether the length is known or not.
        min_bytes: u64,
        /// With the same value as `min_bytes`, as by default, `pct` decides for that very remainder
        /// only.
        /// [`u64::MAX`]: no remainder is too large, `pct` decides.
        max_bytes: u64,
        /// Percent, 0 to 100; 100: never finish for that.
        pct: u8,
    },
    /// If the bytes that are probably saved exceed those still to come; see above.
    Value {
        /// If no more than this is still to come, go on, if the background budget allows.
        little_bytes: u64,
    },
}

impl AbortPolicy {
    /// Squid's defaults: 16 KB, 16 KB, 95 %. Squid's KB are 1024 bytes.
    pub const SQUID: Self = Self::Squid {
        min_bytes: 16 * 1024,
        max_bytes: 16 * 1024,
        pct: 95,
    };

    /// The default: by value; 16 KiB are little. That is Squid's number, and a quarter of the
    /// default read-ahead: what the next hop may have sent before it learns that we have closed.
    pub const VALUE: Self = Self::Value {
        little_bytes: 16 * 1024,
    };

    /// Which of the policies it is, without its numbers.
    #[must_use]
    pub const fn kind(&self) -> AbortKind {
        match self {
            Self::Stop => AbortKind::Stop,
            Self::Finish => AbortKind::Finish,
            Self::Squid { .. } => AbortKind::Squid,
            Self::Value { .. } => AbortKind::Value,
        }
    }
}

crate::choice! {
    /// A policy by its name, without its numbers.
    pub enum AbortKind {
        /// [`AbortPolicy::Value`]: judge what it is worth.
        Value = "value",
        /// [`AbortPolicy::Stop`]: stop at once.
        Stop = "stop",
        /// [`AbortPolicy::Finish`]: go on to the end.
        Finish = "finish",
        /// [`AbortPolicy::Squid`]: Squid's three limits in Squid's order.
        Squid = "squid",
    }
}

impl From<AbortKind> for AbortPolicy {
    /// The policy with its default numbers.
    fn from(kind: AbortKind) -> Self {
        match kind {
            AbortKind::Value => Self::VALUE,
            AbortKind::Stop => Self::Stop,
            AbortKind::Finish => Self::Finish,
            AbortKind::Squid => Self::SQUID,
        }
    }
}

impl Default for AbortPolicy {
    fn default() -> Self {
        Self::VALUE
    }
}

/// A fetch without readers, and what is known about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadFetch {
    /// Bytes of the content that are here.
    pub received: u64,
    /// Length of the content, if it is known.
    pub complete_length: Option<u64>,
    /// What comes is kept: there is room for it, and its target was not purged meanwhile.
    pub is_kept: bool,
    /// The chance that it is requested again.
    pub again: Chance,
    /// If the fetch stops, what is here stays, is served, and can be completed later.
    pub part_is_kept: bool,
    /// What opening a new connection is worth in bytes: its set-up time x the rate; 0 if unknown,
    /// or if stopping does not close one.
    pub new_connection_bytes: u64,
    /// What the background budget permits now ([`Background::free`](super::Background::free)).
    pub background_free_bytes: u64,
}

/// What happens to a fetch without readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AbortDecision {
    /// It continues in the background.
    Continue(ContinueReason),
    /// It is stopped.
    Stop(StopReason),
}

words! {
    /// Why a fetch continues.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ContinueReason {
        /// The configuration continues all fetches.
        Always = "go-on-always",
        /// Few bytes are missing.
        LittleLeft = "go-on-little-left",
        /// More than Squid's percentage has arrived.
        MostReceived = "go-on-most-received",
        /// The expected saving exceeds the missing bytes.
        WorthIt = "go-on-worth-it",
    }
}

words! {
    /// Why a fetch is stopped.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum StopReason {
        /// The configuration stops all fetches.
        Always = "stop-always",
        /// The number of missing bytes is unknown.
        LengthUnknown = "stop-length-unknown",
        /// More than Squid's maximum is missing.
        MuchLeft = "stop-much-left",
        /// Less than Squid's percentage has arrived.
        LittleReceived = "stop-little-received",
        /// The expected saving does not exceed the missing bytes.
        NotWorthIt = "stop-not-worth-it",
        /// It would pay, but the background budget is too small now.
        NoBudget = "stop-no-budget",
        /// It will not be stored, and it has no reader.
        NotKept = "stop-not-kept",
    }
}

impl AbortDecision {
    /// The decision and its reason as a word for logs and counters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Continue(why) => why.as_str(),
            Self::Stop(why) => why.as_str(),
        }
    }
}

/// Whether the fetch continues under `policy`. No policy continues one that has no use now or
/// later.
#[must_use]
pub fn judge(policy: &AbortPolicy, unread: &UnreadFetch) -> AbortDecision {
    if !unread.is_kept {
        return AbortDecision::Stop(StopReason::NotKept);
    }
    match *policy {
        AbortPolicy::Stop => AbortDecision::Stop(StopReason::Always),
        AbortPolicy::Finish => AbortDecision::Continue(ContinueReason::Always),
        AbortPolicy::Squid {
            min_bytes,
            max_bytes,
            pct,
        } => by_quick_abort(unread, min_bytes, max_bytes, pct),
        AbortPolicy::Value { little_bytes } => by_value(unread, little_bytes),
    }
}

fn by_quick_abort(unread: &UnreadFetch, min_bytes: u64, max_bytes: u64, pct: u8) -> AbortDecision {
    if min_bytes == u64::MAX {
        return AbortDecision::Continue(ContinueReason::Always);
    }
    let Some(size) = unread.complete_length else {
        return AbortDecision::Stop(StopReason::LengthUnknown);
    };
    let remaining = size.saturating_sub(unread.received);
    if remaining < min_bytes {
        AbortDecision::Continue(ContinueReason::LittleLeft)
    } else if remaining > max_bytes {
        AbortDecision::Stop(StopReason::MuchLeft)
    } else if u128::from(unread.received) * 100 > u128::from(size) * u128::from(pct) {
        AbortDecision::Continue(ContinueReason::MostReceived)
    } else {
        AbortDecision::Stop(StopReason::LittleReceived)
    }
}

fn by_value(unread: &UnreadFetch, little_bytes: u64) -> AbortDecision {
    let Some(size) = unread.complete_length else {
        return AbortDecision::Stop(StopReason::LengthUnknown);
    };
    let remaining = size.saturating_sub(unread.received);
    let saved = if unread.part_is_kept { remaining } else { size };
    let gain = unread.again.of_bytes(saved);
    let why = if remaining <= little_bytes {
        ContinueReason::LittleLeft
    } else if gain.saturating_add(unread.new_connection_bytes) > remaining {
        ContinueReason::WorthIt
    } else {
        return AbortDecision::Stop(StopReason::NotWorthIt);
    };
    if remaining > unread.background_free_bytes {
        return AbortDecision::Stop(StopReason::NoBudget);
    }
    AbortDecision::Continue(why)
}

#[cfg(test)]
mod tests;
