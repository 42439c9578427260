//! Queues threaded through one array of links: a slot is in at most one queue, so all queues share
//! the array.

use super::{heap_bytes, lengthen, shorten};
use alloc::vec::Vec;

/// No slot: the end of a queue.
pub(super) const NONE: u32 = u32::MAX;

/// The neighbours of a slot in its queue.
#[derive(Clone, Copy, Debug)]
struct Link {
    newer: u32,
    older: u32,
}

/// The links of all slots.
#[derive(Debug, Default)]
pub(super) struct Links(Vec<Link>);

impl Links {
    pub(super) const BYTES_PER_SLOT: u64 = size_of::<Link>() as u64;

    pub(super) fn reserve(&mut self, slots: usize) {
        let free = Link {
            newer: NONE,
            older: NONE,
        };
        lengthen(&mut self.0, slots, free);
    }

    pub(super) fn shrink(&mut self, slots: usize) {
        shorten(&mut self.0, slots);
    }

    pub(super) fn heap_bytes(&self) -> u64 {
        heap_bytes(&self.0)
    }

    /// The slot that entered the queue after `slot`, or [`NONE`].
    pub(super) fn newer(&self, slot: u32) -> u32 {
        self.0[slot as usize].newer
    }

    /// The slot that entered the queue before `slot`, or [`NONE`].
    pub(super) fn older(&self, slot: u32) -> u32 {
        self.0[slot as usize].older
    }
}

/// A first-in first-out queue of slots from which any slot can leave at once.
#[derive(Debug)]
pub(super) struct Queue {
    newest: u32,
    oldest: u32,
    len: usize,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            newest: NONE,
            oldest: NONE,
            len: 0,
        }
    }
}

impl Queue {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The slot that entered first, or [`NONE`].
    pub(super) const fn oldest(&self) -> u32 {
        self.oldest
    }

    /// Whether no slot but `spared` is in the queue. `spared` may be [`NONE`], or in another queue.
    pub(super) const fn holds_only(&self, spared: u32) -> bool {
        self.len == 0 || (self.len == 1 && self.oldest == spared)
    }

    pub(super) fn push(&mut self, links: &mut Links, slot: u32) {
        links.0[slot as usize] = Link {
            newer: NONE,
            older: self.newest,
        };
        match self.newest {
            NONE => self.oldest = slot,
            newest => links.0[newest as usize].newer = slot,
        }
        self.newest = slot;
        self.len += 1;
    }

    pub(super) fn unlink(&mut self, links: &mut Links, slot: u32) {
        let Link { newer, older } = links.0[slot as usize];
        match newer {
            NONE => self.newest = older,
            newer => links.0[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => links.0[older as usize].newer = newer,
        }
        self.len -= 1;
    }

    /// The slots from the oldest to the newest, with both directions compared on the way; for
    /// tests.
    pub(super) fn checked_slots(&self, links: &Links) -> Vec<u32> {
        let mut slots = Vec::with_capacity(self.len);
        let mut slot = self.oldest;
        let mut before = NONE;
        while slot != NONE {
            assert_eq!(links.older(slot), before, "slot {slot} points back wrongly");
            assert!(slots.len() < self.len, "queue is longer than its count");
            slots.push(slot);
            before = slot;
            slot = links.newer(slot);
        }
        assert_eq!(self.newest, before, "newest is not at the end");
        assert_eq!(slots.len(), self.len, "queue is shorter than its count");
        slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlinking_any_slot_keeps_the_order_of_the_others() {
        for leaving in 0..4 {
            let mut links = Links::default();
            links.reserve(4);
            let mut queue = Queue::default();
            for slot in 0..4 {
                queue.push(&mut links, slot);
            }
            queue.unlink(&mut links, leaving);
            let expected: Vec<u32> = (0..4).filter(|slot| *slot != leaving).collect();
            assert_eq!(queue.checked_slots(&links), expected);
        }
    }
}
