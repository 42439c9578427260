//! What the other members are to be told, by member.
//!
//! One message to a member is under way at a time; what comes meanwhile waits and is sent with the
//! next one. A member that has not answered in time is *behind*, and all others are told so: it may
//! have what was purged. What it has missed goes to the late orders ([`Boxes`]), which it is told
//! until it has answered. A member that leaves the list is noted for [`AWAY_MAX`]; when it comes
//! back later, it is to validate all that it had stored.
//!
//! What there is no room for waits for its turn (`turns`).

use super::PurgedTarget;
use super::boxes::Boxes;
use super::members_behind::Behind;
use super::orders::Order;
use super::outbox::{Batch, Lag, Outbox};
use super::turn_queues::TurnQueues;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};
use weir_semantics::PurgeOutcome;

/// How long what a member misses that is none any more is noted.
pub(crate) const AWAY_MAX: Duration = Duration::from_mins(1);

/// How long a member that has not answered is left alone.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// What became of a purge at one member; or why it is not known to have been applied there.
pub(crate) type MemberOutcome = Result<PurgeOutcome, String>;

/// The outboxes of all members.
#[derive(Debug)]
pub(crate) struct Outboxes {
    boxes: Mutex<Boxes>,
    /// When this was made.
    began: Instant,
    /// From when on a member is behind, in milliseconds since then: before that nothing is locked.
    behind_from_ms: AtomicU64,
    /// Which list of members was met last, by its address.
    met: AtomicUsize,
    /// Wakes the task that sends.
    wake: Notify,
    /// A member has answered, has failed to, or is told what waited for it.
    changed: Notify,
    /// Those that tell do so one after the other.
    pub(super) turns: TurnQueues,
}

/// The answer of a member that is awaited.
#[derive(Debug)]
pub(crate) struct Awaited {
    pub(crate) member: Box<str>,
    pub(super) reply: oneshot::Receiver<MemberOutcome>,
}

/// What an answer of a member comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// It has been told.
    InTime,
    /// The same, and [`Outboxes::failed`] was true before, or the answer before was not durable.
    Late,
    /// It validates what it has, and does not after a crash: it is behind until it has written that
    /// down, and is told again.
    NotDurable {
        /// The first such answer.
        is_first: bool,
    },
}

impl Default for Outboxes {
    fn default() -> Self {
        Self {
            boxes: Mutex::default(),
            began: Instant::now(),
            behind_from_ms: AtomicU64::new(u64::MAX),
            met: AtomicUsize::new(0),
            wake: Notify::default(),
            changed: Notify::default(),
            turns: TurnQueues::default(),
        }
    }
}

impl Outboxes {
    /// Locks the boxes, and sees which members are behind when that is over.
    fn change<T>(&self, change: impl FnOnce(&mut Boxes) -> T) -> T {
        let mut boxes = self.boxes();
        let result = change(&mut boxes);
        let behind = boxes.behind().count();
        if behind == 0 {
            boxes.late.clear();
        }
        // those that are none any more are asked for nothing
        let mut members = boxes.by_member.values().filter(|it| it.away.is_none());
        let from = members.clone().filter_map(|outbox| {
            let due = outbox.next_due()?;
            u64::try_from(due.saturating_duration_since(self.began).as_millis()).ok()
        });
        let from_ms = match members.any(|it| it.lag.is_some()) {
            true => 0,
            false => from.min().unwrap_or(u64::MAX),
        };
        self.behind_from_ms.store(from_ms, Ordering::SeqCst);
        drop(boxes);
        self.changed.notify_waiters();
        result
    }

    pub(super) fn boxes(&self) -> MutexGuard<'_, Boxes> {
        self.boxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ready when `holds` does not hold any more.
    pub(super) async fn when_not(&self, holds: impl Fn() -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if !holds() {
                return;
            }
            changed.await;
        }
    }

    /// When it is the turn of that: has `members`, all there are, told of `targets`; the answers
    /// are awaited until then, and the targets held for `patience` longer. Where a member has not
    /// answered lately the answer is there already: it was not told. What those miss that were
    /// members a moment ago is noted.
    pub(super) fn tell<'m>(
        &self,
        members: impl Iterator<Item = &'m str>,
        targets: Vec<PurgedTarget>,
        (now, until, patience): (Instant, Instant, Duration),
    ) -> Vec<Awaited> {
        let members: Vec<&str> = members.collect();
        let targets: Vec<Arc<PurgedTarget>> = targets.into_iter().map(Arc::new).collect();
        let awaited = self.change(|boxes| {
            boxes.last_until = boxes.last_until.max(Some(until));
            boxes.patience = patience;
            let in_list = |name: &&str| {
                let known = boxes.by_member.get(*name);
                known.is_some_and(|outbox| outbox.away.is_none())
            };
            if members.len() < boxes.by_member.len() || !members.iter().all(in_list) {
                boxes.meet(&members.iter().copied().collect(), now);
                let gone = boxes.by_member.iter().filter(|(_, it)| {
                    it.away.is_some() && !it.is_given_up && it.failing().is_none()
                });
                let gone: Vec<Box<str>> = gone.map(|(name, _)| name.clone()).collect();
                for member in gone {
                    boxes.fail(&member, "it is no member any more", until);
                }
            }
            let mut awaited = Vec::with_capacity(members.len() * targets.len());
            for member in members {
                for what in &targets {
                    let (reply, receiver) = oneshot::channel();
                    awaited.push(Awaited {
                        member: member.into(),
                        reply: receiver,
                    });
                    let order = Order {
                        what: Arc::clone(what),
                        until,
                        due: until,
                        replies: vec![reply],
                    };
                    boxes.put(member, order);
                }
            }
            let mut all = boxes.by_member.values();
            if all.any(|it| it.failing().is_some() && !it.is_given_up) {
                targets.iter().for_each(|what| boxes.late.add(what));
            }
            awaited
        });
        self.wake.notify_one();
        awaited
    }

    /// The answers to what was told: each comes by the time that was given, or is that it did not.
    /// If one did not, those that have answered have been told so, or are behind, too.
    pub(crate) async fn answers(
        &self,
        awaited: Vec<Awaited>,
        until: Instant,
    ) -> Vec<(Box<str>, MemberOutcome)> {
        let mut answers = Vec::with_capacity(awaited.len());
        for Awaited { member, reply } in awaited {
            let outcome = match tokio::time::timeout_at(until.into(), reply).await {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) => Err("it is no member any more".into()),
                Err(_) => {
                    let why = "it did not answer in time";
                    // what comes next does not wait for it; that is noted once, however many wait
                    if !self.fails(&member) {
                        self.change(|boxes| boxes.fail(&member, why, until));
                        self.wake.notify_one();
                    }
                    Err(why.into())
                }
            };
            answers.push((member, outcome));
        }
        if answers.iter().any(|(_, outcome)| outcome.is_err()) {
            self.news_are_told(until).await;
            let now = Instant::now();
            self.expire_news(now);
            for (member, outcome) in &mut answers {
                if outcome.is_ok() && self.is_behind(member, now) {
                    // it may have got what was purged from another one since it has applied that
                    *outcome = Err("it did not answer in time".into());
                }
            }
        }
        answers
    }

    /// Whether `member` is not told in time what comes: what it has not answered by now it is told
    /// behind that.
    fn fails(&self, member: &str) -> bool {
        let boxes = self.boxes();
        let outbox = boxes.by_member.get(member);
        outbox.is_some_and(|outbox| outbox.failing().is_some())
    }

    /// Members that were to know by now which ones are behind, and do not, are behind.
    pub(super) fn expire_news(&self, now: Instant) {
        self.change(|boxes| {
            let due = boxes.by_member.iter();
            let due = due.filter_map(|(name, it)| Some((name.clone(), it.awaited_news()?)));
            let due: Vec<(Box<str>, Instant)> = due.filter(|(_, due)| *due <= now).collect();
            for (member, due) in due {
                boxes.fail(&member, "it did not answer in time", due);
            }
        });
    }

    /// Whether a member that answers does not know yet which ones are behind.
    pub(super) fn awaits_news(&self) -> bool {
        let boxes = self.boxes();
        let mut all = boxes.by_member.values();
        all.any(|outbox| outbox.awaited_news().is_some())
    }

    /// Ready when all members that answer know which ones are behind.
    async fn news_are_told(&self, until: Instant) {
        let patience = self.boxes().patience;
        let told = self.when_not(|| self.awaits_news());
        // those that have not answered by then are behind themselves
        let _slow = tokio::time::timeout_at((until + patience).into(), told).await;
    }

    /// Ready when there may be a member that is to be told something and that no task serves.
    pub(crate) async fn wait(&self) {
        self.wake.notified().await;
    }

    /// Ready when each member has answered all that it is to be told, or does not answer a message
    /// from now on.
    pub(crate) async fn told(&self) {
        let before: BTreeMap<Box<str>, u64> = {
            let boxes = self.boxes();
            let members = boxes.by_member.iter();
            let failures = members.map(|(name, outbox)| (name.clone(), outbox.failures));
            failures.collect()
        };
        let is_awaited = || {
            self.boxes().by_member.iter().any(|(name, outbox)| {
                let before = before.get(name).copied().unwrap_or_default();
                outbox.is_untold() && outbox.failures == before
            })
        };
        self.when_not(is_awaited).await;
    }

    /// Members that have not answered all purges, also those that are not listed at the moment.
    pub(crate) fn untold(&self) -> Vec<Box<str>> {
        let boxes = self.boxes();
        let members = boxes.by_member.iter().filter(|(_, outbox)| {
            let misses = !outbox.queue.is_empty() || !outbox.sent.is_empty();
            misses || outbox.is_behind()
        });
        members.map(|(name, _)| name.clone()).collect()
    }

    /// When the next answer is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let boxes = self.boxes();
        let dues = boxes.by_member.values().filter_map(Outbox::next_due);
        dues.min()
    }

    /// Members whose answers were due before now are behind. What is returned are members that have
    /// left the list [`AWAY_MAX`] ago: what they miss is not noted any more.
    pub(crate) fn expire(&self, now: Instant) -> Vec<Box<str>> {
        self.change(|boxes| {
            let due = boxes.by_member.iter();
            let due = due.filter_map(|(name, it)| Some((name.clone(), it.next_due()?)));
            let due: Vec<(Box<str>, Instant)> = due.filter(|(_, due)| *due <= now).collect();
            for (member, due) in due {
                boxes.fail(&member, "it did not answer in time", due);
            }
            let mut gone = Vec::new();
            for (name, outbox) in &mut boxes.by_member {
                let is_over = |since: Instant| now.saturating_duration_since(since) >= AWAY_MAX;
                if outbox.away.is_some_and(is_over) && !outbox.is_given_up {
                    outbox.is_given_up = true;
                    let lag = Lag::new("it is no member any more".to_owned());
                    outbox.lag.get_or_insert(lag).must_validate = true;
                    gone.push(name.clone());
                }
            }
            gone
        })
    }

    /// The members are these, of the list at this address. Called when they have changed.
    pub(crate) fn meet<'m>(
        &self,
        members: impl Iterator<Item = &'m str>,
        list: usize,
        now: Instant,
    ) {
        self.change(|boxes| boxes.meet(&members.collect(), now));
        self.met.store(list, Ordering::SeqCst);
    }

    /// `member` is to validate what it has stored before: nothing knows what it has missed.
    pub(crate) fn demand_validation(&self, members: &Behind) {
        let now = Instant::now();
        self.change(|boxes| {
            let names = boxes.by_member.keys();
            let names: Vec<Box<str>> = names.filter(|it| members.contains(it)).cloned().collect();
            for name in names {
                boxes.demand_validation(&name, now);
            }
        });
        self.wake.notify_one();
    }

    /// `member` does not know any more which ones are behind.
    pub(crate) fn tell_again(&self, member: &str) {
        let is_any = self.change(|boxes| {
            let is_any = boxes.behind_for(member) != Behind::NONE;
            if let Some(outbox) = boxes.by_member.get_mut(member) {
                outbox.has_news |= is_any;
            }
            is_any
        });
        if is_any {
            self.wake.notify_one();
        }
    }

    /// The members that are to be told something and that no task serves: the caller does now, with
    /// each until [`Self::next`] has nothing for it.
    pub(crate) fn unserved(&self) -> Vec<Box<str>> {
        let mut boxes = self.boxes();
        let unserved = boxes.by_member.iter_mut();
        let unserved = unserved.filter(|(_, outbox)| !outbox.is_served && outbox.is_waiting());
        let unserved = unserved.map(|(name, outbox)| {
            outbox.is_served = true;
            name.clone()
        });
        unserved.collect()
    }

    /// What `member` is to be told next; `None` if there is nothing: it is not served any more.
    pub(crate) fn next(&self, member: &str) -> Option<Batch> {
        let mut locked = self.boxes();
        let boxes = &mut *locked;
        let behind = boxes.behind_for(member);
        let until = boxes.last_until.unwrap_or_else(Instant::now);
        let outbox = boxes.by_member.get_mut(member)?;
        let batch = outbox.next(&boxes.late, behind, until);
        outbox.is_served = batch.is_some();
        drop(locked);
        // there is room for what waits for its turn
        self.changed.notify_waiters();
        batch
    }

    /// The session of the process of `member`, and the number for the next message.
    pub(crate) fn number(&self, member: &str) -> (String, u64) {
        let mut boxes = self.boxes();
        let outbox = boxes.by_member.entry(member.into()).or_default();
        outbox.sequence.1 = outbox.sequence.1.saturating_add(1);
        outbox.sequence.clone()
    }

    /// The process of `member` has this session, and has received messages up to this number. No
    /// number is given twice in a session: the answer may be to a message before the last one.
    pub(crate) fn learn(&self, member: &str, session: &str, number: u64) {
        if let Some(outbox) = self.boxes().by_member.get_mut(member) {
            let (known, last) = &mut outbox.sequence;
            if known != session {
                (*known, *last) = (session.to_owned(), 0);
            }
            *last = number.max(*last);
        }
    }

    /// So long members hold a target behind the time that its answers are due.
    pub(crate) fn patience(&self) -> Duration {
        self.boxes().patience
    }

    /// `member` has answered.
    pub(crate) fn delivered(
        &self,
        member: &str,
        mut batch: Batch,
        outcomes: Vec<PurgeOutcome>,
    ) -> Delivered {
        let is_durable = batch.validates_durably(&outcomes);
        for (order, outcome) in batch.orders.iter_mut().zip(outcomes) {
            order.answer(&Ok(outcome));
        }
        let delivered = self.change(|boxes| {
            if !is_durable {
                boxes.demand_validation(member, Instant::now());
            }
            let Some(outbox) = boxes.by_member.get_mut(member) else {
                return Delivered::InTime;
            };
            outbox.sent.clear();
            outbox.failures += u64::from(!is_durable);
            outbox.due = outbox.queue.due();
            outbox.sent_news_due = None;
            let knows_all = !outbox.has_news;
            let is_in_step = outbox.lag.as_mut().is_some_and(|lag| {
                lag.take(&batch, boxes.late.end(), is_durable);
                lag.told >= lag.end && !lag.must_validate && knows_all
            });
            if is_in_step {
                outbox.lag = None;
            }
            let was_reported = std::mem::replace(&mut outbox.is_reported, !is_durable);
            if is_in_step {
                boxes.tell_good_news(member);
            }
            match (is_durable, was_reported) {
                (true, false) => Delivered::InTime,
                (true, true) => Delivered::Late,
                (false, was_reported) => Delivered::NotDurable {
                    is_first: !was_reported,
                },
            }
        });
        self.wake.notify_one();
        delivered
    }

    /// `member` has not answered: it will be told again. Whether that is the first time since it
    /// has answered.
    pub(crate) fn failed(&self, member: &str, mut batch: Batch, why: &str, now: Instant) -> bool {
        let is_first = self.change(|boxes| {
            if let Some(outbox) = boxes.by_member.get_mut(member) {
                outbox.failures += 1;
            }
            if let Some(outbox) = boxes.by_member.get_mut(member)
                && batch.may_wait
                && outbox.lag.is_none()
                && outbox.next_due().is_none()
            {
                outbox.has_news = true;
                return false;
            }
            let dues = batch.orders.iter().map(|order| order.due);
            let due = dues.min().map_or(now, |due| due.min(now));
            boxes.fail(member, why, due);
            let Some(outbox) = boxes.by_member.get_mut(member) else {
                return false;
            };
            outbox.sent.clear();
            outbox.has_news = true;
            !std::mem::replace(&mut outbox.is_reported, true)
        });
        for order in &mut batch.orders {
            order.answer(&Err(why.to_owned()));
        }
        self.wake.notify_one();
        is_first
    }

    /// Whether any member of the list at this address may have what was purged.
    pub(crate) fn is_any_behind(&self, list: usize, now: Instant) -> bool {
        if self.met.load(Ordering::SeqCst) != list {
            // one that is back may be among them
            return true;
        }
        let from_ms = self.behind_from_ms.load(Ordering::SeqCst);
        let ms = || now.saturating_duration_since(self.began).as_millis();
        from_ms < u64::MAX && ms() >= u128::from(from_ms)
    }

    /// Whether `member` may have what was purged: this process may have stood still since its
    /// answer was due, and not have noted yet that there is none.
    pub(crate) fn is_behind(&self, member: &str, now: Instant) -> bool {
        let boxes = self.boxes();
        boxes.by_member.get(member).is_some_and(|outbox| {
            let is_due = outbox.next_due().is_some_and(|due| due <= now);
            outbox.lag.is_some() || outbox.away.is_some() || is_due
        })
    }

    /// Purges that `member` was not told in time, and is to be told yet.
    pub(crate) fn overdue_of(&self, member: &str) -> u64 {
        let boxes = self.boxes();
        let outbox = boxes.by_member.get(member);
        outbox.map_or(0, |outbox| boxes.overdue_in(outbox))
    }

    /// Purges that members were not told in time, and are to be told yet.
    pub(crate) fn overdue(&self) -> u64 {
        let boxes = self.boxes();
        let outboxes = boxes.by_member.values();
        outboxes.map(|outbox| boxes.overdue_in(outbox)).sum()
    }
}

#[cfg(test)]
#[path = "outboxes_tests.rs"]
mod tests;
