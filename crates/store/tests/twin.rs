//! The memory tier beside a naive twin: a map of lists.
//!
//! With room for everything both find the same, always. With little room the store may find less,
//! but what it finds was committed, has not been taken back, and is the newest for its selecting
//! digest; and the budget is kept after every call.

mod support;

#[path = "twin/arrival.rs"]
mod arrival;
#[path = "twin/boundaries.rs"]
mod boundaries;
#[path = "twin/in_flight.rs"]
mod in_flight;
#[path = "twin/naive.rs"]
mod naive;
#[path = "twin/pair.rs"]
mod pair;

use pair::Pair;
use support::{Random, Shown};
use weir_policy::eviction::EvictionKind;

#[test]
fn lookups_match_the_reference_model_when_nothing_is_evicted() {
    for kind in EvictionKind::ALL {
        for seed in 0..25 {
            let _shown = Shown(format!("{kind} seed {seed}"));
            let mut random = Random::new(seed);
            let mut pair = Pair::new(1 << 40, kind, true);
            for _ in 0..700 {
                pair.step(&mut random);
            }
            assert_eq!(pair.store.memory_use().evictions, 0);
            pair.end();
        }
    }
}

#[test]
fn invariants_hold_under_eviction_and_budget_changes() {
    for kind in EvictionKind::ALL {
        let mut evictions = 0;
        for seed in 0..25 {
            let _shown = Shown(format!("{kind} seed {seed}"));
            let mut random = Random::new(seed);
            let mut pair = Pair::new(100_000, kind, false);
            for _ in 0..2500 {
                pair.step(&mut random);
                if random.one_in(100) {
                    // a download fits while it arrives, or a few pages
                    let budget_max = if random.one_in(2) { 900_000 } else { 60_000 };
                    pair.set_budget(random.below(budget_max));
                }
            }
            evictions += pair.store.memory_use().evictions;
            pair.end();
        }
        assert!(evictions > 1000, "{kind}: {evictions}");
    }
}
