//! The memory tier beside a reference model: a map of lists.
//!
//! With room for everything both find the same, always. With little room the store may find less,
//! but what it finds was committed, has not been taken back, and is the newest for its selecting
//! digest; and the budget is kept after every call.

mod support;

#[path = "reference_model/boundaries.rs"]
mod boundaries;
#[path = "reference_model/comparison.rs"]
mod comparison;
#[path = "reference_model/limits.rs"]
mod limits;
#[path = "reference_model/reference.rs"]
mod reference;
#[path = "reference_model/transfer.rs"]
mod transfer;

use comparison::Comparison;
use support::{Random, Shown};
use weir_policy::eviction::EvictionKind;

#[test]
fn lookups_match_the_reference_model_when_nothing_is_evicted() {
    let mut moved = 0;
    for kind in EvictionKind::ALL {
        for seed in 0..25 {
            let _shown = Shown(format!("{kind} seed {seed}"));
            let mut random = Random::new(seed);
            let mut comparison = Comparison::new(1 << 40, kind, true);
            for _ in 0..700 {
                comparison.step(&mut random);
            }
            assert_eq!(comparison.store.memory_use().evictions, 0);
            moved += comparison.moved;
            comparison.end();
        }
    }
    assert!(moved > 20, "{moved} moved");
}

#[test]
fn invariants_hold_under_eviction_and_budget_changes() {
    for kind in EvictionKind::ALL {
        let (mut evictions, mut moved) = (0, 0);
        for seed in 0..25 {
            let _shown = Shown(format!("{kind} seed {seed}"));
            let mut random = Random::new(seed);
            let mut comparison = Comparison::new(100_000, kind, false);
            for _ in 0..2500 {
                comparison.step(&mut random);
                if random.one_in(100) {
                    // a download fits while it arrives, or a few pages
                    let budget_max = if random.one_in(2) { 900_000 } else { 60_000 };
                    comparison.set_budget(random.below(budget_max));
                }
            }
            evictions += comparison.store.memory_use().evictions;
            moved += comparison.moved;
            comparison.end();
        }
        assert!(evictions > 1000, "{kind}: {evictions}");
        assert!(moved > 0, "{kind}: nothing moved");
    }
}
