//! A request to a next hop of a route, as the route's policy counts it.

use crate::config::ParentKind;
use crate::settings::Settings;
use crate::worker::core::Worker;
use crate::worker::shared::Shared;
use std::sync::{Arc, PoisonError};
use std::time::Instant;
use weir_measure::RouteChoice;
use weir_net::next_hops::HopKey;
use weir_policy::Now;
use weir_policy::connections::HopId;
use weir_policy::route::{Choice, HealthChange, Routes, Why};

/// Where a next hop is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HopTable {
    /// Among the next hops of routes.
    Routes,
    /// Among the parents, or the siblings.
    Hierarchy(ParentKind),
}

/// A next hop in the settings that a request began with, and in those that are in force.
#[derive(Clone)]
pub(crate) struct RouteHop {
    settings: Arc<Settings>,
    /// It has those in force.
    shared: Arc<Shared>,
    table: HopTable,
    /// The number of the next hop in `settings`.
    hop: HopId,
}

impl RouteHop {
    /// Next hop number `hop` of `settings`, in that table.
    pub(crate) fn new(
        settings: &Arc<Settings>,
        worker: &Worker,
        (table, hop): (HopTable, HopId),
    ) -> Self {
        Self {
            settings: Arc::clone(settings),
            shared: Arc::clone(&worker.shared),
            table,
            hop,
        }
    }

    /// The next hop.
    pub(crate) fn key(&self) -> &HopKey {
        match self.table {
            HopTable::Routes => &self.settings.hops[self.hop.0 as usize],
            HopTable::Hierarchy(_) => &self.settings.hierarchy.proxy(self.hop).hop,
        }
    }

    /// Whether it is a sibling.
    pub(crate) fn is_sibling(&self) -> bool {
        self.table == HopTable::Hierarchy(ParentKind::Sibling)
    }

    /// Its number in other settings, if it is there.
    fn same(&self, current: &Settings) -> Option<HopId> {
        match self.table {
            HopTable::Routes => current.hop_id(self.key()),
            HopTable::Hierarchy(_) => {
                let proxy = self.settings.hierarchy.proxy(self.hop);
                current.hierarchy.same(proxy)
            }
        }
    }

    /// Calls `tell` with the tables of both, and writes a line if that changes whether it is
    /// ejected: `why`, if it is.
    pub(crate) fn tell_health(
        &self,
        now: Now,
        why: &str,
        mut tell: impl FnMut(&mut Routes, HopId) -> Option<HealthChange>,
    ) {
        let mut change = None;
        self.tell(|routes, hop| change = tell(routes, hop));
        let what = match self.table {
            HopTable::Routes => "next hop",
            HopTable::Hierarchy(kind) => kind.as_str(),
        };
        let key = self.key();
        let line = match change {
            None => return,
            Some(HealthChange::Ejected) => format!("{what} {} is ejected: {why}", key.url()),
            Some(HealthChange::Back) => format!("{what} {} is back", key.url()),
        };
        self.shared.module_log.write_health(now.tick, &line);
    }

    /// Calls `tell` with the tables of both.
    pub(crate) fn tell(&self, mut tell: impl FnMut(&mut Routes, HopId)) {
        let mut tell_one = |settings: &Settings, hop| match self.table {
            HopTable::Routes => {
                let routes = settings.routes.lock();
                tell(&mut routes.unwrap_or_else(PoisonError::into_inner), hop);
            }
            HopTable::Hierarchy(kind) => tell(&mut settings.hierarchy.table(kind), hop),
        };
        tell_one(&self.settings, self.hop);
        // the settings were reloaded meanwhile: the requests that choose now use those
        let current = self.shared.settings.load_full();
        if !Arc::ptr_eq(&current, &self.settings)
            && let Some(hop) = self.same(&current)
        {
            tell_one(&current, hop);
        }
    }
}

/// An outstanding request; it ends when this is dropped. A reload takes over how many there are, so
/// that ends are told to the new routes, too.
pub(crate) struct Outstanding(RouteHop);

impl Outstanding {
    /// A request to `hop`, which the routes that chose it have counted.
    pub(crate) const fn counted(hop: RouteHop) -> Self {
        Self(hop)
    }

    /// One more request to the same next hop.
    pub(crate) fn begin(hop: RouteHop) -> Self {
        hop.tell(Routes::begin);
        Self(hop)
    }
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.0.tell(Routes::end);
    }
}

/// What the policies of routes use of the time until a response begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    /// How long it is.
    is_timed: bool,
    /// How many requests are in it.
    is_awaited: bool,
}

impl Timing {
    /// What is used of a request for which `choice` was made.
    pub(crate) const fn of(choice: &Choice) -> Self {
        Self {
            is_timed: choice.is_timed,
            is_awaited: choice.is_awaited,
        }
    }
}

/// A request that was sent to a next hop and waits for the head of its response, until it is
/// dropped.
pub(crate) struct ResponseTimer {
    hop: RouteHop,
    timing: Timing,
    sent: Instant,
}

impl ResponseTimer {
    /// From now on; `None` if no policy uses it.
    pub(crate) fn start(hop: &RouteHop, timing: Timing) -> Option<Self> {
        if !timing.is_timed && !timing.is_awaited {
            return None;
        }
        if timing.is_awaited {
            hop.tell(Routes::await_head);
        }
        Some(Self {
            hop: hop.clone(),
            timing,
            sent: Instant::now(),
        })
    }

    /// The response has begun.
    pub(crate) fn stop(self, now: Now) {
        if self.timing.is_timed {
            let us = u64::try_from(self.sent.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.hop.tell(|routes, hop| routes.responded(now, hop, us));
        }
    }
}

impl Drop for ResponseTimer {
    fn drop(&mut self) {
        if self.timing.is_awaited {
            self.hop.tell(Routes::head_ended);
        }
    }
}

/// The reason's place among the counters.
pub(crate) const fn label(why: Why) -> RouteChoice {
    match why {
        Why::InTurn => RouteChoice::InTurn,
        Why::Connection => RouteChoice::Connection,
        Why::OthersEjected => RouteChoice::OthersEjected,
        Why::Probe => RouteChoice::Probe,
        Why::AllEjected => RouteChoice::AllEjected,
        Why::LeastLoad => RouteChoice::LeastLoad,
        Why::BetterOfTwo => RouteChoice::BetterOfTwo,
        Why::FirstInOrder => RouteChoice::FirstInOrder,
        Why::NextInOrder => RouteChoice::NextInOrder,
        Why::Replica => RouteChoice::Replica,
        Why::Mapped => RouteChoice::Mapped,
        Why::NotMapped => RouteChoice::NotMapped,
        Why::Moved => RouteChoice::Moved,
        Why::Replicated => RouteChoice::Replicated,
        Why::DiskIdle => RouteChoice::DiskIdle,
        Why::DiskBusy => RouteChoice::DiskBusy,
        Why::Lateral => RouteChoice::Lateral,
        Why::PreviousOwner => RouteChoice::PreviousOwner,
        Why::Holder => RouteChoice::Holder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_measure::Label;

    #[test]
    fn route_choices_are_counted_under_the_words_and_meanings_of_the_policy() {
        for (why, (word, about)) in Why::ALL.into_iter().zip(Why::WORDS) {
            let label = label(why);
            assert_eq!(label.word(), *word);
            assert_eq!(RouteChoice::ABOUT[label.index()], *about);
        }
        assert_eq!(Why::ALL.len(), RouteChoice::COUNT);
    }
}
