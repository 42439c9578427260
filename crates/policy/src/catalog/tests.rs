use super::*;
use crate::eviction::reference::Random;
use std::collections::BTreeMap;

/// A catalog beside a plain map of what should be resident.
struct Pair {
    catalog: Catalog,
    model: BTreeMap<Slot, u64>,
    victims: Vec<Slot>,
    /// Whether some of what is admitted is a copy.
    with_copies: bool,
}

impl Pair {
    fn new(budget_bytes: u64, kind: EvictionKind) -> Self {
        Self {
            catalog: Catalog::new(budget_bytes, kind),
            model: BTreeMap::new(),
            victims: Vec::new(),
            with_copies: false,
        }
    }

    fn any(&self, random: &mut Random) -> Option<Slot> {
        (!self.model.is_empty()).then(|| {
            *self
                .model
                .keys()
                .nth(random.index(self.model.len()))
                .unwrap()
        })
    }

    fn forget_victims(&mut self) {
        for victim in self.victims.drain(..) {
            assert!(
                self.model.remove(&victim).is_some(),
                "{victim:?} left twice"
            );
        }
    }

    fn admit(&mut self, key: u64, size: u64) {
        let key = Digest(key, key);
        let admitted = self.catalog.admit(key, size, &mut self.victims);
        self.admitted(admitted, size);
    }

    fn admit_copy(&mut self, key: u64, size: u64) {
        let begun = self.catalog.begin_copies(&mut self.victims, &|_| None);
        self.forget_victims();
        let key = Digest(key, key);
        if begun.is_ok() {
            let admitted = self.catalog.admit_copy(key, size, &mut self.victims);
            self.admitted(admitted, size);
        }
    }

    fn admitted(&mut self, admitted: Result<Slot, Refusal>, size: u64) {
        match admitted {
            Ok(slot) => {
                self.forget_victims();
                assert!(
                    self.model.insert(slot, size).is_none(),
                    "{slot:?} was taken"
                );
            }
            Err(refusal) => {
                assert_eq!(refusal.as_str(), "too-large");
                assert!(self.victims.is_empty(), "somebody left for a refused one");
            }
        }
    }

    fn resize(&mut self, slot: Slot, size: u64) {
        let resized = self.catalog.resize(slot, size, &mut self.victims);
        assert!(!self.victims.contains(&slot), "left for itself");
        if resized.is_ok() {
            self.forget_victims();
            self.model.insert(slot, size);
        } else {
            assert!(self.victims.is_empty(), "somebody left for a refused one");
        }
    }

    fn step(&mut self, random: &mut Random, budget_max: u64) {
        let size_end = if random.below(10) == 0 {
            budget_max + 100
        } else {
            900
        };
        match (random.below(20), self.any(random)) {
            (0..7, _) => self.admit(random.below(300), random.below(size_end)),
            (7..9, _) if self.with_copies => {
                self.admit_copy(random.below(300), random.below(size_end));
            }
            (9, Some(slot)) if self.with_copies => {
                self.catalog.make_own(slot, Digest(slot.0.into(), 0));
                assert!(!self.catalog.is_copy(slot));
            }
            (7..9, _) => self.admit(random.below(300), random.below(size_end)),
            (9..14, Some(slot)) => self.catalog.touch(slot),
            (14..16, Some(slot)) => self.resize(slot, random.below(size_end)),
            (16..18, Some(slot)) => {
                self.catalog.remove(slot);
                self.model.remove(&slot);
            }
            (18, _) if random.below(8) == 0 => {
                let budget = random.below(budget_max);
                self.catalog.set_budget(budget, &mut self.victims);
                self.forget_victims();
            }
            (19, _) if random.below(4) == 0 => {
                self.catalog.set_budget(budget_max, &mut self.victims);
                assert!(self.victims.is_empty(), "somebody left for a larger budget");
            }
            _ => self.catalog.touch(Slot(u32::MAX - 1)),
        }
        self.check();
    }

    fn check(&self) {
        self.catalog.debug_check();
        assert_eq!(self.catalog.len(), self.model.len());
        for (slot, size) in &self.model {
            assert_eq!(self.catalog.size_bytes(*slot), Some(*size));
        }
    }
}

#[test]
fn random_operations_keep_catalog_equal_to_reference_map() {
    for kind in EvictionKind::ALL {
        for seed in 1..=80 {
            let outcome = std::panic::catch_unwind(|| {
                let mut random = Random::new(seed);
                let mut pair = Pair::new(20_000, kind);
                pair.with_copies = seed % 2 == 0;
                for _ in 0..600 {
                    pair.step(&mut random, 20_000);
                }
            });
            assert!(outcome.is_ok(), "{kind}, seed {seed}: broken as told above");
        }
    }
}

#[test]
fn array_overhead_of_many_small_entries_counts_toward_budget() {
    for kind in EvictionKind::ALL {
        let mut pair = Pair::new(200_000, kind);
        for key in 0..15_000 {
            pair.admit(key, 8);
            let catalog = &pair.catalog;
            assert!(catalog.used_bytes() + catalog.overhead_bytes() <= 200_000);
        }
        pair.check();
        // Most of the budget is in use all the same: an eighth for growth, no more is idle.
        let idle = 200_000 - pair.catalog.used_bytes() - pair.catalog.overhead_bytes();
        assert!(idle < 200_000 / 8, "{kind}: {idle} bytes idle");
    }
}

#[test]
fn largest_fitting_entry_is_admitted_and_one_byte_more_is_refused() {
    for kind in EvictionKind::ALL {
        let mut pair = Pair::new(50_000, kind);
        for key in 0..100 {
            pair.admit(key, 300);
        }
        let largest = pair.catalog.size_max_bytes();
        let resident = pair.model.len();
        pair.admit(1000, largest + 1);
        assert_eq!(pair.model.len(), resident);
        pair.admit(1000, largest);
        assert_eq!(pair.model.len(), 1);
        assert_eq!(pair.catalog.used_bytes(), largest);
        pair.check();
    }
}

#[test]
fn exactly_full_catalog_evicts_only_for_one_byte_more() {
    for kind in EvictionKind::ALL {
        let mut catalog = Catalog::new(50_000, kind);
        let mut victims = Vec::new();
        let first = catalog.admit(Digest(1, 1), 100, &mut victims).unwrap();
        let second = catalog.admit(Digest(2, 2), 100, &mut victims).unwrap();
        let free = catalog.budget_bytes() - catalog.overhead_bytes() - catalog.used_bytes();
        catalog.resize(second, 100 + free, &mut victims).unwrap();
        assert_eq!(victims, []);
        catalog.resize(second, 101 + free, &mut victims).unwrap();
        assert_eq!(victims, [first]);
        catalog.debug_check();
    }
}

#[test]
fn refused_resize_keeps_entry_size_and_evicts_no_entry() {
    let mut catalog = Catalog::new(50_000, EvictionKind::Lru);
    let mut victims = Vec::new();
    let slot = catalog.admit(Digest(1, 1), 100, &mut victims).unwrap();
    let size_max_bytes = 50_000 - catalog.overhead_bytes();
    assert_eq!(
        catalog.resize(slot, size_max_bytes + 1, &mut victims),
        Err(Refusal::TooLarge {
            size_bytes: size_max_bytes + 1,
            size_max_bytes
        })
    );
    assert_eq!(catalog.size_bytes(slot), Some(100));
    catalog.remove(slot);
    assert_eq!(
        catalog.resize(slot, 1, &mut victims),
        Err(Refusal::NotResident)
    );
    assert_eq!(victims, []);
}

#[test]
fn resize_updates_entry_size_in_the_eviction_algorithm() {
    let mut catalog = Catalog::new(130_000, EvictionKind::S3Fifo);
    let mut victims = Vec::new();
    let mut admit = |catalog: &mut Catalog, key, size_bytes| {
        let slot = catalog.admit(Digest(key, key), size_bytes, &mut victims);
        (slot.unwrap(), core::mem::take(&mut victims))
    };
    let (main, _) = admit(&mut catalog, 1, 64_000);
    catalog.touch(main);
    catalog.touch(main);
    let (hit_once, _) = admit(&mut catalog, 2, 64_000);
    let (_, left) = admit(&mut catalog, 3, 10_000);
    assert_eq!(left, [hit_once]);
    // Small had 13 % of the bytes, and now has 8 %: main is examined.
    catalog.resize(main, 110_000, &mut Vec::new()).unwrap();
    let (_, left) = admit(&mut catalog, 4, 20_000);
    assert_eq!(left, [main]);
}

#[test]
fn vacated_slot_is_reused() {
    let mut catalog = Catalog::new(50_000, EvictionKind::S3Fifo);
    let mut victims = Vec::new();
    let slot = catalog.admit(Digest(1, 1), 100, &mut victims).unwrap();
    catalog.remove(slot);
    catalog.touch(slot);
    assert_eq!(catalog.admit(Digest(2, 2), 100, &mut victims), Ok(slot));
}

/// A catalog in which slots were used again many times.
fn churned(budget_bytes: u64, kind: EvictionKind) -> Pair {
    let mut pair = Pair::new(budget_bytes, kind);
    let mut random = Random::new(7);
    for _ in 0..8000 {
        let key = random.below(10_000);
        pair.admit(key, 100 + random.below(400));
        let slot = u32::try_from(random.below(3000)).unwrap();
        pair.catalog.touch(Slot(slot));
    }
    pair
}

#[test]
fn smaller_budget_evicts_to_fit_and_stays_more_than_half_used() {
    for kind in EvictionKind::ALL {
        for divisor in [2, 30] {
            let mut pair = churned(1_000_000, kind);
            pair.catalog
                .set_budget(1_000_000 / divisor, &mut pair.victims);
            pair.forget_victims();
            pair.check();
            let used = pair.catalog.used_bytes();
            assert!(
                used > 500_000 / divisor,
                "{kind}: {used} used of 1/{divisor}"
            );
        }
    }
}

#[test]
fn budget_below_smallest_overhead_holds_no_entry() {
    for kind in EvictionKind::ALL {
        let smallest = Catalog::new(0, kind).overhead_for(GROWTH_SLOTS_MIN);
        for (budget, len) in [(0, 0), (smallest - 1, 0), (smallest, 1)] {
            let mut pair = churned(100_000, kind);
            pair.catalog.set_budget(budget, &mut pair.victims);
            pair.forget_victims();
            pair.check();
            pair.catalog.set_budget(0, &mut pair.victims);
            pair.forget_victims();
            pair.check();
            pair.catalog.set_budget(budget, &mut pair.victims);
            pair.admit(1, 0);
            pair.check();
            assert_eq!(pair.catalog.len(), len, "{kind} {budget}");
        }
    }
}

#[test]
fn maximum_budget_does_not_overflow() {
    let mut catalog = Catalog::new(u64::MAX, EvictionKind::S3Fifo);
    let mut victims = Vec::new();
    let refused = catalog.admit(Digest(1, 1), u64::MAX, &mut victims);
    assert_eq!(refused.map_err(Refusal::as_str), Err("too-large"));
    for key in 0..6 {
        catalog
            .admit(Digest(key, key), Cell::SIZE_MAX_BYTES, &mut victims)
            .unwrap();
        catalog.debug_check();
    }
    assert_eq!(victims.len(), 3);
}

#[test]
fn bytes_held_by_victims_are_unavailable_until_released() {
    for kind in EvictionKind::ALL {
        let mut pair = Pair::new(50_000, kind);
        for key in 0..100 {
            pair.admit(key, 400);
        }
        let free = |catalog: &Catalog| {
            catalog.budget_bytes() - catalog.used_bytes() - catalog.overhead_bytes()
        };
        let held = free(&pair.catalog) + 1000;
        pair.catalog.hold(held, &mut pair.victims);
        assert!(!pair.victims.is_empty(), "{kind}");
        pair.forget_victims();
        pair.check();
        assert!(pair.catalog.size_max_bytes() <= 50_000 - held, "{kind}");
        // more than all: no entry stays, and none is admitted
        let rest = 50_000 - held;
        pair.catalog.hold(rest, &mut pair.victims);
        pair.forget_victims();
        pair.check();
        assert_eq!(pair.catalog.len(), 0);
        pair.admit(1000, 1);
        assert_eq!(pair.catalog.len(), 0);
        pair.catalog.release(held + rest);
        pair.admit(1000, 40_000);
        assert_eq!(pair.catalog.len(), 1);
        pair.check();
    }
}

#[test]
fn side_table_bytes_per_slot_count_toward_budget() {
    for kind in EvictionKind::ALL {
        let mut pair = Pair::new(200_000, kind);
        pair.catalog = pair.catalog.with_slot_overhead(100);
        for key in 0..5000 {
            pair.admit(key, 8);
            let beside = pair.catalog.slots() as u64 * 100;
            assert!(pair.catalog.used_bytes() + beside <= 200_000, "{kind}");
        }
        assert!(pair.catalog.slots() >= pair.catalog.len());
        assert!(pair.catalog.len() > 1000, "{kind}");
        pair.check();
    }
}

#[test]
fn content_budget_is_not_reduced_by_array_or_side_table_overhead() {
    for kind in EvictionKind::ALL {
        let mut pair = Pair::new(1000, kind);
        pair.catalog = Catalog::content_only(1000, kind).with_slot_overhead(100);
        for key in 0..100 {
            pair.admit(key, 10);
        }
        assert_eq!(pair.model.len(), 100, "{kind}");
        pair.admit(100, 11);
        assert_eq!(pair.model.len(), 99, "{kind}");
        pair.check();
        pair.admit(101, 1001);
        assert_eq!(pair.model.len(), 99, "{kind}");
        pair.admit(102, 1000);
        assert_eq!(pair.catalog.used_bytes(), 1000, "{kind}");
        pair.check();
        pair.catalog.set_budget(0, &mut pair.victims);
        pair.forget_victims();
        pair.check();
        pair.admit(103, 0);
        assert_eq!(pair.model.len(), 1, "{kind}");
    }
}

#[test]
fn full_catalog_judges_newcomer_by_whether_algorithm_would_keep_it() {
    for kind in EvictionKind::ALL {
        let mut pair = Pair::new(100_000, kind);
        let key = |number: u64| Digest(number, number);
        let mut number = 0;
        // while there is room, every response is admitted
        while pair.catalog.judge_promotion(key(number), 1000) == PromotionDecision::FreeRoom {
            pair.admit(number, 1000);
            number += 1;
        }
        let former = pair.model.len();
        assert!(former > 50, "{kind}: {former}");
        let again = if kind == EvictionKind::S3Fifo {
            assert_eq!(
                pair.catalog.judge_promotion(key(7000), 1000),
                PromotionDecision::FirstRequest
            );
            pair.catalog.judge_promotion(key(7000), 1000)
        } else {
            pair.catalog.judge_promotion(key(7000), 1000)
        };
        assert_eq!(again, PromotionDecision::RepeatedRequest, "{kind}");
        assert_eq!(pair.model.len(), former, "{kind}");
        pair.catalog.debug_check();
    }
}

const fn key(number: u64) -> Digest {
    Digest(number, number)
}

#[test]
fn only_s3_fifo_refuses_newcomer_larger_than_its_small_queue() {
    for kind in EvictionKind::ALL {
        let catalog = Catalog::content_only(1000, kind);
        assert_eq!(catalog.check_newcomer(key(1), 100), Ok(()), "{kind}");
        let larger = catalog.check_newcomer(key(1), 101);
        let all = catalog.check_newcomer(key(1), 1001);
        assert_eq!(all.map_err(Refusal::as_str), Err("too-large"), "{kind}");
        if kind == EvictionKind::S3Fifo {
            let size_max_bytes = 100;
            let refusal = Refusal::TooLargeForSmallQueue {
                size_bytes: 101,
                size_max_bytes,
            };
            assert_eq!(larger, Err(refusal));
            assert_eq!(refusal.as_str(), "too-large-for-small-queue");
        } else {
            assert_eq!(larger, Ok(()), "{kind}");
        }
    }
}

#[test]
fn key_remembered_by_ghost_is_accepted_beyond_small_queue_size() {
    let mut catalog = Catalog::content_only(1000, EvictionKind::S3Fifo);
    let mut victims = Vec::new();
    for number in 0..11 {
        catalog.admit(key(number), 100, &mut victims).unwrap();
    }
    assert_eq!(victims.len(), 1, "the first left small and is remembered");
    assert_eq!(catalog.check_newcomer(key(0), 900), Ok(()));
    assert!(catalog.check_newcomer(key(99), 900).is_err());
}

#[test]
fn newcomer_larger_than_small_queue_is_judged_first_and_not_remembered() {
    let mut catalog = Catalog::content_only(1000, EvictionKind::S3Fifo);
    assert_eq!(
        catalog.judge_promotion(key(1), 100),
        PromotionDecision::FreeRoom
    );
    assert_eq!(
        catalog.judge_promotion(key(1), 101),
        PromotionDecision::FirstRequest
    );
    assert_eq!(
        catalog.judge_promotion(key(1), 101),
        PromotionDecision::FirstRequest,
        "it is not remembered"
    );
}

#[test]
fn catalog_modelling_larger_cache_refuses_by_small_queue_of_larger_cache() {
    let catalog = Catalog::content_only(1000, EvictionKind::S3Fifo).sampled_from(10_000);
    assert_eq!(catalog.check_newcomer(key(1), 1000), Ok(()));
    assert!(catalog.check_newcomer(key(1), 1001).is_err());
}
