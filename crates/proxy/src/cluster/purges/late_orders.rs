//! What members that are behind have missed: one list for all of them, so that its memory does not
//! grow with their number. Where it would have too much, it has less exact orders, which need no
//! URLs.

use super::PurgedTarget;
use super::orders::{Order, OrderQueue};
use std::sync::Arc;
use std::time::Instant;

/// The most purges of the list.
pub(super) const LATE_ORDERS_MAX: usize = 4096;

/// The most bytes of their URLs.
pub(super) const LATE_BYTES_MAX: usize = 4 << 20;

/// Each member has been told the orders up to a number.
#[derive(Debug, Default)]
pub(super) struct LateOrders(OrderQueue);

impl LateOrders {
    /// `what` was missed, now. An equal order comes again behind the others: it may be under way to
    /// a member, which has applied it before.
    pub(super) fn add(&mut self, what: &Arc<PurgedTarget>) {
        let is_invalidation = matches!(**what, PurgedTarget::Invalidated { .. });
        if **what == PurgedTarget::All {
            self.0.retain(|_| false);
        } else if self.0.contains(&PurgedTarget::All) {
            return self.put(PurgedTarget::All.into());
        } else if is_invalidation && self.0.contains(&PurgedTarget::Validate) {
            return self.put(PurgedTarget::Validate.into());
        }
        if !self.0.contains(what) && !self.has_room(what) {
            // clients must not be able to have anything purged that they do not change
            self.0
                .retain(|other| !matches!(other, PurgedTarget::Invalidated { .. }));
            self.put(PurgedTarget::Validate.into());
            if is_invalidation {
                return;
            }
            if !self.has_room(what) {
                // the operator has it purged
                self.0.retain(|_| false);
                return self.put(PurgedTarget::All.into());
            }
        }
        self.put(Arc::clone(what));
    }

    fn put(&mut self, what: Arc<PurgedTarget>) {
        self.0.put(Order::again(what, Instant::now()));
    }

    fn has_room(&self, what: &PurgedTarget) -> bool {
        self.0.len() < LATE_ORDERS_MAX && self.0.bytes() + what.url_bytes() <= LATE_BYTES_MAX
    }

    /// Those that a member has not been told that has been told all before `number`.
    pub(super) fn from(&self, number: u64) -> impl Iterator<Item = (u64, &Arc<PurgedTarget>)> {
        self.0.from(number)
    }

    /// The number of the next one.
    pub(super) const fn end(&self) -> u64 {
        self.0.end()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// No member is behind any more.
    pub(super) fn clear(&mut self) {
        self.0.retain(|_| false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Mode;

    fn invalidated(url: String) -> Arc<PurgedTarget> {
        let mode = Mode::Gateway;
        Arc::new(PurgedTarget::Invalidated { mode, url })
    }

    fn purged(url: String) -> Arc<PurgedTarget> {
        Arc::new(PurgedTarget::Url(url))
    }

    fn whats(late: &LateOrders) -> Vec<PurgedTarget> {
        late.from(0).map(|(_, what)| (**what).clone()).collect()
    }

    #[test]
    fn equal_order_that_comes_again_is_told_to_a_member_that_was_told_the_first() {
        let mut late = LateOrders::default();
        late.add(&purged("a".into()));
        let told = late.end();
        late.add(&purged("b".into()));
        late.add(&purged("a".into()));
        assert_eq!(late.from(told).count(), 2);
        assert_eq!(late.len(), 2);
    }

    #[test]
    fn invalidations_without_room_are_one_that_drops_nothing() {
        for long in [0, LATE_BYTES_MAX / 8] {
            let mut late = LateOrders::default();
            late.add(&purged("http://a/".into()));
            for number in 0..=LATE_ORDERS_MAX {
                late.add(&invalidated(format!(
                    "http://a/{number}{}",
                    "x".repeat(long)
                )));
            }
            let expected = [
                PurgedTarget::Url("http://a/".into()),
                PurgedTarget::Validate,
            ];
            assert_eq!(whats(&late), expected);
            let told = late.end();
            late.add(&invalidated("http://b/".into()));
            assert_eq!(late.from(told).count(), 1, "it is told again");
            assert_eq!(late.len(), 2);
        }
    }

    #[test]
    fn purges_of_the_operator_without_room_are_one_of_everything() {
        let mut late = LateOrders::default();
        for number in 0..=LATE_ORDERS_MAX {
            late.add(&purged(format!("http://a/{number}")));
        }
        assert_eq!(whats(&late), [PurgedTarget::All]);
        let told = late.end();
        late.add(&invalidated("http://b/".into()));
        assert_eq!((late.from(told).count(), late.len()), (1, 1));
    }
}
