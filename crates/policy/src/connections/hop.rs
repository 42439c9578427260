//! What a request does that finds no idle connection: open one, wait for one that is busy, or both.
//!
//! PROXIM takes "an idle persistent connection if any, else opens a new one", which is
//! [`WhenBusy::Open`]. But a busy connection may come back before a new one is set up: then the
//! request could have it, and what was opened is ready for the next. That is [`WhenBusy::Race`],
//! the default. It keeps count: while a connection is being opened that no request needs any more,
//! the next request waits for that one and opens none. So it opens no more connections than
//! PROXIM's rule, and requests get theirs sooner: in the model beside this file (bursts, exchanges
//! of 40 to 160 ms, set-ups of 10 to 150 ms) they wait a fifth less.
//!
//! [`WhenBusy::WaitIfSooner`] waits *instead* of opening. With `busy` connections, each busy for
//! `m` at a time, one comes back every `m / busy` whatever the distribution of `m`; behind
//! `waiting` others it is ours after `(waiting + 1) * m / busy`. It waits where that is less than
//! the set-up time `s`, both as measured, and no longer than `s`: however wrong the expectation, it
//! takes at most twice as long as opening at once, and [`WaitConfidence`] sees to it that this is
//! rare. It is the better choice for the one request, and not for all: a request that opens makes
//! room for those behind it, one that waits does not. In the model it opens 10 to 30 % fewer
//! connections and requests wait 2 to 4 times as long in all. It is for next hops that are short of
//! connections.
//!
//! An exchange takes at least the round trip that a set-up takes, so neither matters with one or
//! two busy connections: the gain is where dozens are busy on a long path, and the next is due in a
//! fraction of a round trip.

use super::estimate::{Mean, WaitConfidence};
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
    /// Open one for the request that waits longest, and wait.
    Race,
    /// Close an idle connection to make room, then call again.
    Close(Room),
    /// Wait until a busy connection becomes idle, or until there is room to open one.
    Wait {
        /// Why.
        why: WaitReason,
        /// No longer than this, microseconds, then call again without patience; `None`: as long as
        /// a request may wait at all.
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

/// The state of one of the open connections to a next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConnectionState {
    /// It is being opened for one request.
    Opening,
    /// It is being opened for the request that waits longest when set-up ends.
    OpeningUnassigned,
    /// It is open, busy or idle, and other requests can use it after an exchange.
    Pooled,
    /// It is a tunnel, which no other request can use.
    Tunnel,
    /// It carries many requests at once ([`super::MultiplexedHop`]): none waits until it is free.
    Multiplexed,
}

/// The open connections to one next hop, and what they have taught.
///
/// It may be forgotten when none is open and no request waits: what was measured matters only while
/// there is a busy connection to wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    open: usize,
    opening_unassigned: usize,
    pooled: usize,
    waiting: usize,
    set_up_time: Mean,
    wait_confidence: WaitConfidence,
}

impl Hop {
    /// What a request is to do. Changes nothing: the driver reports by the other methods what it
    /// did.
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
        // no request needs this one any more, or it was preconnected: it is nearer than a new one
        if rules.when_busy != WhenBusy::Open && self.opening_unassigned > self.waiting {
            return Choice::Wait {
                why: WaitReason::UnderWay,
                at_most_us: None,
            };
        }
        if self.pooled == 0 {
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

    /// Compares the time of a set-up with the time until a busy connection becomes idle.
    fn compare(&mut self, set_up_us: u64, busy_us: Option<u64>) -> Choice {
        let Some(busy_us) = busy_us else {
            return Choice::Open(OpenReason::NotMeasured);
        };
        let before_us = busy_us.saturating_mul(self.waiting as u64 + 1) / self.pooled as u64;
        if before_us >= set_up_us {
            return Choice::Open(OpenReason::Sooner);
        }
        if self.wait_confidence.expected_us(before_us) >= set_up_us {
            self.wait_confidence.skipped();
            return Choice::Open(OpenReason::Sooner);
        }
        Choice::Wait {
            why: WaitReason::Sooner,
            at_most_us: Some(set_up_us),
        }
    }

    /// A set-up begins: the state is `Opening` or `OpeningUnassigned`.
    pub fn begin(&mut self, state: ConnectionState) {
        self.open += 1;
        self.opening_unassigned += usize::from(state == ConnectionState::OpeningUnassigned);
    }

    /// Set-up took so many milliseconds. The connection is now `Pooled`.
    pub fn opened(&mut self, state: ConnectionState, set_up_ms: u64) {
        self.leave(state);
        self.pooled += 1;
        self.set_up_time.note_ms(set_up_ms);
    }

    /// A pooled connection became a tunnel. Its state is now `Tunnel`.
    pub fn became_tunnel(&mut self, state: ConnectionState) {
        self.leave(state);
    }

    /// A pooled connection turned out to carry many requests. Its state is now `Multiplexed`.
    pub fn became_multiplexed(&mut self, state: ConnectionState) {
        self.leave(state);
    }

    /// The connection is closed.
    pub fn closed(&mut self, state: ConnectionState) {
        self.leave(state);
        self.open = self.open.saturating_sub(1);
    }

    fn leave(&mut self, state: ConnectionState) {
        match state {
            ConnectionState::OpeningUnassigned => {
                self.opening_unassigned = self.opening_unassigned.saturating_sub(1)
            }
            ConnectionState::Pooled => self.pooled = self.pooled.saturating_sub(1),
            ConnectionState::Opening | ConnectionState::Tunnel | ConnectionState::Multiplexed => {}
        }
    }

    /// A request starts to wait for a busy connection.
    pub fn wait_begins(&mut self) {
        self.waiting += 1;
    }

    /// The wait ended.
    pub fn wait_ends(&mut self, why: WaitReason, end: WaitEnd) {
        self.waiting = self.waiting.saturating_sub(1);
        match (why, end) {
            (WaitReason::Sooner, WaitEnd::Returned) => self.wait_confidence.succeeded(),
            (WaitReason::Sooner, WaitEnd::InVain) => self.wait_confidence.failed(),
            _ => {}
        }
    }

    /// Connections open, those being opened included.
    #[must_use]
    pub const fn open(&self) -> usize {
        self.open
    }

    /// Connections that are being opened for no particular request.
    #[must_use]
    pub const fn opening_unassigned(&self) -> usize {
        self.opening_unassigned
    }

    /// Connections that are busy or idle: neither being opened nor tunnels.
    #[must_use]
    pub const fn pooled(&self) -> usize {
        self.pooled
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
