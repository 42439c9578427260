use super::super::reference;
use super::*;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Entry {
    slot: Slot,
    key: u64,
    units: u64,
    frequency: u8,
}

/// The oldest first in each queue; the ghost is the list of the last evictions from small, with
/// their sizes.
#[derive(Debug, Default)]
struct Reference {
    small: VecDeque<Entry>,
    main: VecDeque<Entry>,
    ghost: VecDeque<(Option<u64>, u64)>,
    /// So many keys are remembered at most.
    slots: usize,
}

impl Reference {
    fn of_slots(slots: u32) -> Self {
        Self {
            slots: slots as usize,
            ..Self::default()
        }
    }

    fn entry(&mut self, slot: Slot) -> &mut Entry {
        let mut all = self.small.iter_mut().chain(&mut self.main);
        all.find(|entry| entry.slot == slot).unwrap()
    }

    /// The one that is `leaving` small, which has left it already.
    fn remember(&mut self, leaving: &Entry) {
        let others = self.small.iter().chain(&self.main);
        let resident = others.map(|entry| entry.units).sum::<u64>() + leaving.units;
        let limit = resident - resident / 10;
        for one in &mut self.ghost {
            if one.0 == Some(leaving.key) {
                *one = (None, 0);
            }
        }
        if leaving.units > limit {
            return;
        }
        self.ghost.push_back((Some(leaving.key), leaving.units));
        let held = |ghost: &VecDeque<(Option<u64>, u64)>| ghost.iter().map(|one| one.1).sum::<u64>();
        while self.ghost.len() > self.slots || held(&self.ghost) > limit {
            self.ghost.pop_front();
        }
    }

    /// One examination; the victim if it ended in one.
    fn examine(&mut self, spared: Option<Slot>) -> Option<Slot> {
        let sum = |queue: &VecDeque<Entry>| queue.iter().map(|entry| entry.units).sum::<u64>();
        let others = |queue: &VecDeque<Entry>| queue.iter().any(|entry| Some(entry.slot) != spared);
        let (small, main) = (sum(&self.small), sum(&self.main));
        if others(&self.small) && (!others(&self.main) || small * 10 >= small + main) {
            let mut entry = self.small.pop_front().unwrap();
            if entry.frequency > 1 {
                entry.frequency = 0;
                self.main.push_back(entry);
            } else if Some(entry.slot) == spared {
                self.small.push_back(entry);
            } else {
                self.remember(&entry);
                return Some(entry.slot);
            }
        } else {
            let mut entry = self.main.pop_front().unwrap();
            if entry.frequency > 0 {
                entry.frequency -= 1;
                self.main.push_back(entry);
            } else if Some(entry.slot) == spared {
                self.main.push_back(entry);
            } else {
                return Some(entry.slot);
            }
        }
        None
    }
}

impl reference::Naive for Reference {
    fn insert(&mut self, slot: Slot, key: Digest, size_bytes: u64) {
        let entry = Entry {
            slot,
            key: key.1,
            units: size_bytes.div_ceil(UNIT_BYTES),
            frequency: 0,
        };
        let mut remembered = self.ghost.iter_mut().filter(|one| one.0 == Some(key.1));
        if let Some(one) = remembered.next() {
            *one = (None, 0);
            self.main.push_back(entry);
        } else {
            self.small.push_back(entry);
        }
    }
    fn touch(&mut self, slot: Slot) {
        let entry = self.entry(slot);
        entry.frequency = (entry.frequency + 1).min(3);
    }
    fn resize(&mut self, slot: Slot, size_bytes: u64) {
        self.entry(slot).units = size_bytes.div_ceil(UNIT_BYTES);
    }
    fn remove(&mut self, slot: Slot) {
        self.small.retain(|entry| entry.slot != slot);
        self.main.retain(|entry| entry.slot != slot);
    }
    fn evict(&mut self, spared: Option<Slot>) -> Option<Slot> {
        let mut all = self.small.iter().chain(&self.main);
        all.find(|entry| Some(entry.slot) != spared)?;
        loop {
            if let Some(slot) = self.examine(spared) {
                return Some(slot);
            }
        }
    }
}

#[test]
fn random_operations_evict_as_the_reference_model_does() {
    reference::compare_random(S3Fifo::default, || Reference::of_slots(reference::SLOTS));
}

#[test]
fn committed_trace_gives_recorded_hits_and_hit_bytes() {
    reference::check_trace(
        S3Fifo::default,
        || Reference::of_slots(reference::TARGETS),
        reference::Counts {
            hits: 13_684,
            hit_bytes: 122_416_175,
        },
    );
}

/// `count` residents of 64 bytes in slots and under keys `0..count`.
fn filled(count: u32) -> S3Fifo {
    let mut s3fifo = S3Fifo::default();
    s3fifo.reserve(count as usize + 1);
    for slot in 0..count {
        s3fifo.insert(Slot(slot), Digest(0, slot.into()), 64);
    }
    s3fifo
}

#[test]
fn two_hits_in_small_queue_save_from_eviction_and_one_does_not() {
    let mut s3fifo = filled(4);
    s3fifo.touch(Slot(0));
    s3fifo.touch(Slot(1));
    s3fifo.touch(Slot(1));
    assert_eq!(s3fifo.evict(None), Some(Slot(0)));
    assert_eq!(s3fifo.evict(None), Some(Slot(2)));
    assert_eq!(s3fifo.evict(None), Some(Slot(3)));
    assert_eq!(s3fifo.evict(None), Some(Slot(1)));
    assert_eq!(s3fifo.evict(None), None);
}

#[test]
fn key_remembered_by_ghost_enters_main_queue_once() {
    let mut s3fifo = filled(10);
    assert_eq!(s3fifo.evict(None), Some(Slot(0)));
    s3fifo.insert(Slot(0), Digest(0, 0), 64);
    assert_eq!(s3fifo.main.queue.len(), 1);
    // Remembered once: taking it has forgotten it.
    s3fifo.remove(Slot(0));
    s3fifo.insert(Slot(0), Digest(0, 0), 64);
    assert_eq!(s3fifo.main.queue.len(), 0);
}

#[test]
fn removed_response_is_not_remembered_by_ghost() {
    let mut s3fifo = filled(10);
    s3fifo.remove(Slot(5));
    s3fifo.insert(Slot(5), Digest(0, 5), 64);
    assert_eq!(s3fifo.main.queue.len(), 0);
}

#[test]
fn small_queue_is_examined_only_from_a_tenth_of_all_bytes() {
    // One of ten units in small: at its tenth, it is examined; one of eleven: it is not.
    for (in_main, victim) in [(9, Slot(0)), (10, Slot(1))] {
        let mut s3fifo = S3Fifo::default();
        s3fifo.reserve(16);
        s3fifo.insert(Slot(0), Digest(0, 100), UNIT_BYTES);
        for slot in 1..=in_main {
            s3fifo.units[slot as usize] = 1;
            s3fifo.push(slot, State(State::IN_MAIN));
        }
        s3fifo.debug_check();
        assert_eq!(s3fifo.evict(None), Some(victim), "{in_main} in main");
    }
}

#[test]
fn hit_frequency_is_capped_at_three() {
    let mut s3fifo = filled(2);
    for _ in 0..9 {
        s3fifo.touch(Slot(0));
    }
    assert_eq!(s3fifo.states[0].frequency(), 3);
}

#[test]
fn huge_entry_size_does_not_overflow_queue_units() {
    let mut s3fifo = filled(1);
    s3fifo.resize(Slot(0), u64::MAX);
    s3fifo.debug_check();
    s3fifo.resize(Slot(0), 0);
    s3fifo.debug_check();
    assert_eq!(s3fifo.small.units, 0);
    assert_eq!(s3fifo.evict(None), Some(Slot(0)));
}

#[test]
fn would_keep_is_true_only_for_keys_requested_within_nine_tenths_of_resident_bytes() {
    let mut fifo = S3Fifo::default();
    fifo.reserve(100);
    for slot in 0..100 {
        fifo.insert(Slot(slot), Digest(0, u64::from(slot)), 2 * UNIT_BYTES);
    }
    let mut would_keep = |number: u64, units: u64| {
        let kept = fifo.would_keep(Digest(0, 1000 + number), units * UNIT_BYTES);
        fifo.debug_check();
        kept
    };
    assert!(!would_keep(0, 2), "a stranger");
    assert!(would_keep(0, 2), "one who was there");
    assert!(would_keep(0, 2), "asking twice");
    assert!(!would_keep(1, 178));
    assert!(would_keep(0, 2), "the oldest that is remembered");
    assert!(!would_keep(2, 2));
    assert!(!would_keep(0, 2), "one who would have left");
    assert!(!would_keep(3, 181));
    assert!(!would_keep(3, 181), "what is larger than all that is remembered");
    assert!(would_keep(2, 2), "it has taken the place of none");
    // it enters main as one who comes back does
    assert_eq!(fifo.evict(None), Some(Slot(0)));
    fifo.insert(Slot(0), Digest(0, 1002), UNIT_BYTES);
    assert!(fifo.states[0].in_main());
}

#[test]
fn small_keys_are_remembered_up_to_one_for_each_slot() {
    let mut fifo = S3Fifo::default();
    fifo.reserve(10);
    fifo.insert(Slot(0), Digest(0, 0), 1 << 20);
    for number in 0..11 {
        assert!(!fifo.would_keep(Digest(0, 1000 + number), 1));
    }
    assert!(!fifo.would_keep(Digest(0, 1000), 1), "the oldest has left");
    assert!(fifo.would_keep(Digest(0, 1002), 1));
    fifo.debug_check();
}

#[test]
fn newcomers_beyond_the_tenth_of_small_enter_main_until_the_first_eviction() {
    let mut fifo = S3Fifo::default();
    fifo.reserve(21);
    fifo.set_capacity(20 * UNIT_BYTES);
    for slot in 0..20 {
        fifo.insert(Slot(slot), Digest(0, slot.into()), UNIT_BYTES);
    }
    assert_eq!(fifo.small.units, 2);
    assert_eq!(fifo.main.units, 18);
    assert_eq!(fifo.evict(None), Some(Slot(0)));
    fifo.remove(Slot(19));
    // there is room for two, and small is not full
    for slot in [0, 19, 20] {
        fifo.insert(Slot(slot), Digest(0, 100 + u64::from(slot)), UNIT_BYTES);
        assert!(!fifo.states[slot as usize].in_main());
    }
    fifo.debug_check();
}
