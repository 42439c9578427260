//! What the other members are to be told, by member.
//!
//! One message to a member is under way at a time; what comes meanwhile waits and is sent with the
//! next one. What a member was not told in time stays, and is sent again until the member has
//! answered, or is none any more. Memory is bounded: where too much waits, the member is told to
//! purge everything instead.

use super::PurgedTarget;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};
use weir_policy::route::NODES_MAX;
use weir_semantics::{PURGE_ORDERS_MAX, PurgeOutcome};

/// Purges that wait to be told to one member.
const WAITING_MAX: usize = 4096;

/// Bytes of their URLs: more than the longest URL has.
const WAITING_BYTES_MAX: usize = 4 << 20;

/// Bytes of URLs after which a message has no further purge.
const BATCH_BYTES_MAX: usize = 512 << 10;

/// What became of a purge at one member; or why it is not known to have been applied there.
pub(crate) type MemberOutcome = Result<PurgeOutcome, String>;

/// The outboxes of all members.
#[derive(Debug, Default)]
pub(crate) struct Outboxes {
    boxes: Mutex<BTreeMap<Box<str>, Outbox>>,
    /// Wakes the task that sends.
    wake: Notify,
}

/// What one member is to be told.
#[derive(Debug)]
struct Outbox {
    waiting: VecDeque<Order>,
    waiting_bytes: usize,
    /// A task sends its messages.
    is_served: bool,
    /// Why the last message was not answered.
    failing: Option<String>,
    /// The operator knows.
    is_reported: bool,
    /// The session of the member's process, and the number of the last message in it.
    sequence: (String, u64),
}

/// A purge that a member is to be told.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) what: PurgedTarget,
    /// Nothing waits for it any longer than this.
    pub(crate) until: Instant,
    reply: Option<oneshot::Sender<MemberOutcome>>,
}

/// The answer of a member that is awaited.
#[derive(Debug)]
pub(crate) struct Awaited {
    pub(crate) member: Box<str>,
    reply: oneshot::Receiver<MemberOutcome>,
}

impl Order {
    fn bytes(&self) -> usize {
        match &self.what {
            PurgedTarget::Invalidated { url, .. } | PurgedTarget::Url(url) => url.len(),
            PurgedTarget::All => 0,
        }
    }

    fn answer(&mut self, outcome: MemberOutcome) {
        if let Some(reply) = self.reply.take() {
            // the request may be over
            let _ = reply.send(outcome);
        }
    }
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            is_served: false,
            failing: None,
            is_reported: false,
            sequence: ("-".to_owned(), 0),
        }
    }
}

impl Outbox {
    fn push(&mut self, mut order: Order) {
        if let Some(why) = &self.failing {
            order.answer(Err(why.clone()));
            if self.waiting.iter().any(|other| other.what == order.what) {
                return;
            }
        }
        self.put(order);
    }

    /// Puts `order` behind the others; all are one, to purge everything, if there are too many.
    fn put(&mut self, mut order: Order) {
        let bytes = self.waiting_bytes + order.bytes();
        if self.waiting.len() >= WAITING_MAX || bytes > WAITING_BYTES_MAX {
            for mut order in self.waiting.drain(..) {
                order.answer(Err("too many purges wait for it".into()));
            }
            order.answer(Err("too many purges wait for it".into()));
            order.what = PurgedTarget::All;
            self.waiting_bytes = 0;
        }
        self.waiting_bytes += order.bytes();
        self.waiting.push_back(order);
    }

    fn fail(&mut self, why: &str) {
        for order in &mut self.waiting {
            order.answer(Err(why.to_owned()));
        }
        self.failing = Some(why.to_owned());
    }
}

impl Outboxes {
    fn boxes(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Outbox>> {
        self.boxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `members` told of `targets`; the answers are awaited until then. Where a member has not
    /// answered lately the answer is there already: it was not told.
    pub(crate) fn tell<'m>(
        &self,
        members: impl Iterator<Item = &'m str>,
        targets: &[PurgedTarget],
        until: Instant,
    ) -> Vec<Awaited> {
        let mut awaited = Vec::new();
        let mut boxes = self.boxes();
        if boxes.len() > 2 * NODES_MAX {
            // of nodes that have left
            boxes.retain(|_, outbox| outbox.is_served || !outbox.waiting.is_empty());
        }
        for member in members {
            let outbox = boxes.entry(member.into()).or_default();
            for what in targets {
                let (reply, receiver) = oneshot::channel();
                outbox.push(Order {
                    what: what.clone(),
                    until,
                    reply: Some(reply),
                });
                awaited.push(Awaited {
                    member: member.into(),
                    reply: receiver,
                });
            }
        }
        drop(boxes);
        self.wake.notify_one();
        awaited
    }

    /// The answers to what was told: each comes by the time that was given, or is that it did not.
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
                    if let Some(outbox) = self.boxes().get_mut(&member) {
                        // what comes next does not wait for it
                        outbox.fail(why);
                    }
                    Err(why.into())
                }
            };
            answers.push((member, outcome));
        }
        answers
    }

    /// Ready when there may be a member that is to be told something and that no task serves.
    pub(crate) async fn wait(&self) {
        self.wake.notified().await;
    }

    /// The members that are to be told something and that no task serves: the caller does now, with
    /// each until [`Self::next`] has nothing for it.
    pub(crate) fn unserved(&self) -> Vec<Box<str>> {
        let mut boxes = self.boxes();
        let unserved = boxes
            .iter_mut()
            .filter(|(_, outbox)| !outbox.is_served && !outbox.waiting.is_empty());
        let unserved = unserved.map(|(name, outbox)| {
            outbox.is_served = true;
            name.clone()
        });
        unserved.collect()
    }

    /// What `member` is to be told next; `None` if there is nothing: it is not served any more.
    pub(crate) fn next(&self, member: &str) -> Option<Vec<Order>> {
        let mut boxes = self.boxes();
        let outbox = boxes.get_mut(member)?;
        let (mut orders, mut bytes) = (Vec::new(), 0);
        while let Some(order) = outbox.waiting.pop_front() {
            bytes += order.bytes();
            outbox.waiting_bytes -= order.bytes();
            orders.push(order);
            if bytes >= BATCH_BYTES_MAX || orders.len() == PURGE_ORDERS_MAX {
                break;
            }
        }
        if orders.is_empty() {
            outbox.is_served = false;
            return None;
        }
        Some(orders)
    }

    /// The session of the process of `member`, and the number for the next message.
    pub(crate) fn number(&self, member: &str) -> (String, u64) {
        let mut boxes = self.boxes();
        let outbox = boxes.entry(member.into()).or_default();
        outbox.sequence.1 = outbox.sequence.1.saturating_add(1);
        outbox.sequence.clone()
    }

    /// The process of `member` has this session, and has received messages up to this number.
    pub(crate) fn learn(&self, member: &str, session: &str, number: u64) {
        if let Some(outbox) = self.boxes().get_mut(member) {
            outbox.sequence = (session.to_owned(), number);
        }
    }

    /// `member` has answered; whether [`Self::failed`] was true before.
    pub(crate) fn delivered(
        &self,
        member: &str,
        orders: Vec<Order>,
        outcomes: Vec<PurgeOutcome>,
    ) -> bool {
        for (mut order, outcome) in orders.into_iter().zip(outcomes) {
            order.answer(Ok(outcome));
        }
        let mut boxes = self.boxes();
        boxes.get_mut(member).is_some_and(|outbox| {
            outbox.failing = None;
            std::mem::take(&mut outbox.is_reported)
        })
    }

    /// `member` has not answered: it will be told again. Whether that is the first time since it
    /// has answered.
    pub(crate) fn failed(&self, member: &str, orders: Vec<Order>, why: &str) -> bool {
        let mut boxes = self.boxes();
        let Some(outbox) = boxes.get_mut(member) else {
            return false;
        };
        let is_first = !std::mem::replace(&mut outbox.is_reported, true);
        let later = std::mem::take(&mut outbox.waiting);
        outbox.waiting_bytes = 0;
        outbox.fail(why);
        let orders: Vec<Order> = orders.into_iter().chain(later).collect();
        // each with each would be millions of comparisons
        let mut seen = HashSet::with_capacity(orders.len());
        let is_new: Vec<bool> = orders
            .iter()
            .map(|order| seen.insert(&order.what))
            .collect();
        drop(seen);
        for (mut order, is_new) in orders.into_iter().zip(is_new) {
            order.answer(Err(why.to_owned()));
            if is_new {
                outbox.put(order);
            }
        }
        is_first
    }

    /// Drops what `member` was to be told: it is none any more.
    pub(crate) fn remove(&self, member: &str) {
        self.boxes().remove(member);
    }

    /// Purges that members were not told in time, and are to be told yet.
    pub(crate) fn overdue(&self) -> u64 {
        let boxes = self.boxes();
        let failing = boxes.values().filter(|outbox| outbox.failing.is_some());
        failing.map(|outbox| outbox.waiting.len() as u64).sum()
    }
}

/// How long a member that has not answered is left alone.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn url(number: usize) -> PurgedTarget {
        PurgedTarget::Url(format!("http://a/{number}"))
    }

    fn outcome(removed: u64) -> PurgeOutcome {
        PurgeOutcome {
            removed,
            is_durable: true,
        }
    }

    fn whats(orders: &[Order]) -> Vec<PurgedTarget> {
        orders.iter().map(|order| order.what.clone()).collect()
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_hours(1)
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.expect("a runtime").block_on(future)
    }

    #[test]
    fn one_message_says_all_that_has_gathered_and_each_waiter_gets_its_own_answer() {
        let outboxes = Outboxes::default();
        let first = outboxes.tell(["b", "c"].into_iter(), &[url(0)], soon());
        let second = outboxes.tell(["b"].into_iter(), &[url(1), url(2)], soon());
        assert_eq!(outboxes.unserved(), ["b".into(), "c".into()]);
        assert!(outboxes.unserved().is_empty(), "they are served");
        let orders = outboxes.next("b").expect("orders");
        assert_eq!(whats(&orders), [url(0), url(1), url(2)]);
        outboxes.delivered("b", orders, (0..3).map(outcome).collect());
        assert!(outboxes.next("b").is_none());
        let orders = outboxes.next("c").expect("orders");
        outboxes.delivered("c", orders, vec![outcome(7)]);
        let answers = |awaited| block_on(outboxes.answers(awaited, soon()));
        let answered = |member: &str, removed| (member.into(), Ok(outcome(removed)));
        assert_eq!(answers(first), [answered("b", 0), answered("c", 7)]);
        assert_eq!(answers(second), [answered("b", 1), answered("b", 2)]);
    }

    #[test]
    fn member_that_fails_is_told_again_and_nothing_waits_for_it() {
        let outboxes = Outboxes::default();
        let members = || ["b"].into_iter();
        let first = outboxes.tell(members(), &[url(0)], soon());
        let _served = outboxes.unserved();
        let orders = outboxes.next("b").expect("orders");
        let during = outboxes.tell(members(), &[url(1)], soon());
        assert!(outboxes.failed("b", orders, "it is away"));
        let later = outboxes.tell(members(), &[url(0), url(2)], soon());
        for (_, answer) in [first, during, later]
            .into_iter()
            .flat_map(|awaited| block_on(outboxes.answers(awaited, soon())))
        {
            assert_eq!(answer, Err("it is away".into()));
        }
        assert_eq!(outboxes.overdue(), 3);
        let orders = outboxes.next("b").expect("orders");
        assert_eq!(whats(&orders), [url(0), url(1), url(2)]);
        assert!(!outboxes.failed("b", orders, "it is away"));
        let orders = outboxes.next("b").expect("orders");
        assert!(outboxes.delivered("b", orders, vec![outcome(0); 3]));
        assert_eq!(outboxes.overdue(), 0);
        let last = outboxes.tell(members(), &[url(3)], soon());
        let orders = outboxes.next("b").expect("orders");
        assert!(!outboxes.delivered("b", orders, vec![outcome(3)]));
        let answers = block_on(outboxes.answers(last, soon()));
        assert_eq!(answers[0].1, Ok(outcome(3)));
    }

    #[test]
    fn answer_that_does_not_come_in_time_is_none_and_the_next_one_is_not_awaited() {
        let outboxes = Outboxes::default();
        let now = Instant::now();
        let late = outboxes.tell(["b"].into_iter(), &[url(0)], now);
        let next = outboxes.tell(["b"].into_iter(), &[url(1)], soon());
        for awaited in [late, next] {
            let answers = block_on(outboxes.answers(awaited, now + Duration::from_millis(1)));
            assert_eq!(answers[0].1, Err("it did not answer in time".into()));
        }
    }

    #[test]
    fn member_that_missed_more_than_there_is_room_for_is_told_to_purge_everything() {
        let outboxes = Outboxes::default();
        for number in 0..=WAITING_MAX {
            drop(outboxes.tell(["b"].into_iter(), &[url(number)], soon()));
        }
        let orders = outboxes.next("b").expect("orders");
        assert_eq!(whats(&orders), [PurgedTarget::All]);
        let long = |number: usize| PurgedTarget::Url("x".repeat((1 << 20) - number));
        for number in 0..4 {
            drop(outboxes.tell(["b"].into_iter(), &[long(number)], soon()));
        }
        let orders = outboxes.next("b").map(|orders| orders.len());
        assert_eq!(orders, Some(1), "a long one has a message for itself");
        drop(outboxes.tell(["b"].into_iter(), &[long(4), long(5)], soon()));
        let orders = outboxes.next("b").expect("orders");
        assert!(
            whats(&orders) == [PurgedTarget::All],
            "beside {} others",
            orders.len()
        );
    }

    #[test]
    fn message_has_no_more_orders_than_one_may_have() {
        let outboxes = Outboxes::default();
        for number in 0..PURGE_ORDERS_MAX + 1 {
            drop(outboxes.tell(["b"].into_iter(), &[url(number)], soon()));
        }
        assert_eq!(
            outboxes.next("b").map(|orders| orders.len()),
            Some(PURGE_ORDERS_MAX)
        );
        assert_eq!(outboxes.next("b").map(|orders| orders.len()), Some(1));
    }

    #[test]
    fn numbers_go_on_from_what_the_member_has_received() {
        let outboxes = Outboxes::default();
        drop(outboxes.tell(["b"].into_iter(), &[url(0)], soon()));
        assert_eq!(outboxes.number("b"), ("-".into(), 1));
        outboxes.learn("b", "s", 41);
        assert_eq!(outboxes.number("b"), ("s".into(), 42));
        assert_eq!(outboxes.number("b"), ("s".into(), 43));
        outboxes.remove("b");
        assert!(outboxes.next("b").is_none());
    }
}
