//! What the other members are to be told, by member.
//!
//! One message to a member is under way at a time; what comes meanwhile waits and is sent with the
//! next one. A member that has not answered in time is *behind*, and all others are told so: it may
//! have what was purged. What it has missed goes to the late orders ([`Boxes`]), which it is told
//! until it has answered. A member that leaves the list is noted for [`AWAY_MAX`]; when it comes
//! back later, it is to validate all that it had stored.

use super::PurgedTarget;
use super::boxes::Boxes;
use super::members_behind::Behind;
use super::orders::Order;
use super::outbox::{Batch, Lag, Outbox};
use std::sync::atomic::{AtomicUsize, Ordering};
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
#[derive(Debug, Default)]
pub(crate) struct Outboxes {
    boxes: Mutex<Boxes>,
    /// Members that are behind: while that is 0 nothing is locked.
    behind: AtomicUsize,
    /// Wakes the task that sends.
    wake: Notify,
    /// A member has answered, or has failed to.
    changed: Notify,
}

/// The answer of a member that is awaited.
#[derive(Debug)]
pub(crate) struct Awaited {
    pub(crate) member: Box<str>,
    reply: oneshot::Receiver<MemberOutcome>,
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
        let lags = boxes.by_member.values().filter(|it| it.lag.is_some());
        self.behind.store(lags.count(), Ordering::SeqCst);
        drop(boxes);
        self.changed.notify_waiters();
        result
    }

    fn boxes(&self) -> MutexGuard<'_, Boxes> {
        self.boxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `members`, all there are, told of `targets`; the answers are awaited until then, and the
    /// targets held for `patience` longer. Where a member has not answered lately the answer is
    /// there already: it was not told. What those miss that were members a moment ago is noted.
    pub(crate) fn tell<'m>(
        &self,
        members: impl Iterator<Item = &'m str>,
        targets: Vec<PurgedTarget>,
        (until, patience): (Instant, Duration),
    ) -> Vec<Awaited> {
        let members: Vec<&str> = members.collect();
        let targets: Vec<Arc<PurgedTarget>> = targets.into_iter().map(Arc::new).collect();
        let now = Instant::now();
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
                    // what comes next does not wait for it
                    self.change(|boxes| boxes.fail(&member, why, until));
                    self.wake.notify_one();
                    Err(why.into())
                }
            };
            answers.push((member, outcome));
        }
        if answers.iter().any(|(_, outcome)| outcome.is_err()) {
            self.news_are_told(until).await;
        }
        answers
    }

    /// Ready when all members that answer know which ones are behind.
    async fn news_are_told(&self, until: Instant) {
        let patience = self.boxes().patience;
        let told = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                let is_awaited = |outbox: &Outbox| {
                    let answers = outbox.away.is_none() && outbox.failing().is_none();
                    answers && outbox.news_due.is_some()
                };
                if !self.boxes().by_member.values().any(is_awaited) {
                    return;
                }
                changed.await;
            }
        };
        // those that have not answered by then are behind themselves
        let _slow = tokio::time::timeout_at((until + patience).into(), told).await;
    }

    /// Ready when there may be a member that is to be told something and that no task serves.
    pub(crate) async fn wait(&self) {
        self.wake.notified().await;
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

    /// The members are these. Called when they have changed.
    pub(crate) fn meet<'m>(&self, members: impl Iterator<Item = &'m str>, now: Instant) {
        self.change(|boxes| boxes.meet(&members.collect(), now));
    }

    /// `member` is to validate what it has stored before: nothing knows what it has missed.
    pub(crate) fn demand_validation(&self, members: &Behind) {
        self.change(|boxes| {
            for (name, outbox) in &mut boxes.by_member {
                if members.contains(name) {
                    let why = "it has not been told to validate what it has";
                    let lag = outbox.lag.get_or_insert_with(|| Lag::new(why.to_owned()));
                    lag.must_validate = true;
                }
            }
        });
        self.wake.notify_one();
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
        let mut boxes = self.boxes();
        let boxes = &mut *boxes;
        let behind = (boxes.behind_for(member), boxes.version);
        let until = boxes.last_until.unwrap_or_else(Instant::now);
        let outbox = boxes.by_member.get_mut(member)?;
        let batch = outbox.next(&boxes.late, behind, until);
        outbox.is_served = batch.is_some();
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

    /// `member` has answered; whether [`Self::failed`] was true before.
    pub(crate) fn delivered(
        &self,
        member: &str,
        mut batch: Batch,
        outcomes: Vec<PurgeOutcome>,
    ) -> bool {
        for (order, outcome) in batch.orders.iter_mut().zip(outcomes) {
            order.answer(&Ok(outcome));
        }
        let now = Instant::now();
        let was_reported = self.change(|boxes| {
            let Some(outbox) = boxes.by_member.get_mut(member) else {
                return false;
            };
            outbox.sent.clear();
            outbox.due = outbox.queue.due();
            if batch.version == boxes.version {
                outbox.news_due = None;
            }
            let is_in_step = outbox.lag.as_mut().is_some_and(|lag| {
                lag.take(&batch, boxes.late.end());
                lag.told >= lag.end && !lag.must_validate
            });
            if is_in_step {
                outbox.lag = None;
            }
            let was_reported = std::mem::take(&mut outbox.is_reported);
            if is_in_step {
                boxes.tell_news(member, now);
            }
            was_reported
        });
        self.wake.notify_one();
        was_reported
    }

    /// `member` has not answered: it will be told again. Whether that is the first time since it
    /// has answered.
    pub(crate) fn failed(&self, member: &str, mut batch: Batch, why: &str) -> bool {
        let is_first = self.change(|boxes| {
            let now = Instant::now();
            let dues = batch.orders.iter().map(|order| order.due);
            let due = dues.min().map_or(now, |due| due.min(now));
            boxes.fail(member, why, due);
            let Some(outbox) = boxes.by_member.get_mut(member) else {
                return false;
            };
            outbox.sent.clear();
            !std::mem::replace(&mut outbox.is_reported, true)
        });
        for order in &mut batch.orders {
            order.answer(&Err(why.to_owned()));
        }
        self.wake.notify_one();
        is_first
    }

    /// Whether any member may have what was purged.
    pub(crate) fn is_any_behind(&self) -> bool {
        self.behind.load(Ordering::SeqCst) > 0
    }

    /// Whether `member` may have what was purged.
    pub(crate) fn is_behind(&self, member: &str) -> bool {
        self.is_any_behind() && {
            let boxes = self.boxes();
            boxes
                .by_member
                .get(member)
                .is_some_and(|it| it.lag.is_some())
        }
    }

    /// Purges that members were not told in time, and are to be told yet.
    pub(crate) fn overdue(&self) -> u64 {
        let boxes = self.boxes();
        let lags = boxes.by_member.values().filter(|it| !it.is_given_up);
        let lags = lags.filter_map(|outbox| outbox.lag.as_ref());
        lags.map(|lag| boxes.late.from(lag.told).count() as u64 + u64::from(lag.must_validate))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::purges::outbox::WAITING_MAX;
    use crate::config::Mode;
    use weir_semantics::{BEHIND_NAMES_MAX, PURGE_MESSAGE_BYTES_MAX, PURGE_ORDERS_MAX};

    const HOUR: Duration = Duration::from_hours(1);

    fn url(number: usize) -> PurgedTarget {
        PurgedTarget::Url(format!("http://a/{number}"))
    }

    fn invalidated(url: String) -> PurgedTarget {
        let mode = Mode::Gateway;
        PurgedTarget::Invalidated { mode, url }
    }

    fn outcome(removed: u64) -> PurgeOutcome {
        PurgeOutcome {
            removed,
            is_durable: true,
        }
    }

    fn whats(batch: &Batch) -> Vec<PurgedTarget> {
        let orders = batch.orders.iter();
        orders.map(|order| (*order.what).clone()).collect()
    }

    fn soon() -> Instant {
        Instant::now() + HOUR
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.expect("a runtime").block_on(future)
    }

    fn these(names: &[&str]) -> Behind {
        Behind::These(names.iter().map(|name| (*name).into()).collect())
    }

    fn tell(outboxes: &Outboxes, members: &[&str], targets: &[PurgedTarget]) -> Vec<Awaited> {
        let members = members.iter().copied();
        outboxes.tell(members, targets.to_vec(), (soon(), HOUR))
    }

    fn next(outboxes: &Outboxes, member: &str) -> Batch {
        outboxes.next(member).expect("a message")
    }

    fn deliver(outboxes: &Outboxes, member: &str, batch: Batch) -> bool {
        let outcomes = (0..).map(outcome).take(batch.orders.len()).collect();
        outboxes.delivered(member, batch, outcomes)
    }

    /// Delivers all that `member` is to be told; what that was.
    fn deliver_all(outboxes: &Outboxes, member: &str) -> Vec<PurgedTarget> {
        let mut told = Vec::new();
        while let Some(batch) = outboxes.next(member) {
            told.extend(whats(&batch));
            deliver(outboxes, member, batch);
        }
        told
    }

    #[test]
    fn one_message_says_all_that_has_gathered_and_each_waiter_gets_its_own_answer() {
        let outboxes = Outboxes::default();
        outboxes.meet(["b", "c"].into_iter(), Instant::now());
        let first = tell(&outboxes, &["b", "c"], &[url(0)]);
        let second = tell(&outboxes, &["b", "c"], &[url(1), url(2)]);
        assert_eq!(outboxes.unserved(), ["b".into(), "c".into()]);
        assert!(outboxes.unserved().is_empty(), "they are served");
        for member in ["b", "c"] {
            let batch = next(&outboxes, member);
            assert_eq!(whats(&batch), [url(0), url(1), url(2)]);
            assert_eq!(batch.behind, Behind::NONE);
            deliver(&outboxes, member, batch);
            assert!(outboxes.next(member).is_none());
        }
        let answers = |awaited| block_on(outboxes.answers(awaited, soon()));
        let answered = |member: &str, removed| (member.into(), Ok(outcome(removed)));
        assert_eq!(answers(first), [answered("b", 0), answered("c", 0)]);
        let expected = [("b", 1), ("b", 2), ("c", 1), ("c", 2)];
        assert_eq!(
            answers(second),
            expected.map(|(name, it)| answered(name, it))
        );
    }

    #[test]
    fn equal_purges_are_told_once_and_all_that_wait_get_the_answer() {
        let outboxes = Outboxes::default();
        outboxes.meet(["b"].into_iter(), Instant::now());
        let awaited: Vec<_> = (0..2 * WAITING_MAX)
            .map(|_| tell(&outboxes, &["b"], &[url(0)]))
            .collect();
        let batch = next(&outboxes, "b");
        assert_eq!(whats(&batch), [url(0)]);
        deliver(&outboxes, "b", batch);
        for awaited in awaited {
            let answers = block_on(outboxes.answers(awaited, soon()));
            assert_eq!(answers[0].1, Ok(outcome(0)));
        }
    }

    #[test]
    fn member_that_fails_is_told_again_and_nothing_waits_for_it() {
        let outboxes = Outboxes::default();
        outboxes.meet(["b"].into_iter(), Instant::now());
        let first = tell(&outboxes, &["b"], &[url(0)]);
        let batch = next(&outboxes, "b");
        let during = tell(&outboxes, &["b"], &[url(1)]);
        assert!(!outboxes.is_behind("b"));
        assert!(outboxes.failed("b", batch, "it is away"));
        let later = tell(&outboxes, &["b"], &[url(0), url(2)]);
        for (_, answer) in [first, during, later]
            .into_iter()
            .flat_map(|awaited| block_on(outboxes.answers(awaited, soon())))
        {
            assert_eq!(answer, Err("it is away".into()));
        }
        assert_eq!(outboxes.overdue(), 3);
        let batch = next(&outboxes, "b");
        assert_eq!(whats(&batch), [url(1), url(0), url(2)]);
        assert!(!outboxes.failed("b", batch, "it is away"));
        let batch = next(&outboxes, "b");
        assert!(outboxes.is_behind("b"));
        assert!(deliver(&outboxes, "b", batch));
        assert!(!outboxes.is_behind("b"));
        assert_eq!(outboxes.overdue(), 0);
        let last = tell(&outboxes, &["b"], &[url(3)]);
        let batch = next(&outboxes, "b");
        assert!(!deliver(&outboxes, "b", batch));
        let answers = block_on(outboxes.answers(last, soon()));
        assert_eq!(answers[0].1, Ok(outcome(0)));
    }

    #[test]
    fn purge_that_comes_again_while_a_late_one_is_under_way_is_told_again() {
        let outboxes = Outboxes::default();
        outboxes.meet(["b"].into_iter(), Instant::now());
        drop(tell(&outboxes, &["b"], &[url(0), url(1)]));
        let batch = next(&outboxes, "b");
        outboxes.failed("b", batch, "it is away");
        let batch = next(&outboxes, "b");
        drop(tell(&outboxes, &["b"], &[url(0)]));
        deliver(&outboxes, "b", batch);
        assert!(outboxes.is_behind("b"));
        assert_eq!(deliver_all(&outboxes, "b"), [url(0)]);
        assert!(!outboxes.is_behind("b"));
    }

    #[test]
    fn members_are_told_who_is_behind_and_that_it_is_not_any_more() {
        let outboxes = Outboxes::default();
        outboxes.meet(["b", "c"].into_iter(), Instant::now());
        drop(tell(&outboxes, &["b", "c"], &[url(0)]));
        assert_eq!(deliver_all(&outboxes, "b"), [url(0)]);
        let batch = next(&outboxes, "c");
        outboxes.failed("c", batch, "it is away");
        let news = next(&outboxes, "b");
        assert!(news.orders.is_empty());
        assert_eq!(news.behind, these(&["c"]));
        deliver(&outboxes, "b", news);
        assert!(outboxes.next("b").is_none());
        let late = next(&outboxes, "c");
        assert_eq!(late.behind, Behind::NONE, "it does not ask itself");
        deliver(&outboxes, "c", late);
        assert_eq!(next(&outboxes, "b").behind, Behind::NONE);
    }

    #[test]
    fn member_that_does_not_learn_in_time_who_is_behind_is_told_all_that_was_missed() {
        let outboxes = Outboxes::default();
        let now = Instant::now();
        outboxes.meet(["b", "c"].into_iter(), now);
        let members = || ["b", "c"].into_iter();
        drop(outboxes.tell(members(), vec![url(0)], (now, HOUR)));
        assert_eq!(deliver_all(&outboxes, "b"), [url(0)]);
        let _under_way = next(&outboxes, "c");
        outboxes.expire(now);
        assert!(outboxes.is_behind("c") && !outboxes.is_behind("b"));
        assert_eq!(outboxes.next_due(), Some(now + HOUR));
        // its hold is over: it may have what member `c` has
        outboxes.expire(now + HOUR);
        assert!(outboxes.is_behind("b"));
        assert_eq!(next(&outboxes, "b").behind, these(&["c"]));
        assert_eq!(deliver_all(&outboxes, "b"), [url(0)]);
        assert!(outboxes.is_behind("c") && !outboxes.is_behind("b"));
    }

    #[test]
    fn answer_that_does_not_come_in_time_is_none_and_the_next_one_is_not_awaited() {
        let outboxes = Outboxes::default();
        let now = Instant::now();
        outboxes.meet(["b"].into_iter(), now);
        let late = outboxes.tell(["b"].into_iter(), vec![url(0)], (now, HOUR));
        let next = tell(&outboxes, &["b"], &[url(1)]);
        for awaited in [late, next] {
            let answers = block_on(outboxes.answers(awaited, now + Duration::from_millis(1)));
            assert_eq!(answers[0].1, Err("it did not answer in time".into()));
        }
    }

    #[test]
    fn member_that_missed_more_than_there_is_room_for_validates_and_drops_nothing() {
        let outboxes = Outboxes::default();
        outboxes.meet(["b"].into_iter(), Instant::now());
        for number in 0..=WAITING_MAX {
            drop(tell(&outboxes, &["b"], &[invalidated(number.to_string())]));
        }
        assert!(outboxes.is_behind("b"));
        assert_eq!(whats(&next(&outboxes, "b")), [PurgedTarget::Validate]);
    }

    #[test]
    fn message_has_no_more_orders_and_bytes_than_one_may_have() {
        let outboxes = Outboxes::default();
        outboxes.meet(["b"].into_iter(), Instant::now());
        for number in 0..PURGE_ORDERS_MAX + 1 {
            drop(tell(&outboxes, &["b"], &[url(number)]));
        }
        let sizes = |outboxes: &Outboxes| {
            let batches = std::iter::from_fn(|| outboxes.next("b"));
            let batches = batches.map(|batch| whats(&batch));
            let batches: Vec<Vec<PurgedTarget>> = batches.collect();
            for batch in &batches {
                let bytes = batch.iter().map(|what| what.url_bytes() + 40);
                let bytes = bytes.sum::<usize>() + 4000;
                assert!(bytes <= PURGE_MESSAGE_BYTES_MAX, "{bytes}");
            }
            batches.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&outboxes), [PURGE_ORDERS_MAX, 1]);
        let long = |number: usize| invalidated("x".repeat((1 << 20) - 100 - number));
        drop(tell(&outboxes, &["b"], &[url(0), long(0), url(1), long(1)]));
        assert_eq!(sizes(&outboxes), [1, 1, 1, 1]);
    }

    #[test]
    fn what_a_member_missed_that_left_for_a_moment_it_is_told_when_it_is_back() {
        let outboxes = Outboxes::default();
        let now = Instant::now();
        outboxes.meet(["b", "c"].into_iter(), now);
        let told = tell(&outboxes, &["b"], &[url(0)]);
        assert_eq!(told.len(), 1);
        assert!(outboxes.is_behind("c"), "others may have it as a member");
        assert_eq!(deliver_all(&outboxes, "b"), [url(0)]);
        assert!(outboxes.unserved().iter().all(|name| **name != *"c"));
        assert!(outboxes.expire(now + AWAY_MAX / 2).is_empty());
        // before the list is seen again, and then at once
        let told = tell(&outboxes, &["b", "c"], &[url(1)]);
        assert_eq!(told.len(), 2);
        assert_eq!(deliver_all(&outboxes, "c"), [url(0), url(1)]);
        assert!(!outboxes.is_behind("c"));
    }

    #[test]
    fn member_that_was_away_for_long_validates_what_it_has_when_it_is_back() {
        let outboxes = Outboxes::default();
        let now = Instant::now();
        outboxes.meet(["b", "c"].into_iter(), now);
        outboxes.meet(["b"].into_iter(), now);
        drop(tell(&outboxes, &["b"], &[url(0)]));
        assert_eq!(outboxes.expire(now + AWAY_MAX), ["c".into()]);
        assert!(outboxes.expire(now + AWAY_MAX).is_empty(), "said once");
        deliver_all(&outboxes, "b");
        assert_eq!(outboxes.overdue(), 0, "nothing is noted for it");
        drop(tell(&outboxes, &["b"], &[url(1)]));
        assert_eq!(next(&outboxes, "b").behind, Behind::NONE);
        outboxes.meet(["b", "c"].into_iter(), now + AWAY_MAX);
        assert_eq!(deliver_all(&outboxes, "c"), [PurgedTarget::Validate]);
        assert!(!outboxes.is_behind("c"));
        // one that leaves and misses nothing within the time
        outboxes.meet(["b"].into_iter(), now);
        outboxes.meet(["b", "c"].into_iter(), now);
        assert!(outboxes.next("c").is_none());
    }

    #[test]
    fn member_that_nothing_tells_any_more_validates() {
        let outboxes = Outboxes::default();
        outboxes.meet(["b", "c"].into_iter(), Instant::now());
        outboxes.demand_validation(&these(&["c", "x"]));
        assert!(outboxes.is_behind("c"));
        assert!(outboxes.next("b").is_none());
        assert_eq!(deliver_all(&outboxes, "c"), [PurgedTarget::Validate]);
        assert!(!outboxes.is_behind("c"));
    }

    #[test]
    fn more_members_behind_than_a_message_names_are_all() {
        let outboxes = Outboxes::default();
        let names: Vec<String> = (0..=BEHIND_NAMES_MAX).map(|it| format!("n{it}")).collect();
        let all = || names.iter().map(String::as_str).chain(["b"]);
        outboxes.meet(all(), Instant::now());
        for (count, name) in (1..).zip(&names) {
            outboxes.demand_validation(&these(&[name]));
            drop(outboxes.tell(all(), vec![url(count)], (soon(), HOUR)));
            let behind = next(&outboxes, "b").behind;
            match behind {
                Behind::These(names) => assert_eq!(names.len(), count),
                Behind::All => assert!(count > BEHIND_NAMES_MAX),
            }
        }
    }

    #[test]
    fn numbers_go_on_from_what_the_member_has_received() {
        let outboxes = Outboxes::default();
        outboxes.meet(["b"].into_iter(), Instant::now());
        assert_eq!(outboxes.number("b"), ("-".into(), 1));
        outboxes.learn("b", "s", 41);
        assert_eq!(outboxes.number("b"), ("s".into(), 42));
        assert_eq!(outboxes.number("b"), ("s".into(), 43));
        // an answer to an earlier message, and a process that is another one
        outboxes.learn("b", "s", 42);
        assert_eq!(outboxes.number("b"), ("s".into(), 44));
        outboxes.learn("b", "t", 0);
        assert_eq!(outboxes.number("b"), ("t".into(), 1));
    }
}
