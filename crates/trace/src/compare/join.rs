//! Rows that wait for their partner, by target.

use super::{Compared, Sides};
use std::collections::HashMap;

/// Rows that may wait for a partner: about 128 MB.
pub const WAITING_ROWS_MAX: usize = 1 << 20;

/// What becomes of a row that had no partner at its place.
#[derive(Clone, Copy, Debug)]
pub(super) enum JoinEvent {
    /// This is its partner: the other trace's row that has waited longest.
    With(Compared),
    /// It waits.
    Waits,
    /// It has none, and none will come.
    WithNone,
    /// It would wait, but there is no room.
    Full,
}

/// Rows that wait. Of one target they are all of one trace: a row of the other would not have let
/// them wait.
#[derive(Debug)]
pub(super) struct Join {
    rows_max: usize,
    slots: Vec<Slot>,
    /// The first slot that is free, if any is.
    free: Option<u32>,
    queues: HashMap<u64, Queue>,
    waiting: Sides<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    row: Compared,
    /// The next row of the same target, or the next free slot.
    next: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    is_a: bool,
    first: u32,
    last: u32,
}

impl Join {
    pub(super) fn new(rows_max: usize) -> Self {
        Self {
            rows_max,
            slots: Vec::new(),
            free: None,
            queues: HashMap::new(),
            waiting: Sides::default(),
        }
    }

    /// Rows that wait.
    pub(super) const fn waiting(&self) -> Sides<u64> {
        self.waiting
    }

    /// The partner of a row of the first trace (`is_a`) or the second; `may_wait` if one may still
    /// come.
    pub(super) fn partner(&mut self, row: Compared, is_a: bool, may_wait: bool) -> JoinEvent {
        match self.queues.get(&row.target).copied() {
            Some(queue) if queue.is_a != is_a => JoinEvent::With(self.take(row.target, queue)),
            _ if !may_wait => JoinEvent::WithNone,
            queue => match self.slot(row) {
                Some(slot) => {
                    self.wait(row.target, queue, slot, is_a);
                    JoinEvent::Waits
                }
                None => JoinEvent::Full,
            },
        }
    }

    /// A slot with the row in it, if there is room.
    fn slot(&mut self, row: Compared) -> Option<u32> {
        let slot = Slot { row, next: None };
        if let Some(place) = self.free {
            let old = std::mem::replace(&mut self.slots[place as usize], slot);
            self.free = old.next;
            return Some(place);
        }
        let place = u32::try_from(self.slots.len()).ok()?;
        if self.slots.len() >= self.rows_max {
            return None;
        }
        self.slots.push(slot);
        Some(place)
    }

    fn wait(&mut self, target: u64, queue: Option<Queue>, slot: u32, is_a: bool) {
        let first = queue.map_or(slot, |queue| queue.first);
        if let Some(queue) = queue {
            self.slots[queue.last as usize].next = Some(slot);
        }
        let queue = Queue {
            is_a,
            first,
            last: slot,
        };
        self.queues.insert(target, queue);
        *self.waiting.of(is_a) += 1;
    }

    /// The row of a queue that has waited longest.
    fn take(&mut self, target: u64, queue: Queue) -> Compared {
        let slot = &mut self.slots[queue.first as usize];
        let row = slot.row;
        let next = std::mem::replace(&mut slot.next, self.free);
        self.free = Some(queue.first);
        match next {
            Some(first) => self.queues.insert(target, Queue { first, ..queue }),
            None => self.queues.remove(&target),
        };
        *self.waiting.of(queue.is_a) -= 1;
        row
    }
}

impl<T> Sides<T> {
    /// That of the first trace (`is_a`) or the second.
    pub(super) const fn of(&mut self, is_a: bool) -> &mut T {
        if is_a { &mut self.a } else { &mut self.b }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn row(target: u64, place: u64) -> Compared {
        Compared {
            place,
            arrival_us: 0,
            target,
            verdict: None,
            received_bytes: None,
            from_cache_bytes: None,
            response_time_us: None,
        }
    }

    #[test]
    fn rows_of_a_target_are_paired_in_order_of_arrival() {
        let mut join = Join::new(8);
        for (place, target) in [(0, 7), (1, 8), (2, 7), (3, 7)] {
            assert!(matches!(
                join.partner(row(target, place), true, true),
                JoinEvent::Waits
            ));
        }
        for expected in [0, 2, 3] {
            let joined = join.partner(row(7, 9), false, true);
            assert!(
                matches!(joined, JoinEvent::With(partner) if partner.place == expected),
                "{joined:?}"
            );
        }
        assert!(matches!(
            join.partner(row(7, 9), false, false),
            JoinEvent::WithNone
        ));
        assert_eq!(join.waiting(), Sides { a: 1, b: 0 });
    }

    #[test]
    fn waiting_rows_are_limited_and_freed_room_is_reused() {
        let mut join = Join::new(2);
        for round in 0..5 {
            for target in [1, 2] {
                let joined = join.partner(row(target, round), false, true);
                assert!(matches!(joined, JoinEvent::Waits), "{joined:?}");
            }
            assert!(matches!(
                join.partner(row(3, round), true, true),
                JoinEvent::Full
            ));
            for target in [2, 1] {
                let joined = join.partner(row(target, 9), true, true);
                assert!(matches!(joined, JoinEvent::With(partner) if partner.place == round));
            }
        }
        assert!(join.queues.is_empty());
        assert_eq!(join.waiting(), Sides::default());
    }
}
