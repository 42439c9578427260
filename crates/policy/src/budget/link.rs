//! One link: what may be moved over it now, and what was.

use super::bucket::{Bucket, Class, GRANT_BYTES_MAX};
use super::clock_watch::{CLOCK_STEP_S, ClockWatch};
use super::period::Period;
use super::recent_ranges::RecentRanges;
use super::rules::{LinkRules, Quota, WhenSpent};
use super::saved::SavedLink;
use super::spending::Spending;
use super::transfer::Transfer;
use crate::now::{Now, Tick};
use weir_semantics::{DeltaSeconds, Timestamp};

/// Into how many steps a quota is divided for booking.
const STEPS: u64 = 10_000;

/// Bytes of the smallest and the largest step.
const STEP_BYTES: (u64, u64) = (64 * 1024, 4 * 1024 * 1024);

/// How long a transfer waits for a booking to be written before it asks again, milliseconds.
const BOOKING_WAIT_MS: u64 = 2;

/// The state is written though nothing is spent when the last write is as old, seconds: it says
/// what the wall clock was.
const WRITE_EVERY_S: u64 = 600;

/// A quota with less room than this is spent, bytes: no head of a response fits.
const ROOM_BYTES_MIN: u64 = 1460;

/// All windows together are to be at most this part of what a quota has left.
const WINDOWS_OF_LEFT: u64 = 8;

/// The number of responses that a time window has validated holds for so long, milliseconds.
const REFRESHES_EACH_MS: u64 = 3_600_000;

/// The state of a link.
#[derive(Clone, Debug)]
pub struct Link {
    rules: LinkRules,
    clock: ClockWatch,
    bucket: Option<Bucket>,
    ranges: RecentRanges,
    spending: Spending,
    /// Hundredths of a byte that were moved beside whole ones.
    hundredths: u64,
    /// Bytes that were granted, and neither used nor given back.
    granted: u64,
    /// Bytes that open connections may bring without a grant.
    receive_window_bytes: u64,
    /// How many those connections are.
    connections: u64,
    /// Bytes of the present period that are written as booked.
    booked: u64,
    /// What is being written.
    pending: Option<Pending>,
    sequence: u64,
    /// When the hour began in which popular responses were validated last, and how many were.
    refreshed: Option<(Tick, u16)>,
    /// The last state was handed out.
    is_closed: bool,
    /// When the state was written last, by the wall clock.
    written: Option<Timestamp>,
    snapshot: Snapshot,
}

/// A state that was handed out to be written.
#[derive(Clone, Copy, Debug)]
struct Pending {
    sequence: u64,
    period: Period,
    booked: u64,
    wall: Timestamp,
}

/// What holds at an instant.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    wall: Timestamp,
    window: Option<usize>,
    is_free: bool,
}

/// Whether a request may be sent over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may.
    Go,
    /// It may not: the quota is spent.
    Spent(SpentNow),
}

/// A quota that is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpentNow {
    /// What follows.
    pub then: WhenSpent,
    /// The status of the answer to what would have to be fetched.
    pub status: u16,
    /// When the next period begins.
    pub until: Timestamp,
    /// The time until then.
    pub retry_after: DeltaSeconds,
    /// How long past its freshness a response is served instead; `None` if a stale one is not.
    pub stale_for: Option<DeltaSeconds>,
}

/// How many bytes may be moved over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Up to so many, at least one: they are granted.
    UpTo(u64),
    /// None before this tick: the driver asks again then.
    At(Tick),
    /// None: the quota is spent, and nothing is fetched any more.
    Spent(SpentNow),
}

/// What a link has for transfers that no client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundRoom {
    /// Something.
    Free,
    /// Nothing now but their least share: others go first.
    Taken,
    /// Nothing but that for [`SCARCE_AFTER_MS`](super::SCARCE_AFTER_MS), or the quota is spent:
    /// such a transfer is better ended and kept as a part.
    Scarce,
}

/// What is done over a link for no client now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowWork {
    /// Parts of fetches that were paused are completed.
    pub completes: bool,
    /// So many popular stored responses are validated yet in this hour.
    pub refreshes: u16,
    /// They are of so many that are requested most.
    pub refreshes_of: u16,
}

/// A link as operators see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkReport {
    /// Bytes a second now; `None` for no bound.
    pub rate: Option<u64>,
    /// The time window that it is in, by its place.
    pub window: Option<usize>,
    /// Bytes are not of the quota now.
    pub is_free: bool,
    /// A step of the wall clock waits for its confirmation.
    pub is_after_clock_step: bool,
    /// The quota, if there is one.
    pub quota: Option<QuotaReport>,
}

/// The quota of a link as operators see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaReport {
    /// Bytes of a period.
    pub bytes: u64,
    /// Bytes that are spent in this one.
    pub spent_bytes: u64,
    /// Bytes that are booked in it.
    pub booked_bytes: u64,
    /// The period.
    pub period: Period,
    /// What follows when it is spent.
    pub then: WhenSpent,
    /// Whether it is.
    pub is_spent: bool,
}

impl Link {
    /// A link that goes on from `saved`, what was written for it; from nothing if there is none.
    /// A wall clock that is ahead of `saved` is used, as the machine may have been off; one that is
    /// before it, or had a step then that was not confirmed, was stepped.
    #[must_use]
    pub fn new(rules: LinkRules, saved: Option<SavedLink>, now: Now) -> Self {
        let has_step = |saved: &SavedLink| {
            saved.is_after_clock_step || now.wall.0.saturating_add(CLOCK_STEP_S) < saved.wall.0
        };
        let clock = if saved.as_ref().is_some_and(has_step) {
            ClockWatch::after_step(now)
        } else {
            ClockWatch::new(now)
        };
        let first = period_at(&rules, now.wall).unwrap_or(Period {
            start: now.wall,
            end: Timestamp(now.wall.0.saturating_add(1)),
        });
        let sequence = saved.as_ref().map_or(0, |saved| saved.sequence);
        let spending = saved.map_or_else(|| Spending::new(first), |saved| saved.spending);
        let mut link = Self {
            bucket: None,
            ranges: RecentRanges::default(),
            clock,
            spending,
            hundredths: 0,
            granted: 0,
            receive_window_bytes: 0,
            connections: 0,
            booked: 0,
            pending: None,
            sequence,
            refreshed: None,
            is_closed: false,
            written: None,
            snapshot: Snapshot {
                wall: now.wall,
                window: None,
                is_free: false,
            },
            rules,
        };
        link.refresh(now);
        link
    }

    /// A link whose state was written and cannot be read. Of a quota as much is taken as spent as
    /// has passed of its period.
    #[must_use]
    pub fn unreadable(rules: LinkRules, now: Now) -> Self {
        let mut link = Self::new(rules, None, now);
        if let Some(quota) = link.rules.quota {
            let period = link.spending.current.period;
            let length = period.start.0.abs_diff(period.end.0).max(1);
            let passed = period.start.0.abs_diff(now.wall.0).min(length);
            let spent = u128::from(quota.bytes) * u128::from(passed) / u128::from(length);
            link.spending
                .add(u64::try_from(spent).unwrap_or(u64::MAX), false);
        }
        link
    }

    /// Has it go on with other rules.
    pub fn set_rules(&mut self, rules: LinkRules, now: Now) {
        self.rules = rules;
        self.refresh(now);
    }

    /// Its rules.
    #[must_use]
    pub const fn rules(&self) -> &LinkRules {
        &self.rules
    }

    /// Whether a request may be sent over it.
    pub fn admit(&mut self, now: Now) -> Admission {
        self.look(now);
        match self.spent(now) {
            Some(spent) if spent.then.ends_fetches() => Admission::Spent(spent),
            _ => Admission::Go,
        }
    }

    /// What it has for transfers that no client waits for. A quota that is spent has nothing for
    /// them, whatever follows.
    pub fn background(&mut self, now: Now) -> BackgroundRoom {
        self.look(now);
        if self.spent(now).is_some() {
            return BackgroundRoom::Scarce;
        }
        let Some(bucket) = &mut self.bucket else {
            return BackgroundRoom::Free;
        };
        if bucket.has_room(now.tick) {
            BackgroundRoom::Free
        } else if bucket.is_scarce(now.tick) {
            BackgroundRoom::Scarce
        } else {
            BackgroundRoom::Taken
        }
    }

    /// What is done over it for no client: only where it has something for that. In no window after
    /// a step of the clock: its time is not known.
    pub fn window_work(&mut self, now: Now) -> WindowWork {
        if self.background(now) != BackgroundRoom::Free {
            return WindowWork::default();
        }
        let window = self.snapshot.window.filter(|_| !self.clock.is_after_step());
        let window = window.map(|at| self.rules.windows[at]);
        let has_windows = self.rules.windows.iter().any(|window| window.complete);
        WindowWork {
            completes: !has_windows || window.is_some_and(|window| window.complete),
            refreshes: window.map_or(0, |window| {
                window.refresh.saturating_sub(self.refreshed_since(now).1)
            }),
            refreshes_of: window.map_or(0, |window| window.refresh),
        }
    }

    /// A popular stored response is validated over it for no client.
    pub fn refreshed(&mut self, now: Now) {
        let (since, count) = self.refreshed_since(now);
        self.refreshed = Some((since, count.saturating_add(1)));
    }

    /// When the present hour began, and how many responses were validated in it.
    fn refreshed_since(&self, now: Now) -> (Tick, u16) {
        let in_hour = |(since, _): &(Tick, u16)| now.tick.ms_since(*since) < REFRESHES_EACH_MS;
        self.refreshed.filter(in_hour).unwrap_or((now.tick, 0))
    }

    /// The class that a transfer is of now.
    pub fn class(&mut self, now: Now, transfer: &Transfer) -> Class {
        let of_ranges = transfer.range_of;
        let recent_bytes = of_ranges.map_or(0, |of| self.ranges.bytes(now.tick, of));
        transfer.class(self.rules.bulk_above, recent_bytes)
    }

    /// A transfer has moved `bytes` more: later ranges of its target for its client are of a class
    /// that follows from them, too.
    pub fn moved(&mut self, now: Now, transfer: &mut Transfer, bytes: u64) {
        transfer.moved = transfer.moved.saturating_add(bytes);
        if let Some(of) = transfer.range_of {
            self.ranges.add(now.tick, of, bytes);
        }
    }

    /// How many bytes of a transfer of `class` may be moved now, of `wanted`, at least 1. They are
    /// granted: what is moved of them is to be reported by [`Self::used`], the rest by
    /// [`Self::give_back`].
    pub fn permit(&mut self, now: Now, class: Class, wanted: u64) -> Permit {
        self.look(now);
        let mut bytes = wanted.clamp(1, GRANT_BYTES_MAX);
        if let Some(quota) = self.counting() {
            if quota.then.ends_fetches() {
                if let Some(spent) = self.spent(now) {
                    return Permit::Spent(spent);
                }
                bytes = bytes.min(self.rules.fitting(self.left(quota)));
            }
            let taken = self.taken().saturating_add(self.receive_window_bytes);
            let room = self.rules.fitting(self.booked.saturating_sub(taken));
            if room == 0 {
                return Permit::At(now.tick.plus_ms(BOOKING_WAIT_MS));
            }
            bytes = bytes.min(room).max(1);
        }
        if let Some(bucket) = &mut self.bucket {
            match bucket.take(now.tick, class, bytes) {
                Ok(granted) => bytes = granted,
                Err(wait_ms) => return Permit::At(now.tick.plus_ms(wait_ms)),
            }
        }
        self.granted = self.granted.saturating_add(bytes);
        Permit::UpTo(bytes)
    }

    /// So many bytes were moved, of them `granted` by a grant: a head may go with content beyond
    /// it.
    pub fn used(&mut self, now: Now, bytes: u64, granted: u64) {
        self.look(now);
        self.granted = self.granted.saturating_sub(granted);
        if let Some(bucket) = &mut self.bucket {
            bucket.overdraw(bytes.saturating_sub(granted));
        }
        if self.counting().is_none() {
            return;
        }
        let overhead = bytes.saturating_mul(u64::from(self.rules.overhead_percent));
        let hundredths = overhead.saturating_add(self.hundredths);
        self.hundredths = hundredths % 100;
        let bytes = bytes.saturating_add(hundredths / 100);
        self.spending.add(bytes, self.clock.is_after_step());
    }

    /// So many bytes that were granted to a transfer of `class` are not moved after all.
    pub fn give_back(&mut self, class: Class, bytes: u64) {
        self.granted = self.granted.saturating_sub(bytes);
        if let Some(bucket) = &mut self.bucket {
            bucket.give_back(class, bytes);
        }
    }

    /// A connection was opened that may bring so many bytes without a grant: the kernel takes them.
    pub fn opened(&mut self, window_bytes: u64) {
        self.connections = self.connections.saturating_add(1);
        self.widened(window_bytes);
    }

    /// Such a connection may bring so many bytes more.
    pub fn widened(&mut self, window_bytes: u64) {
        self.receive_window_bytes = self.receive_window_bytes.saturating_add(window_bytes);
    }

    /// Such a connection, which could bring so many, was closed.
    pub fn closed(&mut self, window_bytes: u64) {
        self.connections = self.connections.saturating_sub(1);
        self.receive_window_bytes = self.receive_window_bytes.saturating_sub(window_bytes);
    }

    /// The widest window that one of its connections should have now, bytes; `None` if a quota has
    /// nothing to say to that. Their windows shrink with what is left of the quota, as what they
    /// hold when it is spent comes beyond it.
    pub fn widest_window(&mut self, now: Now) -> Option<u64> {
        self.look(now);
        let quota = self.counting().filter(|quota| quota.then.ends_fetches())?;
        let parts = self.connections.max(1).saturating_mul(WINDOWS_OF_LEFT);
        Some(self.left(quota) / parts)
    }

    /// The state to be written now, if there is one: the driver reports by [`Self::saved`] when it
    /// is written, and hands out no other one before.
    pub fn to_save(&mut self, now: Now) -> Option<SavedLink> {
        self.look(now);
        let quota = self.rules.quota?;
        if self.pending.is_some() || self.is_closed {
            return None;
        }
        let is_old = |at: Timestamp| at.0.abs_diff(now.wall.0) >= WRITE_EVERY_S;
        let (booked, is_short) = self.booking(quota);
        if !is_short && !self.written.is_none_or(is_old) {
            return None;
        }
        let booked = booked.max(self.booked);
        self.sequence += 1;
        self.pending = Some(Pending {
            sequence: self.sequence,
            period: self.spending.current.period,
            booked,
            wall: now.wall,
        });
        Some(self.state(now, booked, false))
    }

    /// Whether a state is to be written soon, so that no transfer waits for it.
    #[must_use]
    pub fn is_to_be_saved(&self) -> bool {
        let is_idle = self.pending.is_none() && !self.is_closed;
        let quota = self.rules.quota.filter(|_| is_idle);
        quota.is_some_and(|quota| self.booking(quota).1)
    }

    /// The bytes to be booked next, and whether those that are booked run short.
    fn booking(&self, quota: Quota) -> (u64, bool) {
        let taken = self.taken().saturating_add(self.receive_window_bytes);
        let step = (quota.bytes / STEPS).clamp(STEP_BYTES.0, STEP_BYTES.1);
        // a step of a quota that nothing is fetched beyond does not go beyond it either, but for
        // what open connections bring without a grant
        let most = if quota.then.ends_fetches() {
            quota
                .bytes
                .saturating_add(self.receive_window_bytes)
                .max(taken)
        } else {
            u64::MAX
        };
        let booked = taken.saturating_add(step).min(most);
        let is_short = self.booked < booked && self.booked.saturating_sub(taken) < step / 2;
        (booked, is_short)
    }

    /// The state with this sequence is written; or it cannot be, and the driver goes on without.
    pub fn saved(&mut self, sequence: u64) {
        let Some(pending) = self.pending.take_if(|it| it.sequence == sequence) else {
            return;
        };
        if pending.period == self.spending.current.period {
            self.written = Some(pending.wall);
            self.booked = pending.booked;
        }
    }

    /// The state to be written last: what is spent, and nothing booked. From now on nothing is
    /// counted for the quota: as no state is written any more, transfers that still use the link
    /// would wait for a booking for ever.
    pub fn close(&mut self, now: Now) -> Option<SavedLink> {
        self.look(now);
        self.rules.quota.filter(|_| !self.is_closed)?;
        self.is_closed = true;
        self.sequence += 1;
        Some(self.state(now, self.spending.current.bytes, true))
    }

    /// What operators see of it.
    pub fn report(&mut self, now: Now) -> LinkReport {
        self.look(now);
        let is_spent = self.spent(now).is_some();
        let quota = self.rules.quota.map(|quota| QuotaReport {
            bytes: quota.bytes,
            spent_bytes: self.spending.current.bytes,
            booked_bytes: self.booked,
            period: self.spending.current.period,
            then: quota.then,
            is_spent,
        });
        LinkReport {
            rate: self.bucket.as_ref().map(Bucket::rate),
            window: self.snapshot.window,
            is_free: self.snapshot.is_free,
            is_after_clock_step: self.clock.is_after_step(),
            quota,
        }
    }

    fn state(&self, now: Now, booked: u64, is_clean: bool) -> SavedLink {
        let mut spending = self.spending.clone();
        let ahead = booked.saturating_sub(spending.current.bytes);
        // all of it is taken as spent, also by a clock that turns out to be wrong
        spending.add(ahead, self.clock.is_after_step());
        SavedLink {
            sequence: self.sequence,
            wall: now.wall,
            is_clean,
            is_after_clock_step: self.clock.is_after_step(),
            spending,
        }
    }

    /// The quota, if bytes are counted now.
    fn counting(&self) -> Option<Quota> {
        let is_counting = !self.snapshot.is_free && !self.is_closed;
        self.rules.quota.filter(|_| is_counting)
    }

    /// Bytes on the wire that are spent or granted.
    fn taken(&self) -> u64 {
        let granted = self.rules.on_wire(self.granted);
        self.spending.current.bytes.saturating_add(granted)
    }

    /// Bytes on the wire that the quota has left.
    fn left(&self, quota: Quota) -> u64 {
        quota.bytes.saturating_sub(self.taken())
    }

    /// Whether its quota is spent.
    fn spent(&self, now: Now) -> Option<SpentNow> {
        let quota = self.counting()?;
        if self.left(quota) >= ROOM_BYTES_MIN {
            return None;
        }
        let until = self.spending.current.period.end;
        Some(SpentNow {
            then: quota.then,
            status: quota.then.status(),
            until,
            retry_after: until.since(now.wall).max(DeltaSeconds(1)),
            stale_for: (quota.then == WhenSpent::Stale).then_some(quota.stale_for),
        })
    }

    /// Finds what holds now: the period, the time window, the rate.
    fn look(&mut self, now: Now) {
        let was_after_step = self.clock.is_after_step();
        let is_after_step = self.clock.look(now);
        if is_after_step && !was_after_step {
            // a process that is killed now is to know it
            self.written = None;
        }
        if now.wall != self.snapshot.wall || was_after_step != is_after_step {
            self.refresh(now);
        } else {
            self.set_rate(now.tick);
        }
    }

    fn refresh(&mut self, now: Now) {
        let is_after_step = self.clock.look(now);
        if !is_after_step && let Some(period) = period_at(&self.rules, now.wall) {
            let before = self.spending.current.period;
            let quota = self.rules.quota.map_or(0, |quota| quota.bytes);
            self.spending.enter(now.wall, period, quota);
            if before != period {
                // nothing is booked in it yet
                self.booked = 0;
                self.written = None;
            }
        }
        let mut windows = self.rules.windows.iter();
        let window = windows.position(|window| window.contains(&self.rules.zone, now.wall));
        let is_free = window.is_some_and(|at| self.rules.windows[at].free);
        self.snapshot = Snapshot {
            wall: now.wall,
            window,
            // a clock that jumps gives nothing away
            is_free: is_free && !is_after_step,
        };
        self.set_rate(now.tick);
    }

    fn set_rate(&mut self, tick: Tick) {
        let of_window = self
            .snapshot
            .window
            .and_then(|at| self.rules.windows[at].rate);
        let mut rate = of_window.or(self.rules.rate);
        if let Some(quota) = self.counting()
            && quota.then == WhenSpent::Slow
            && self.left(quota) < ROOM_BYTES_MIN
        {
            rate = Some(rate.map_or(quota.slow_rate, |rate| rate.min(quota.slow_rate)));
        }
        let reserve = self.rules.reserve_percent;
        match (rate, &mut self.bucket) {
            (None, bucket) => *bucket = None,
            (Some(rate), Some(bucket)) => bucket.set_rate(rate, reserve),
            (Some(rate), bucket) => *bucket = Some(Bucket::new(tick, rate, reserve)),
        }
    }
}

fn period_at(rules: &LinkRules, at: Timestamp) -> Option<Period> {
    let quota = rules.quota?;
    Some(quota.period.containing(&rules.zone, at))
}
