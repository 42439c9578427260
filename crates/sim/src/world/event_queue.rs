//! The event queue: what is to come, the earliest first.
//!
//! Most events need no search for their place: the packets of one link leave it in the order in which they came to it, and requests that
//! take equally long to the proxy come to it in the order in which they were sent. Such events stand in [lanes](Lane), each of which is in order by
//! itself. The rest stands in a heap, and one key beside it. The earliest of those few heads is the next event.

use std::collections::VecDeque;

/// Keys that are given back in their order, smallest first. Each is given once, below [`NOTHING`].
#[derive(Debug)]
pub(super) struct EventQueue {
    lanes: [VecDeque<u128>; LANES],
    heap: Vec<u128>,
    /// The first of each lane, what is before all of the heap, and the first of that.
    heads: [u128; LANES + 2],
}

/// Where a key is likely to stand behind all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Packets that leave the one link from all servers.
    Link,
    /// Requests on their way, on connections that are there or on new ones: there are two lanes.
    Way,
    /// Nowhere.
    None,
}

const LANES: usize = 3;
/// What stands beside the heap: what is made last often comes next, and need not go through it.
const BESIDE: usize = LANES;
const HEAP: usize = LANES + 1;

/// The head of what is empty.
const NOTHING: u128 = u128::MAX;

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            lanes: Default::default(),
            heap: Vec::new(),
            heads: [NOTHING; LANES + 2],
        }
    }
}

impl EventQueue {
    pub(super) fn push(&mut self, key: u128, lane: Lane) {
        let has_place = match lane {
            Lane::Link => self.stands_behind(0, key),
            Lane::Way => self.stands_behind(1, key) || self.stands_behind(2, key),
            Lane::None => false,
        };
        if !has_place {
            self.push_anywhere(key);
        }
    }

    /// The first key, if it is below `bound`.
    pub(super) fn pop_below(&mut self, bound: u128) -> Option<u128> {
        let (mut head, mut key) = (0, self.heads[0]);
        for (other, first) in self.heads.iter().enumerate().skip(1) {
            if *first < key {
                (head, key) = (other, *first);
            }
        }
        if key >= bound {
            return None;
        }
        match head {
            BESIDE => self.heads[BESIDE] = NOTHING,
            HEAP => self.pop_heap(),
            lane => {
                self.lanes[lane].pop_front();
                self.heads[lane] = self.lanes[lane].front().copied().unwrap_or(NOTHING);
            }
        }
        Some(key)
    }

    /// Whether `key` belongs behind all of the lane; then it is there.
    fn stands_behind(&mut self, lane: usize, key: u128) -> bool {
        match self.lanes[lane].back() {
            Some(last) if *last > key => return false,
            Some(_) => {}
            None => self.heads[lane] = key,
        }
        self.lanes[lane].push_back(key);
        true
    }

    fn push_anywhere(&mut self, key: u128) {
        let beside = self.heads[BESIDE];
        if beside == NOTHING {
            if key < self.heads[HEAP] {
                self.heads[BESIDE] = key;
            } else {
                self.push_heap(key);
            }
        } else if key < beside {
            self.heads[BESIDE] = key;
            self.push_heap(beside);
        } else {
            self.push_heap(key);
        }
    }

    fn push_heap(&mut self, key: u128) {
        let mut place = self.heap.len();
        self.heap.push(key);
        while place > 0 {
            let parent = (place - 1) / WIDTH;
            if self.heap[parent] <= key {
                break;
            }
            self.heap[place] = self.heap[parent];
            place = parent;
        }
        self.heap[place] = key;
        self.heads[HEAP] = self.heap[0];
    }

    fn pop_heap(&mut self) {
        let Some(last) = self.heap.pop() else { return };
        let len = self.heap.len();
        if len == 0 {
            self.heads[HEAP] = NOTHING;
            return;
        }
        let mut place = 0;
        loop {
            let first = place * WIDTH + 1;
            if first >= len {
                break;
            }
            let least = first + least(&self.heap[first..len.min(first + WIDTH)]);
            let key = self.heap[least];
            if last <= key {
                break;
            }
            self.heap[place] = key;
            place = least;
        }
        self.heap[place] = last;
        self.heads[HEAP] = self.heap[0];
    }
}

/// Which of some keys is the smallest. Nobody can guess which, so where there are four it is found without a branch.
fn least(keys: &[u128]) -> usize {
    if let [a, b, c, d] = keys {
        let (left, right) = (usize::from(b < a), 2 + usize::from(d < c));
        let is_right = usize::from(keys[right] < keys[left]);
        return left + (right - left) * is_right;
    }
    (1..keys.len()).fold(0, |least, other| {
        if keys[other] < keys[least] {
            other
        } else {
            least
        }
    })
}

/// Children of a place in the heap: with four it is half as deep as with two, and they are side by side.
const WIDTH: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn key_is_lost_or_given_after_a_larger_one() {
        let chance = &mut weir_workload::Chance::new(3, 0);
        let (mut queue, mut naive) = (EventQueue::default(), BTreeSet::new());
        let mut at = 0;
        for made in 0..30_000_u128 {
            let lanes = [Lane::Link, Lane::Way, Lane::None];
            let lane = lanes[usize::try_from(chance.below(3)).unwrap()];
            let wait = match lane {
                Lane::Link => 5,
                Lane::Way if chance.is(0.5) => 10,
                Lane::Way => 30,
                Lane::None => chance.below(60),
            };
            // some come to a lane before those that stand there
            let wait = if chance.is(0.05) { 0 } else { wait };
            let key = u128::from(at + wait) << 64 | made;
            queue.push(key, lane);
            naive.insert(key);
            at += chance.below(3);
            let bound = u128::from(at) << 64;
            while let Some(key) = queue.pop_below(bound) {
                assert_eq!(naive.pop_first(), Some(key));
                assert!(key < bound);
            }
            assert!(naive.first().is_none_or(|first| *first >= bound));
        }
        while let Some(key) = queue.pop_below(NOTHING) {
            assert_eq!(naive.pop_first(), Some(key));
        }
        assert!(naive.is_empty());
    }
}
