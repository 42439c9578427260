//! What a request does that finds no idle connection: open one, wait for one that is busy, or both.
//!
//! PROXIM takes "an idle persistent connection if any, else opens a new one", which is
//! [`WhenBusy::Open`]. But a busy connection may come back before a new one is set up: then the
//! request could have it, and what was opened is ready for the next. That is [`WhenBusy::Race`],
//! the default. It keeps count: while a connection is on its way that nobody needs any more, the
//! next request waits for that one and opens none. So it opens no more connections than PROXIM's
//! rule, and requests get theirs sooner: in the model beside this file (bursts, exchanges of 40 to
//! 160 ms, set-ups of 10 to 150 ms) they wait a fifth less.
//!
//! [`WhenBusy::WaitIfSooner`] waits *instead* of opening. With `busy` connections, each busy for
//! `m` at a time, one comes back every `m / busy` whatever the distribution of `m`; behind
//! `waiting` others it is ours after `(waiting + 1) * m / busy`. It waits where that is less than
//! the set-up time `s`, both as measured, and no longer than `s`: however wrong the expectation, it
//! takes at most twice as long as opening at once, and [`Luck`] sees to it that this is rare. It is
//! the better choice for the one request, and not for all: a request that opens makes room for
//! those behind it, one that waits does not. In the model it opens 10 to 30 % fewer connections and
//! requests wait 2 to 4 times as long in all. It is for next hops that are short of connections.
//!
//! An exchange takes at least the round trip that a set-up takes, so neither matters with one or
//! two busy connections: the gain is where dozens are busy on a long path, and the next is due in a
//! fraction of a round trip.

use super::estimate::{Luck, Mean};
use super::reasons::{OpenReason, WaitEnd, WaitReason};

/// What to do when every connection to a next hop is busy and more are allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WhenBusy {
    /// Open one, as PROXIM does.
    Open,
    /// Wait for a busy one where that is expected to be sooner than a set-up, else open one.
    WaitIfSooner,
    /// Open one and wait for a busy one as well: take what comes first.
    #[default]
    Race,
}

impl WhenBusy {
    /// The rule as a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::WaitIfSooner => "wait-if-sooner",
            Self::Race => "race",
        }
    }
}

/// The rules of opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenRules {
    /// Connections to one next hop at once, those being opened included.
    pub per_hop_max: usize,
    /// Connections to all next hops at once.
    pub total_max: usize,
    /// When more are allowed and all are busy.
    pub when_busy: WhenBusy,
}

/// What a request for a connection brings along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Idle connections to this next hop.
    pub idle: usize,
    /// Connections open to all next hops, those being opened included.
    pub open_in_all: usize,
    /// It must be a new one: the request is repeated because a kept one failed it (RFC 9112
    /// §9.3.1).
    pub fresh: bool,
    /// Idle connections that it cannot use itself may be there to be closed for it.
    pub can_close: bool,
    /// It has not yet waited in vain.
    pub patient: bool,
    /// How long a connection to this next hop is busy with one exchange, microseconds; none while
    /// unknown.
    pub busy_us: Option<u64>,
}

/// What to do for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Take an idle connection: [`super::IdleConnections::check_out`] says which.
    Reuse,
    /// Open one.
    Open(OpenReason),
    /// Open one for whoever waits first, and wait.
    Race,
    /// Close an idle connection for the place it holds, then ask again.
    Close(Room),
    /// Wait until a busy one comes back, or until there is a place to open one.
    Wait {
        /// Why.
        why: WaitReason,
        /// No longer than this, microseconds, then ask again without patience; none: as long as a
        /// request may wait at all.
        at_most_us: Option<u64>,
    },
}

/// Which idle connection is closed for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Room {
    /// The oldest to the same next hop: the request cannot use it.
    SameHop,
    /// The oldest of all.
    AnyHop,
}

/// Where a set-up takes less than this, microseconds, there is nothing to be gained: the driver's
/// timers tick in milliseconds.
const QUICK_US: u64 = 2000;

/// What a place among the open connections to a next hop is held by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A connection that is being opened for one request.
    Opening,
    /// A connection that is being opened for whoever waits first when it is open.
    ToCome,
    /// A connection that comes and goes: busy or idle.
    Returning,
    /// A tunnel.
    Lost,
}

/// The open connections to one next hop, and what they have taught.
///
/// It may be forgotten when none is open and nobody waits: what was measured matters only while
/// there is a busy connection to wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    open: usize,
    to_come: usize,
    returning: usize,
    waiting: usize,
    set_up_time: Mean,
    luck: Luck,
}

impl Hop {
    /// What a request is to do. Only that: the driver tells with the other methods what it did.
    pub fn choose(&mut self, rules: &OpenRules, demand: &Demand) -> Choice {
        if demand.idle > 0 && !demand.fresh {
            return Choice::Reuse;
        }
        if self.open >= rules.per_hop_max {
            return if demand.fresh && demand.can_close {
                Choice::Close(Room::SameHop)
            } else {
                wait_for_a_place(WaitReason::PerHopMax)
            };
        }
        if demand.open_in_all >= rules.total_max {
            return if demand.can_close {
                Choice::Close(Room::AnyHop)
            } else {
                wait_for_a_place(WaitReason::TotalMax)
            };
        }
        if demand.fresh {
            return Choice::Open(OpenReason::Repetition);
        }
        if !demand.patient {
            return Choice::Open(OpenReason::WaitedInVain);
        }
        // one that nobody needs any more, or that was opened ahead: it is nearer than a new one
        if rules.when_busy != WhenBusy::Open && self.to_come > self.waiting {
            return Choice::Wait {
                why: WaitReason::UnderWay,
                at_most_us: None,
            };
        }
        if self.returning == 0 {
            return Choice::Open(OpenReason::NoneBusy);
        }
        if rules.when_busy == WhenBusy::Open {
            return Choice::Open(OpenReason::Rule);
        }
        let Some(set_up_us) = self.set_up_time.us() else {
            return Choice::Open(OpenReason::NotMeasured);
        };
        if set_up_us < QUICK_US {
            return Choice::Open(OpenReason::QuickSetUp);
        }
        match rules.when_busy {
            WhenBusy::Race => Choice::Race,
            WhenBusy::Open | WhenBusy::WaitIfSooner => self.compare(set_up_us, demand.busy_us),
        }
    }

    /// Set against each other: a set-up, and the time until a busy one comes back to us.
    fn compare(&mut self, set_up_us: u64, busy_us: Option<u64>) -> Choice {
        let Some(busy_us) = busy_us else {
            return Choice::Open(OpenReason::NotMeasured);
        };
        let before_us = busy_us.saturating_mul(self.waiting as u64 + 1) / self.returning as u64;
        if before_us >= set_up_us {
            return Choice::Open(OpenReason::Sooner);
        }
        if self.luck.stretch(before_us) >= set_up_us {
            self.luck.forgone();
            return Choice::Open(OpenReason::Sooner);
        }
        Choice::Wait {
            why: WaitReason::Sooner,
            at_most_us: Some(set_up_us),
        }
    }

    /// A place is taken by a connection that is being opened, `Opening` or `ToCome`.
    pub fn begin(&mut self, place: Place) {
        self.open += 1;
        self.to_come += usize::from(place == Place::ToCome);
    }

    /// The connection is open, after so many milliseconds: from now on it comes and goes. Its place
    /// is `Returning`.
    pub fn opened(&mut self, place: Place, set_up_ms: u64) {
        self.leave(place);
        self.returning += 1;
        self.set_up_time.note_ms(set_up_ms);
    }

    /// A connection that came and went became a tunnel. Its place is `Lost`.
    pub fn lost(&mut self, place: Place) {
        self.leave(place);
    }

    /// A place is given back.
    pub fn closed(&mut self, place: Place) {
        self.leave(place);
        self.open = self.open.saturating_sub(1);
    }

    fn leave(&mut self, place: Place) {
        match place {
            Place::ToCome => self.to_come = self.to_come.saturating_sub(1),
            Place::Returning => self.returning = self.returning.saturating_sub(1),
            Place::Opening | Place::Lost => {}
        }
    }

    /// A request waits for a busy one.
    pub fn wait_begins(&mut self) {
        self.waiting += 1;
    }

    /// It waits no more.
    pub fn wait_ends(&mut self, why: WaitReason, end: WaitEnd) {
        self.waiting = self.waiting.saturating_sub(1);
        match (why, end) {
            (WaitReason::Sooner, WaitEnd::Returned) => self.luck.paid(),
            (WaitReason::Sooner, WaitEnd::InVain) => self.luck.in_vain(),
            _ => {}
        }
    }

    /// Connections open, those being opened included.
    #[must_use]
    pub const fn open(&self) -> usize {
        self.open
    }

    /// Connections that are being opened for whoever waits first.
    #[must_use]
    pub const fn to_come(&self) -> usize {
        self.to_come
    }

    /// Connections that come and go: busy or idle, neither being opened nor tunnels.
    #[must_use]
    pub const fn returning(&self) -> usize {
        self.returning
    }

    /// Requests that wait for one of them.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.waiting
    }
}

fn wait_for_a_place(why: WaitReason) -> Choice {
    Choice::Wait {
        why,
        at_most_us: None,
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod virtual_time;
