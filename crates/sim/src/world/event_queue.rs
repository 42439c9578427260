//! The event queue: what is to come, the earliest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Keys that are given back in their order, smallest first. Each is given once.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    /// Before all of the heap, if it is there: what is made last often comes next, and need not go
    /// through it.
    first: Option<u128>,
    heap: BinaryHeap<Reverse<u128>>,
}

impl EventQueue {
    pub(crate) fn push(&mut self, key: u128) {
        match self.first {
            Some(first) if first < key => self.heap.push(Reverse(key)),
            Some(first) => {
                self.heap.push(Reverse(first));
                self.first = Some(key);
            }
            None if self.heap.peek().is_none_or(|top| key < top.0) => self.first = Some(key),
            None => self.heap.push(Reverse(key)),
        }
    }

    /// The first key, if it is below `bound`.
    pub(crate) fn pop_below(&mut self, bound: u128) -> Option<u128> {
        let top = || self.heap.peek().map(|top| top.0);
        let key = self.first.or_else(top).filter(|key| *key < bound)?;
        if self.first.take().is_none() {
            self.heap.pop();
        }
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn event_queue_gives_every_key_once_in_ascending_order() {
        let chance = &mut weir_workload::Chance::new(3, 0);
        let (mut queue, mut naive) = (EventQueue::default(), BTreeSet::new());
        let mut at = 0;
        for made in 0..30_000_u128 {
            // as links and ways have them, and any
            let wait = match chance.below(4) {
                0 => 5,
                1 => 10,
                2 => 30,
                _ => chance.below(60),
            };
            let key = u128::from(at + wait) << 64 | made;
            queue.push(key);
            naive.insert(key);
            at += chance.below(3);
            let bound = u128::from(at) << 64;
            while let Some(key) = queue.pop_below(bound) {
                assert_eq!(naive.pop_first(), Some(key));
                assert!(key < bound);
            }
            assert!(naive.first().is_none_or(|first| *first >= bound));
        }
        while let Some(key) = queue.pop_below(u128::MAX) {
            assert_eq!(naive.pop_first(), Some(key));
        }
        assert!(naive.is_empty());
    }
}
