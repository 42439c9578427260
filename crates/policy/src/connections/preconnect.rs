//! Preconnecting: whether to open a connection before a request needs it.
//!
//! It pays where set-up is slow and requests come in bursts: the first request of a burst then
//! finds an idle connection. It costs unused connections at a next hop that may be short of them.
//! So it is off by default, and applies only to recently used next hops.

use crate::now::{Now, Tick};
use weir_semantics::words;

/// How many connections to open ahead of requests, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreconnectRules {
    /// Idle connections to have ready to one next hop; 0: preconnecting is off.
    pub ready: usize,
    /// A next hop is recently used if a request went to it within so many milliseconds.
    pub lately_ms: u64,
    /// After a failed preconnect none is made for so many milliseconds.
    pub rest_ms: u64,
}

/// What is known of a next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreconnectDemand {
    /// Connections to it that are idle or being preconnected.
    pub ready: usize,
    /// When a request last went to it, if one did.
    pub used: Option<Tick>,
    /// When a preconnect to it last failed, if one did.
    pub failed: Option<Tick>,
    /// One more would be kept ([`super::IdleConnections::has_room`]).
    pub has_room: bool,
}

words! {
    /// Why no connection is opened ahead of requests.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum NoPreconnect {
        /// The rules turn it off.
        Off = "off",
        /// Enough are ready.
        Enough = "enough",
        /// No request went there recently.
        NotUsedRecently = "not-used-lately",
        /// A preconnect failed recently.
        FailedRecently = "failed-lately",
        /// Another idle connection would have to be closed for it.
        NoRoom = "no-room",
    }
}

/// Whether to open one more connection ahead of requests.
///
/// # Errors
///
/// The first reason against it, in the order of [`NoPreconnect`].
pub fn judge_preconnect(
    rules: &PreconnectRules,
    demand: &PreconnectDemand,
    now: Now,
) -> Result<(), NoPreconnect> {
    let within =
        |tick: Option<Tick>, ms: u64| tick.is_some_and(|tick| now.tick.ms_since(tick) < ms);
    if rules.ready == 0 {
        Err(NoPreconnect::Off)
    } else if demand.ready >= rules.ready {
        Err(NoPreconnect::Enough)
    } else if !within(demand.used, rules.lately_ms) {
        Err(NoPreconnect::NotUsedRecently)
    } else if within(demand.failed, rules.rest_ms) {
        Err(NoPreconnect::FailedRecently)
    } else if !demand.has_room {
        Err(NoPreconnect::NoRoom)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_semantics::Timestamp;

    const RULES: PreconnectRules = PreconnectRules {
        ready: 2,
        lately_ms: 1000,
        rest_ms: 300,
    };
    const WANTED: PreconnectDemand = PreconnectDemand {
        ready: 1,
        used: Some(Tick(5000)),
        failed: None,
        has_room: true,
    };

    fn check(demand: PreconnectDemand, ms: u64, expected: Result<(), NoPreconnect>) {
        let now = Now {
            wall: Timestamp(0),
            tick: Tick(ms),
        };
        assert_eq!(
            judge_preconnect(&RULES, &demand, now),
            expected,
            "{demand:?}"
        );
        let off = PreconnectRules { ready: 0, ..RULES };
        assert_eq!(judge_preconnect(&off, &demand, now), Err(NoPreconnect::Off));
    }

    #[test]
    fn preconnect_stops_at_the_configured_ready_count() {
        check(WANTED, 5000, Ok(()));
        check(
            PreconnectDemand { ready: 2, ..WANTED },
            5000,
            Err(NoPreconnect::Enough),
        );
    }

    #[test]
    fn preconnect_requires_a_recently_used_next_hop() {
        check(WANTED, 5999, Ok(()));
        check(WANTED, 6000, Err(NoPreconnect::NotUsedRecently));
        let never = PreconnectDemand {
            used: None,
            ..WANTED
        };
        check(never, 5000, Err(NoPreconnect::NotUsedRecently));
    }

    #[test]
    fn preconnect_pauses_after_a_failed_set_up() {
        let failed = PreconnectDemand {
            failed: Some(Tick(5000)),
            ..WANTED
        };
        check(failed, 5299, Err(NoPreconnect::FailedRecently));
        check(failed, 5300, Ok(()));
    }

    #[test]
    fn preconnect_is_refused_without_room_for_an_idle_connection() {
        let full = PreconnectDemand {
            has_room: false,
            ..WANTED
        };
        check(full, 5000, Err(NoPreconnect::NoRoom));
    }
}
