//! Purges that members are to be told, in the order in which they were made. Equal ones are one,
//! which has the place of the last of them.

use super::PurgedTarget;
use super::outboxes::MemberOutcome;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;

/// What tells members something. Each waits for the turn of its own kind alone: a purge of the
/// operator is not to wait behind unsafe requests, of which clients send as many as they like.
#[derive(Clone, Copy, Debug)]
pub(super) enum Initiator {
    /// A client, by an unsafe request.
    Client,
    /// The operator, by a purge.
    Operator,
}

impl Initiator {
    /// What tells `what`.
    pub(super) const fn of(what: &PurgedTarget) -> Self {
        match what.is_of_operator() {
            true => Self::Operator,
            false => Self::Client,
        }
    }
}

/// A purge that a member is to be told.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) what: Arc<PurgedTarget>,
    /// Nothing waits for it any longer than this.
    pub(crate) until: Instant,
    /// The member is behind if it has not answered by then.
    pub(super) due: Instant,
    pub(super) replies: Vec<oneshot::Sender<MemberOutcome>>,
}

impl Order {
    /// One that nothing waits for.
    pub(super) const fn again(what: Arc<PurgedTarget>, until: Instant) -> Self {
        Self {
            what,
            until,
            due: until,
            replies: Vec::new(),
        }
    }

    pub(super) fn answer(&mut self, outcome: &MemberOutcome) {
        for reply in self.replies.drain(..) {
            // the request may be over
            let _ = reply.send(outcome.clone());
        }
    }
}

/// Orders by number: each is greater than all before it.
#[derive(Debug, Default)]
pub(super) struct OrderQueue {
    orders: BTreeMap<u64, Order>,
    numbers: HashMap<Arc<PurgedTarget>, u64>,
    next: u64,
    /// Of all of them.
    amount: Amount,
    /// Of those of the operator.
    of_operator: Amount,
}

/// How much some orders are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) orders: usize,
    /// Of their URLs.
    pub(super) bytes: usize,
}

impl Amount {
    /// One order.
    pub(super) const fn of(what: &PurgedTarget) -> Self {
        Self {
            orders: 1,
            bytes: what.url_bytes(),
        }
    }

    /// Whether that and `more` are no more than `max`.
    pub(super) const fn has_room(self, more: Self, max: Self) -> bool {
        self.orders + more.orders <= max.orders && self.bytes + more.bytes <= max.bytes
    }

    const fn add(&mut self, what: &PurgedTarget) {
        self.orders += 1;
        self.bytes += what.url_bytes();
    }

    const fn take(&mut self, what: &PurgedTarget) {
        self.orders -= 1;
        self.bytes -= what.url_bytes();
    }
}

impl OrderQueue {
    /// Puts `order` behind the others. An equal one before it goes: what waits for that waits for
    /// this.
    pub(super) fn put(&mut self, mut order: Order) {
        if let Some(mut earlier) = self.remove(&order.what) {
            order.until = order.until.max(earlier.until);
            order.due = order.due.min(earlier.due);
            order.replies.append(&mut earlier.replies);
        }
        self.amount.add(&order.what);
        if order.what.is_of_operator() {
            self.of_operator.add(&order.what);
        }
        self.numbers.insert(Arc::clone(&order.what), self.next);
        self.orders.insert(self.next, order);
        self.next += 1;
    }

    fn remove(&mut self, what: &PurgedTarget) -> Option<Order> {
        let number = self.numbers.remove(what)?;
        let order = self.orders.remove(&number)?;
        self.amount.take(&order.what);
        if order.what.is_of_operator() {
            self.of_operator.take(&order.what);
        }
        Some(order)
    }

    /// The first one.
    pub(super) fn first(&self) -> Option<&Order> {
        self.orders.values().next()
    }

    pub(super) fn take_first(&mut self) -> Option<Order> {
        let what = Arc::clone(&self.first()?.what);
        self.remove(&what)
    }

    /// What those have to say that have this number or a greater one, with their numbers.
    pub(super) fn from(&self, number: u64) -> impl Iterator<Item = (u64, &Arc<PurgedTarget>)> {
        let orders = self.orders.range(number..);
        orders.map(|(number, order)| (*number, &order.what))
    }

    pub(super) fn contains(&self, what: &PurgedTarget) -> bool {
        self.numbers.contains_key(what)
    }

    /// Drops those of which `keeps` is `false`.
    pub(super) fn retain(&mut self, keeps: impl Fn(&PurgedTarget) -> bool) {
        let orders = self.orders.values();
        let gone = orders.filter(|order| !keeps(&order.what));
        let gone: Vec<Arc<PurgedTarget>> = gone.map(|order| Arc::clone(&order.what)).collect();
        for what in gone {
            self.remove(&what);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.orders.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.amount.bytes
    }

    /// All of them.
    pub(super) const fn amount(&self) -> Amount {
        self.amount
    }

    /// Those of the operator.
    pub(super) const fn of_operator(&self) -> Amount {
        self.of_operator
    }

    /// Those of clients.
    pub(super) const fn of_clients(&self) -> Amount {
        Amount {
            orders: self.amount.orders - self.of_operator.orders,
            bytes: self.amount.bytes - self.of_operator.bytes,
        }
    }

    /// The number of the next one.
    pub(super) const fn end(&self) -> u64 {
        self.next
    }

    /// When the first answer is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.orders.values().map(|order| order.due).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn url(number: usize) -> PurgedTarget {
        PurgedTarget::Url(format!("http://a/{number}"))
    }

    #[test]
    fn equal_orders_are_one_with_the_last_place_both_times_and_all_that_waits() {
        let (mut queue, now) = (OrderQueue::default(), Instant::now());
        let mut replies = Vec::new();
        for (number, after) in [(0, 2), (1, 1), (0, 1), (0, 3)] {
            let (reply, receiver) = oneshot::channel();
            replies.push((number, receiver));
            let mut order = Order::again(url(number).into(), now + Duration::from_secs(after));
            order.replies.push(reply);
            queue.put(order);
        }
        assert_eq!((queue.len(), queue.bytes()), (2, 20));
        assert_eq!(queue.due(), Some(now + Duration::from_secs(1)));
        let numbers: Vec<u64> = queue.from(0).map(|(number, _)| number).collect();
        assert_eq!(numbers, [1, 3]);
        assert_eq!(
            queue.take_first().map(|it| (*it.what).clone()),
            Some(url(1))
        );
        let mut last = queue.take_first().expect("an order");
        assert_eq!(last.until, now + Duration::from_secs(3));
        last.answer(&Err("no".into()));
        for (number, mut receiver) in replies {
            let answer = receiver.try_recv().ok();
            assert_eq!(answer, (number == 0).then(|| Err("no".into())));
        }
        assert_eq!((queue.bytes(), queue.end()), (0, 4));
    }
}
