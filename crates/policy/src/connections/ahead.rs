//! Whether a connection is opened before anybody asks for it.
//!
//! Worth its price where setting up is dear and requests come in bursts: the first of a burst then
//! finds a connection. The price is connections that nobody uses, at a next hop that may be short
//! of them: so it is off unless asked for, and done only for next hops that were used lately.

use crate::now::{Now, Tick};

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AheadRules {
    /// Idle connections to have ready to one next hop; 0: opening ahead is off.
    pub ready: usize,
    /// A next hop was used lately if it was within so many milliseconds.
    pub lately_ms: u64,
    /// After a failure none is opened ahead for so many milliseconds.
    pub rest_ms: u64,
}

/// What is known of a next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AheadDemand {
    /// Connections to it that are idle or being opened ahead.
    pub ready: usize,
    /// When a request last went to it, if one did.
    pub used: Option<Tick>,
    /// When opening one ahead last failed, if it did.
    pub failed: Option<Tick>,
    /// One more would be kept ([`super::IdleConnections::has_room`]).
    pub has_room: bool,
}

/// Why none is opened ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotAhead {
    /// Nobody wants it.
    Off,
    /// Enough are ready.
    Enough,
    /// No request went there lately.
    NotUsedLately,
    /// It failed a moment ago.
    FailedLately,
    /// Another idle one would have to be closed for it.
    NoRoom,
}

impl NotAhead {
    /// The reason as a word for logs and counters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Enough => "enough",
            Self::NotUsedLately => "not-used-lately",
            Self::FailedLately => "failed-lately",
            Self::NoRoom => "no-room",
        }
    }
}

/// Whether to open one more connection ahead.
///
/// # Errors
///
/// The first reason against it, in the order of [`NotAhead`].
pub fn judge_ahead(rules: &AheadRules, demand: &AheadDemand, now: Now) -> Result<(), NotAhead> {
    let within =
        |tick: Option<Tick>, ms: u64| tick.is_some_and(|tick| now.tick.ms_since(tick) < ms);
    if rules.ready == 0 {
        Err(NotAhead::Off)
    } else if demand.ready >= rules.ready {
        Err(NotAhead::Enough)
    } else if !within(demand.used, rules.lately_ms) {
        Err(NotAhead::NotUsedLately)
    } else if within(demand.failed, rules.rest_ms) {
        Err(NotAhead::FailedLately)
    } else if !demand.has_room {
        Err(NotAhead::NoRoom)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_semantics::Timestamp;

    const RULES: AheadRules = AheadRules {
        ready: 2,
        lately_ms: 1000,
        rest_ms: 300,
    };
    const WANTED: AheadDemand = AheadDemand {
        ready: 1,
        used: Some(Tick(5000)),
        failed: None,
        has_room: true,
    };

    fn check(demand: AheadDemand, ms: u64, expected: Result<(), NotAhead>) {
        let now = Now {
            wall: Timestamp(0),
            tick: Tick(ms),
        };
        assert_eq!(judge_ahead(&RULES, &demand, now), expected, "{demand:?}");
        let off = AheadRules { ready: 0, ..RULES };
        assert_eq!(judge_ahead(&off, &demand, now), Err(NotAhead::Off));
    }

    #[test]
    fn preconnect_stops_at_the_configured_ready_count() {
        check(WANTED, 5000, Ok(()));
        check(
            AheadDemand { ready: 2, ..WANTED },
            5000,
            Err(NotAhead::Enough),
        );
    }

    #[test]
    fn preconnect_requires_a_recently_used_next_hop() {
        check(WANTED, 5999, Ok(()));
        check(WANTED, 6000, Err(NotAhead::NotUsedLately));
        let never = AheadDemand {
            used: None,
            ..WANTED
        };
        check(never, 5000, Err(NotAhead::NotUsedLately));
    }

    #[test]
    fn preconnect_pauses_after_a_failed_set_up() {
        let failed = AheadDemand {
            failed: Some(Tick(5000)),
            ..WANTED
        };
        check(failed, 5299, Err(NotAhead::FailedLately));
        check(failed, 5300, Ok(()));
    }

    #[test]
    fn preconnect_is_refused_without_room_for_an_idle_connection() {
        let full = AheadDemand {
            has_room: false,
            ..WANTED
        };
        check(full, 5000, Err(NotAhead::NoRoom));
    }
}
