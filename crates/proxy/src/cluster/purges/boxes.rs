//! What all members are to be told, and what some of them have missed.

use super::late_orders::LateOrders;
use super::members_behind::Behind;
use super::orders::Order;
use super::outbox::{Lag, Outbox};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use weir_policy::route::NODES_MAX;
use weir_semantics::BEHIND_NAMES_MAX;

/// Members that are known at once: those that have left are among them.
const MEMBERS_MAX: usize = 2 * NODES_MAX;

/// How long a member has to answer which ones are behind, at a process that has told no purge yet:
/// none is held for what it has told.
const FIRST_PATIENCE: Duration = Duration::from_secs(1);

/// The outboxes of all members.
#[derive(Debug)]
pub(super) struct Boxes {
    pub(super) by_member: BTreeMap<Box<str>, Outbox>,
    pub(super) late: LateOrders,
    /// By then all that was told was to be answered.
    pub(super) last_until: Option<Instant>,
    /// So long after it members still hold the targets.
    pub(super) patience: Duration,
}

impl Default for Boxes {
    fn default() -> Self {
        Self {
            by_member: BTreeMap::new(),
            late: LateOrders::default(),
            last_until: None,
            patience: FIRST_PATIENCE,
        }
    }
}

impl Boxes {
    /// `member` was not told in time what was under way and waits: that is late.
    pub(super) fn fail(&mut self, member: &str, why: &str, due: Instant) {
        let Some(outbox) = self.by_member.get_mut(member) else {
            return;
        };
        let mut first_due = due;
        // taken: this may be called for each change that the message under way says
        for what in std::mem::take(&mut outbox.sent) {
            self.late.add(&what);
        }
        while let Some(mut order) = outbox.queue.take_first() {
            first_due = first_due.min(order.due);
            order.answer(&Err(why.to_owned()));
            self.late.add(&order.what);
        }
        outbox.due = None;
        // it is in step once a message that says all of that is answered
        outbox.has_news = true;
        (outbox.news_due, outbox.sent_news_due) = (None, None);
        let is_new = outbox.lag.is_none();
        let lag = outbox.lag.get_or_insert_with(|| Lag::new(String::new()));
        lag.failing = Some(why.to_owned());
        lag.told = 0;
        if is_new {
            self.tell_news(member, first_due);
        }
    }

    /// Has all but `member` told which members are behind. They have held what was to be answered
    /// at `due` for as long as they have to answer this: one that has not, is behind, too.
    pub(super) fn tell_news(&mut self, member: &str, due: Instant) {
        let due = due + self.patience;
        for (name, outbox) in &mut self.by_member {
            if **name != *member {
                outbox.has_news = true;
                if outbox.failing().is_some() {
                    continue;
                }
                outbox.news_due = Some(outbox.news_due.map_or(due, |known| known.min(due)));
            }
        }
    }

    /// Has all but `member` told that it is in step again, by no time: until then they ask it for
    /// nothing, and miss nothing. Were that due, members that fail and are back could have each
    /// other fail for ever.
    pub(super) fn tell_good_news(&mut self, member: &str) {
        for (name, outbox) in &mut self.by_member {
            outbox.has_news |= **name != *member;
        }
    }

    /// `member` is to validate what it has stored before.
    pub(super) fn demand_validation(&mut self, member: &str, now: Instant) {
        let Some(outbox) = self.by_member.get_mut(member) else {
            return;
        };
        let is_new = outbox.lag.is_none();
        let why = "it has not been told to validate what it has";
        let lag = outbox.lag.get_or_insert_with(|| Lag::new(why.to_owned()));
        lag.must_validate = true;
        if is_new {
            self.tell_news(member, now);
        }
    }

    /// Purges that the member of `outbox` was not told in time, and is to be told yet.
    pub(super) fn overdue_in(&self, outbox: &Outbox) -> u64 {
        let lag = outbox.lag.as_ref().filter(|_| !outbox.is_given_up);
        lag.map_or(0, |lag| {
            self.late.from(lag.told).count() as u64 + u64::from(lag.must_validate)
        })
    }

    pub(super) fn behind(&self) -> impl Iterator<Item = &str> {
        let behind = self.by_member.iter();
        let behind = behind.filter(|(_, outbox)| outbox.is_behind());
        behind.map(|(name, _)| &**name)
    }

    /// What `member` is told of the others.
    pub(super) fn behind_for(&self, member: &str) -> Behind {
        let others = self.behind().filter(|name| *name != member);
        let names: Vec<Box<str>> = others.take(BEHIND_NAMES_MAX + 1).map(Into::into).collect();
        if names.len() > BEHIND_NAMES_MAX {
            Behind::All
        } else {
            Behind::These(names)
        }
    }

    /// The members are these.
    pub(super) fn meet(&mut self, members: &BTreeSet<&str>, now: Instant) {
        for (name, outbox) in &mut self.by_member {
            let is_member = members.contains(&**name);
            if !is_member {
                outbox.away.get_or_insert(now);
            } else {
                outbox.away = None;
                outbox.is_given_up = false;
            }
        }
        for name in members {
            if !self.by_member.contains_key(*name) {
                self.by_member.insert((*name).into(), Outbox::default());
            }
        }
        while self.by_member.len() > MEMBERS_MAX {
            let boxes = self.by_member.iter();
            let oldest = boxes.filter_map(|(name, outbox)| Some((outbox.away?, name.clone())));
            let Some((_, oldest)) = oldest.min() else {
                break;
            };
            self.by_member.remove(&oldest);
        }
    }

    /// `member` is to be told `order`, unless it fails.
    pub(super) fn put(&mut self, member: &str, mut order: Order) {
        let Some(outbox) = self.by_member.get_mut(member) else {
            return;
        };
        if let Some(why) = outbox.failing() {
            let why = why.to_owned();
            return order.answer(&Err(why));
        }
        if let Err(mut order) = outbox.put(order) {
            let why = "too many purges wait for it";
            order.answer(&Err(why.to_owned()));
            self.late.add(&order.what);
            self.fail(member, why, order.due);
        }
    }
}
