//! What one member is to be told, and whether it is behind.

use super::PurgedTarget;
use super::late_orders::LateOrders;
use super::members_behind::Behind;
use super::orders::{Amount, Initiator, Order, OrderQueue};
use std::sync::Arc;
use std::time::Instant;
use weir_semantics::{PURGE_MESSAGE_BYTES_MAX, PURGE_ORDERS_MAX, PurgeOutcome};

/// What may wait to be told to one member that is not behind, for clients: bytes of URLs are more
/// than the longest URL has. With more, the member is behind.
pub(super) const WAITING_MAX: Amount = Amount {
    orders: 4096,
    bytes: 4 << 20,
};

/// The same for the operator.
const OPERATOR_WAITING_MAX: Amount = Amount {
    orders: 1024,
    bytes: 1 << 20,
};

/// What may wait for a member when the turn of a client comes: no more than the next message says.
/// So what a client has told is in the second message from then on at the latest, and a member that
/// answers each message in half the time that it has is never behind, however much clients change.
const TURN_WAITING_MAX: Amount = Amount {
    orders: PURGE_ORDERS_MAX,
    bytes: PURGE_MESSAGE_BYTES_MAX - HEAD_BYTES - PURGE_ORDERS_MAX * ORDER_BYTES,
};

/// Bytes of a message without its orders: more than its first two lines and its proof have.
const HEAD_BYTES: usize = 4096;

/// Bytes of an order without its URL, and more.
const ORDER_BYTES: usize = 64;

/// What one member is to be told.
#[derive(Debug)]
pub(super) struct Outbox {
    /// What it is to be told in time.
    pub(super) queue: OrderQueue,
    /// What the message under way says, if there is one.
    pub(super) sent: Vec<Arc<PurgedTarget>>,
    /// By then it has to answer: what is under way and what waits.
    pub(super) due: Option<Instant>,
    /// It is to be told which members are behind.
    pub(super) has_news: bool,
    /// It has to answer that by then: there are some that it does not know.
    pub(super) news_due: Option<Instant>,
    /// By then it has to answer what the message under way says of them.
    pub(super) sent_news_due: Option<Instant>,
    pub(super) lag: Option<Lag>,
    /// Since when it is no member.
    pub(super) away: Option<Instant>,
    /// What it misses is not noted any more, as it has been away for so long.
    pub(super) is_given_up: bool,
    /// A task sends its messages.
    pub(super) is_served: bool,
    /// Messages that it has not answered, or has not taken for good.
    pub(super) failures: u64,
    /// The operator knows that it fails.
    pub(super) is_reported: bool,
    /// The session of the member's process, and the number of the last message in it.
    pub(super) sequence: (String, u64),
}

/// A member is behind: it has not been told all.
#[derive(Debug)]
pub(super) struct Lag {
    /// Why it was not told in time; `None`: it answers again, and is told in time what comes.
    pub(super) failing: Option<String>,
    /// Late orders that it has been told: those before this number.
    pub(super) told: u64,
    /// It is not behind any more once it has been told those before this number; of no meaning
    /// while it fails.
    pub(super) end: u64,
    /// What it has missed beside late orders is not known: it is to validate all that it has.
    pub(super) must_validate: bool,
}

impl Lag {
    pub(super) const fn new(why: String) -> Self {
        Self {
            failing: Some(why),
            told: 0,
            end: 0,
            must_validate: false,
        }
    }

    /// The member has answered `batch`; the next late order has the number `end`. If it does not
    /// validate durably what it has, it is told to once more.
    pub(super) fn take(&mut self, batch: &Batch, end: u64, is_durable: bool) {
        if self.failing.take().is_some() {
            self.end = end;
        }
        if batch.validates {
            self.must_validate = false;
        }
        self.must_validate |= !is_durable;
        if let Some((from, to)) = batch.late
            && from <= self.told
        {
            self.told = self.told.max(to);
        }
    }
}

/// One message.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) orders: Vec<Order>,
    /// The members that are behind.
    pub(crate) behind: Behind,
    /// It says nothing that its member misses until it is told: it is not behind for that.
    pub(crate) may_wait: bool,
    /// It has the late orders from the first number on and before the second one.
    pub(super) late: Option<(u64, u64)>,
    /// Its first order is to validate, for a member that must.
    pub(super) validates: bool,
}

impl Batch {
    /// Whether all that it says to validate was written down by a member with these outcomes.
    pub(super) fn validates_durably(&self, outcomes: &[PurgeOutcome]) -> bool {
        let mut pairs = self.orders.iter().zip(outcomes);
        pairs.all(|(order, outcome)| outcome.is_durable || *order.what != PurgedTarget::Validate)
    }
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            queue: OrderQueue::default(),
            sent: Vec::new(),
            due: None,
            has_news: false,
            news_due: None,
            sent_news_due: None,
            lag: None,
            away: None,
            is_given_up: false,
            is_served: false,
            failures: 0,
            is_reported: false,
            sequence: ("-".to_owned(), 0),
        }
    }
}

impl Outbox {
    /// Why it is not told in time what comes.
    pub(super) fn failing(&self) -> Option<&str> {
        self.lag.as_ref()?.failing.as_deref()
    }

    /// Whether it misses late orders.
    pub(super) const fn is_behind(&self) -> bool {
        self.lag.is_some() && !self.is_given_up
    }

    /// Whether it is to be told at once what comes, and so much more of `initiator` is to wait for
    /// its turn. One turn is never too much for a member that has been told all.
    pub(super) fn is_full(&self, initiator: Initiator, more: Amount) -> bool {
        let is_told = self.away.is_none() && self.failing().is_none();
        let (waiting, max) = match initiator {
            // purges of the operator are told before it
            Initiator::Client => (self.queue.amount(), TURN_WAITING_MAX),
            Initiator::Operator => self.waiting(initiator),
        };
        is_told && waiting.orders > 0 && !waiting.has_room(more, max)
    }

    /// What of `initiator` waits, and how much may at all.
    const fn waiting(&self, initiator: Initiator) -> (Amount, Amount) {
        match initiator {
            Initiator::Client => (self.queue.of_clients(), WAITING_MAX),
            Initiator::Operator => (self.queue.of_operator(), OPERATOR_WAITING_MAX),
        }
    }

    /// Puts `order` behind the others.
    ///
    /// # Errors
    ///
    /// The order, if there is no room for it.
    pub(super) fn put(&mut self, order: Order) -> Result<(), Order> {
        let is_known = self.queue.contains(&order.what);
        let (waiting, max) = self.waiting(Initiator::of(&order.what));
        if !is_known && !waiting.has_room(Amount::of(&order.what), max) {
            return Err(order);
        }
        self.due = Some(self.due.map_or(order.due, |due| due.min(order.due)));
        self.queue.put(order);
        Ok(())
    }

    /// By when it has to know which members are behind, if it answers and does not know.
    pub(super) fn awaited_news(&self) -> Option<Instant> {
        let answers = self.away.is_none() && self.failing().is_none();
        let dues = self.news_due.into_iter().chain(self.sent_news_due);
        dues.min().filter(|_| answers)
    }

    /// When it has to answer next; `None` if it fails already.
    pub(super) fn next_due(&self) -> Option<Instant> {
        if self.away.is_some() || self.failing().is_some() {
            return None;
        }
        let dues = self.due.into_iter().chain(self.awaited_news());
        dues.min()
    }

    /// Whether there is something to tell.
    pub(super) fn is_waiting(&self) -> bool {
        let has_orders = !self.queue.is_empty() || self.lag.is_some();
        self.away.is_none() && (has_orders || self.has_news)
    }

    /// Whether it has not answered all that it is to be told, if it is a member.
    pub(super) fn is_untold(&self) -> bool {
        // a message that is under way is of the task
        self.away.is_none() && (self.is_served || self.is_waiting())
    }

    /// The next message, which names `behind`; `None` if there is nothing to tell. `until` is for
    /// late orders.
    pub(super) fn next(
        &mut self,
        late: &LateOrders,
        behind: Behind,
        until: Instant,
    ) -> Option<Batch> {
        if !self.is_waiting() {
            return None;
        }
        self.has_news = false;
        let news_dues = self.news_due.take().into_iter().chain(self.sent_news_due);
        self.sent_news_due = news_dues.min();
        let mut batch = Batch {
            orders: Vec::new(),
            behind,
            may_wait: false,
            late: None,
            validates: false,
        };
        let mut room = Room::default();
        if let Some(lag) = &self.lag {
            if lag.must_validate {
                batch.validates = true;
                let what = Arc::new(PurgedTarget::Validate);
                let _has_room = room.take(&what);
                batch.orders.push(Order::again(what, until));
            }
            let mut end = late.end();
            for (number, what) in late.from(lag.told) {
                if !room.take(what) {
                    end = number;
                    break;
                }
                batch.orders.push(Order::again(Arc::clone(what), until));
            }
            batch.late = Some((lag.told, end));
        }
        if self.failing().is_none() {
            while self
                .queue
                .first()
                .is_some_and(|first| room.take(&first.what))
            {
                batch.orders.extend(self.queue.take_first());
            }
        }
        let has_due = self.sent_news_due.is_some() || self.lag.is_some();
        batch.may_wait = batch.orders.is_empty() && !has_due;
        let sent = batch.orders.iter().map(|order| Arc::clone(&order.what));
        self.sent = sent.collect();
        Some(batch)
    }
}

/// Room of a message.
#[derive(Debug, Default)]
struct Room {
    orders: usize,
    bytes: usize,
}

impl Room {
    /// Whether there is room for the order; it is taken then. For the first one there is: no URL
    /// is longer.
    fn take(&mut self, what: &PurgedTarget) -> bool {
        let bytes = self.bytes + ORDER_BYTES + what.url_bytes();
        let has_room = bytes <= PURGE_MESSAGE_BYTES_MAX - HEAD_BYTES;
        if self.orders == PURGE_ORDERS_MAX || self.orders > 0 && !has_room {
            return false;
        }
        self.orders += 1;
        self.bytes = bytes;
        true
    }
}
