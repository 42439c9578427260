use super::*;
use crate::hit_ratio::hits::{Setting, Simulation};
use crate::hit_ratio::keys::NumberedRequest;
use std::collections::HashMap;
use weir_policy::admission::Rule;
use weir_policy::eviction::EvictionKind;
use weir_workload::Chance;

fn random_trace(seed: u64, requests: usize, keys: u64, size_max: u64) -> Vec<NumberedRequest> {
    let mut chance = Chance::new(seed, 3);
    let mut sizes: HashMap<u32, u64> = HashMap::new();
    let mut numbers: HashMap<u64, u32> = HashMap::new();
    (0..requests)
        .map(|_| {
            let next = u32::try_from(numbers.len()).unwrap();
            let number = *numbers.entry(chance.below(keys)).or_insert(next);
            let size_bytes = *sizes
                .entry(number)
                .or_insert_with(|| 1 + chance.below(size_max));
            NumberedRequest { number, size_bytes }
        })
        .collect()
}

/// Tries everything: after each request any of the residents may leave, and the newcomer may stay
/// away.
fn best(trace: &[NumberedRequest], capacity: u64, value: fn(NumberedRequest) -> u64) -> u64 {
    // what is resident, as bits, and the most that can have been had until then
    let mut states: HashMap<u32, u64> = HashMap::from([(0, 0)]);
    let size: HashMap<u32, u64> = trace.iter().map(|it| (it.number, it.size_bytes)).collect();
    let bytes = |set: u32| -> u64 {
        let inside = size.iter().filter(|(number, _)| set >> **number & 1 == 1);
        inside.map(|(_, bytes)| bytes).sum()
    };
    for asked in trace {
        let bit = 1 << asked.number;
        let mut later: HashMap<u32, u64> = HashMap::new();
        for (set, had) in states {
            let had = had + if set & bit > 0 { value(*asked) } else { 0 };
            let all = set | bit;
            // every subset of who could stay
            let mut subset = all;
            loop {
                if bytes(subset) <= capacity {
                    let best = later.entry(subset).or_default();
                    *best = had.max(*best);
                }
                if subset == 0 {
                    break;
                }
                subset = (subset - 1) & all;
            }
        }
        states = later;
    }
    states.into_values().max().unwrap_or(0)
}

#[test]
fn optimum_of_a_tiny_trace_equals_the_best_of_all_choices() {
    for seed in 0..60 {
        let trace = random_trace(seed, 24, 6, 1);
        let mut optimum = Optimum::default();
        optimum.ask_all(&trace);
        let capacities = [0, 1, 2, 3, 5, 6, 7];
        let expected: Vec<u64> = capacities
            .iter()
            .map(|capacity| best(&trace, *capacity, |_| 1))
            .collect();
        assert_eq!(optimum.hits(&capacities).unwrap(), expected, "seed {seed}");
    }
}

#[test]
fn bound_is_never_below_the_best_of_all_choices() {
    for seed in 0..60 {
        let trace = random_trace(seed, 20, 6, 9);
        let capacities = vec![1, 3, 6, 10, 20, 60];
        let mut bound = FlowBound::new(capacities.clone());
        for asked in &trace {
            bound.ask(*asked);
        }
        for (capacity, (hits, bytes)) in capacities.into_iter().zip(bound.hits()) {
            let place = format!("seed {seed}, {capacity} bytes");
            assert!(hits >= best(&trace, capacity, |_| 1), "{place}");
            let best_bytes = best(&trace, capacity, |asked| asked.size_bytes);
            assert!(bytes >= best_bytes, "{place}");
        }
        // where all fit it is not above either
        let repeats = trace.len() - trace.iter().map(|it| it.number).max().unwrap() as usize - 1;
        assert_eq!(bound.hits()[5].0, repeats as u64);
    }
}

#[test]
fn no_policy_exceeds_the_optimum_or_the_bound() {
    for seed in 0..10 {
        for size_max in [1, 50] {
            let trace = random_trace(seed, 4000, 300, size_max);
            let capacities = vec![1, 20, 60, 400, 2000, 10_000];
            let mut optimum = Optimum::default();
            optimum.ask_all(&trace);
            let mut bound = FlowBound::new(capacities.clone());
            for asked in &trace {
                bound.ask(*asked);
            }
            let optimum = optimum.hits(&capacities).unwrap();
            let of_sizes = capacities.iter().zip(optimum).zip(bound.hits());
            for ((capacity_bytes, optimum), (most, most_bytes)) in of_sizes {
                for eviction in EvictionKind::ALL {
                    for admission in [
                        Rule::Always,
                        Rule::SecondRequest,
                        Rule::Small { largest: 25 },
                    ] {
                        let mut cache = Simulation::new(Setting {
                            capacity_bytes: *capacity_bytes,
                            eviction,
                            admission,
                        });
                        cache.ask_all(&trace);
                        let totals = cache.totals();
                        let place = format!("{eviction}, {capacity_bytes} bytes, seed {seed}");
                        assert!(totals.hits <= most, "{place}");
                        assert!(totals.hit_bytes <= most_bytes, "{place}");
                        assert!(size_max > 1 || totals.hits <= optimum, "{place}");
                        assert!(size_max > 1 || optimum <= most, "{place}");
                    }
                }
            }
        }
    }
}

#[test]
fn empty_trace_has_no_hits() {
    assert_eq!(Optimum::default().hits(&[0, 5]), Ok(vec![0, 0]));
    assert_eq!(FlowBound::new(vec![5]).hits(), [(0, 0)]);
}
