//! The phases of a request, in the order in which it meets them.
//!
//! The access log's times, the recorder's times, a counter and the hook points of extensions are
//! named by them. A request may skip phases: a hit has no `Forward`, a response that is not stored
//! has no `Store`, and one that comes before the request's content was sent has no
//! `RequestContent`.

use weir_semantics::words;

words! {
    /// One phase of a request; it is *reached* when what it names is complete.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Phase {
        /// The request head has arrived and is well-formed.
        RequestHead = "request-head",
        /// The client may send this request to this listener.
        Authorise = "authorise",
        /// The source of the response is decided: store, next hop, or an answer of our own.
        Choose = "choose",
        /// A connection to the next hop is ready.
        Forward = "forward",
        /// The content of the request was sent to the next hop.
        RequestContent = "request-content",
        /// The head of the response for the client is made.
        ResponseHead = "response-head",
        /// It is decided what of the response is stored.
        Store = "store",
        /// The content of the response was sent to the client.
        ResponseContent = "response-content",
        /// The request is counted and logged.
        Done = "done",
    }
}

impl Phase {
    /// Its place in [`Phase::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// A set of phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases(u16);

impl Phases {
    /// No phase.
    pub const NONE: Self = Self(0);

    /// This set and `phase`.
    #[must_use]
    pub const fn with(self, phase: Phase) -> Self {
        Self(self.0 | 1 << phase.index())
    }

    /// Whether `phase` is in the set.
    #[must_use]
    pub const fn contains(self, phase: Phase) -> bool {
        self.0 & 1 << phase.index() != 0
    }

    /// The phases that are in one of the sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The phases that are in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether one of them comes before `phase`.
    #[must_use]
    pub const fn begin_before(self, phase: Phase) -> bool {
        self.0 & ((1 << phase.index()) - 1) != 0
    }

    /// The phases in order.
    pub fn iter(self) -> impl Iterator<Item = Phase> {
        Phase::ALL
            .into_iter()
            .filter(move |phase| self.contains(*phase))
    }

    /// Those of them that come behind all of `others`.
    #[must_use]
    pub const fn behind(self, others: Self) -> Self {
        match others.0.checked_ilog2() {
            Some(last) => Self(self.0 >> (last + 1) << (last + 1)),
            None => self,
        }
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_indexed_in_order_and_named_apart() {
        for (index, phase) in Phase::ALL.into_iter().enumerate() {
            assert_eq!(phase.index(), index);
            let same_name = Phase::ALL.iter().filter(|it| it.as_str() == phase.as_str());
            assert_eq!(same_name.count(), 1, "{phase:?}");
        }
        assert!(Phase::ALL.is_sorted());
    }

    #[test]
    fn set_contains_the_phases_put_in_and_no_other() {
        let set = Phases::NONE.with(Phase::Choose).with(Phase::Done);
        assert!(Phases::NONE.is_empty() && !set.is_empty());
        let contained: Vec<Phase> = Phase::ALL
            .into_iter()
            .filter(|phase| set.contains(*phase))
            .collect();
        assert_eq!(contained, [Phase::Choose, Phase::Done]);
        assert!(set.iter().eq(contained));
    }

    #[test]
    fn set_begins_before_the_phases_behind_its_first() {
        let set = Phases::NONE.with(Phase::Choose).with(Phase::Done);
        assert!(!set.begin_before(Phase::RequestHead) && !set.begin_before(Phase::Choose));
        assert!(set.begin_before(Phase::Forward) && set.begin_before(Phase::Done));
        assert!(!Phases::NONE.begin_before(Phase::Done));
    }

    #[test]
    fn phases_behind_others_come_after_the_last_of_them() {
        let set = Phases::NONE.with(Phase::Choose).with(Phase::Done);
        let behind = |phase| set.behind(Phases::NONE.with(Phase::RequestHead).with(phase));
        assert_eq!(set.behind(Phases::NONE), set);
        assert_eq!(behind(Phase::Authorise), set);
        assert_eq!(behind(Phase::Choose), Phases::NONE.with(Phase::Done));
        assert_eq!(
            behind(Phase::ResponseContent),
            Phases::NONE.with(Phase::Done)
        );
        assert_eq!(behind(Phase::Done), Phases::NONE);
    }
}
