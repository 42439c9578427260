//! Which next hop of a route a request tries after it got no connection to another one.
//!
//! Nothing was sent to a next hop without a connection, so that any request may go to another one,
//! whatever its method. Each try may cost the connect limit, and a lack of our own resources is the
//! same for all of them.

use crate::connections::HopId;
use core::fmt;
use weir_semantics::words;

/// Next hops of a route that a request tries to connect to for one attempt to send it. nginx has no
/// bound by default (`proxy_next_upstream_tries`); each try may cost a client the connect limit.
pub const HOP_ATTEMPTS_MAX: u32 = 3;

/// The next hops that a request has tried for one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopAttempts {
    /// The last one; `None` for an origin that the request names.
    last: Option<HopId>,
    tried: u32,
}

/// Why there is no connection to a next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoConnection {
    /// It refused, did not answer, or has no address.
    NextHop,
    /// A resource of our own is lacking.
    Ours,
}

words! {
    /// Why no other next hop is tried.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum NoOtherHop {
        /// There is no route: the request names its origin.
        NotRouted = "not-routed",
        /// Another next hop does not help against a lack of our own.
        OwnLack = "own-lack",
        /// The request tried as many as it may.
        TriedEnough = "tried-enough",
        /// The route has no other one to offer.
        NoOther = "no-other",
    }
}

impl fmt::Display for NoOtherHop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl HopAttempts {
    /// `hop` is about to be tried; `None` for an origin that the request names.
    #[must_use]
    pub const fn first(hop: Option<HopId>) -> Self {
        Self {
            last: hop,
            tried: 1,
        }
    }

    /// No connection to the last one could be had. The next one to try, as the routes `choose` it;
    /// `choose` is not called if none may be tried.
    ///
    /// # Errors
    ///
    /// The first reason against it, in the order of [`NoOtherHop`].
    pub fn next<T>(
        &mut self,
        failure: NoConnection,
        choose: impl FnOnce() -> Option<(HopId, T)>,
    ) -> Result<T, NoOtherHop> {
        if self.last.is_none() {
            return Err(NoOtherHop::NotRouted);
        }
        if failure == NoConnection::Ours {
            return Err(NoOtherHop::OwnLack);
        }
        if self.tried >= HOP_ATTEMPTS_MAX {
            return Err(NoOtherHop::TriedEnough);
        }
        let chosen = choose().filter(|(hop, _)| Some(*hop) != self.last);
        let (hop, next) = chosen.ok_or(NoOtherHop::NoOther)?;
        self.last = Some(hop);
        self.tried += 1;
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers when the routes choose these, one after the other.
    fn check(
        first: Option<u32>,
        failure: NoConnection,
        choices: &[Option<u32>],
        expected: &[Result<u32, NoOtherHop>],
    ) {
        let mut tried = HopAttempts::first(first.map(HopId));
        let choose = |choice: Option<u32>| choice.map(|hop| (HopId(hop), hop));
        let answers: Vec<_> = choices
            .iter()
            .map(|choice| tried.next(failure, || choose(*choice)))
            .collect();
        assert_eq!(answers, expected);
    }

    #[test]
    fn request_tries_at_most_three_next_hops_of_its_route() {
        check(
            Some(0),
            NoConnection::NextHop,
            &[Some(1), Some(2), Some(3)],
            &[Ok(1), Ok(2), Err(NoOtherHop::TriedEnough)],
        );
        // one that is offered again later counts again
        check(
            Some(0),
            NoConnection::NextHop,
            &[Some(1), Some(0), Some(1)],
            &[Ok(1), Ok(0), Err(NoOtherHop::TriedEnough)],
        );
    }

    #[test]
    fn next_hop_that_just_failed_is_not_tried_again() {
        check(
            Some(7),
            NoConnection::NextHop,
            &[Some(7)],
            &[Err(NoOtherHop::NoOther)],
        );
        check(
            Some(7),
            NoConnection::NextHop,
            &[None],
            &[Err(NoOtherHop::NoOther)],
        );
        check(
            Some(7),
            NoConnection::NextHop,
            &[Some(8), Some(8)],
            &[Ok(8), Err(NoOtherHop::NoOther)],
        );
    }

    #[test]
    fn own_lack_and_named_origin_lead_to_no_other_next_hop() {
        check(
            Some(0),
            NoConnection::Ours,
            &[Some(1)],
            &[Err(NoOtherHop::OwnLack)],
        );
        check(
            None,
            NoConnection::NextHop,
            &[Some(1)],
            &[Err(NoOtherHop::NotRouted)],
        );
    }

    #[test]
    fn routes_take_no_turn_for_a_next_hop_that_is_not_tried() {
        let mut tried = HopAttempts::first(Some(HopId(0)));
        for hop in 1..HOP_ATTEMPTS_MAX {
            let next = tried.next(NoConnection::NextHop, || Some((HopId(hop), ())));
            assert_eq!(next, Ok(()));
        }
        let mut turns = 0;
        let last = tried.next(NoConnection::NextHop, || {
            turns += 1;
            Some((HopId(9), ()))
        });
        assert_eq!((last, turns), (Err(NoOtherHop::TriedEnough), 0));
    }
}
