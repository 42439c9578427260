//! Sketches against exact counts: the bounds hold for every stream, in one sketch or in several,
//! and after every halving.

use proptest::prelude::*;
use std::collections::HashMap;
use weir_measure::sketch::{Added, COUNTERS_MAX, Merged, SpaceSaving, merge};

/// A step of a stream.
#[derive(Clone, Copy, Debug)]
enum Step {
    Add {
        worker: usize,
        key: u64,
        weight: u64,
    },
    Halve,
}

/// What the sketches should know: the true weights, as far as doubles hold them.
#[derive(Default)]
struct Exact {
    weights: HashMap<u64, f64>,
}

impl Exact {
    fn halve(&mut self) {
        for weight in self.weights.values_mut() {
            *weight /= 2.0;
        }
    }

    /// Checks every bound that `merged` states.
    fn check(&self, merged: &Merged, sketches: usize) {
        // doubles add up to an error of their own
        let near = |weight: f64| weight * 1e-9 + 1e-6;
        let listed: HashMap<u64, _> = merged.rows.iter().map(|row| (row.key, row)).collect();
        assert_eq!(listed.len(), merged.rows.len(), "a key has two rows");
        for (key, weight) in &self.weights {
            match listed.get(key) {
                Some(row) => {
                    assert!(
                        row.count as f64 + near(*weight) >= *weight,
                        "{key}: {row:?} {weight}"
                    );
                    let certain = (row.count - row.error) as f64;
                    assert!(certain <= weight + near(*weight), "{key}: {row:?} {weight}");
                }
                None => assert!(
                    *weight <= merged.resolution as f64 + near(*weight),
                    "{key} weighs {weight} and is not listed, at a resolution of {}",
                    merged.resolution
                ),
            }
        }
        let total: f64 = self.weights.values().sum();
        let most = merged.total as f64 / COUNTERS_MAX as f64 + sketches as f64;
        assert!(
            merged.resolution as f64 <= most,
            "{} > {most}",
            merged.resolution
        );
        assert!(merged.total as f64 + near(total) >= total);
        let falls = merged
            .rows
            .windows(2)
            .all(|pair| pair[0].count >= pair[1].count);
        assert!(falls, "the rows are not in their order");
    }
}

/// Runs a stream through `workers` sketches, and keeps names as a caller would: a key is known
/// exactly as long as a sketch has it.
fn run(workers: usize, steps: &[Step]) {
    let mut sketches = vec![SpaceSaving::new(); workers];
    let mut names: Vec<HashMap<u64, ()>> = vec![HashMap::new(); workers];
    let mut exact = Exact::default();
    for step in steps {
        match *step {
            Step::Add {
                worker,
                key,
                weight,
            } => {
                let names = &mut names[worker];
                match sketches[worker].add(key, weight) {
                    Added::Known => assert!(names.contains_key(&key)),
                    Added::New => assert!(names.insert(key, ()).is_none()),
                    Added::Replaced { key: replaced } => {
                        assert!(names.remove(&replaced).is_some());
                        assert!(names.insert(key, ()).is_none());
                    }
                }
                *exact.weights.entry(key).or_default() += weight as f64;
            }
            Step::Halve => {
                sketches.iter_mut().for_each(SpaceSaving::halve);
                exact.halve();
            }
        }
    }
    for (sketch, names) in sketches.iter().zip(&names) {
        let rows: Vec<u64> = sketch.rows().map(|row| row.key).collect();
        assert_eq!(rows.len(), names.len());
        assert!(rows.iter().all(|key| names.contains_key(key)));
    }
    let parts: Vec<&SpaceSaving> = sketches.iter().collect();
    exact.check(&merge(&parts), workers);
}

/// A digest of a small number, as keys are.
fn digest(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Steps of a stream whose `keys` keys are drawn by Zipf's law with the exponent `slope`.
fn zipf((keys, slope, workers): (u64, f64, usize), draws: &[(f64, u64, usize, bool)]) -> Vec<Step> {
    let weights: Vec<f64> = (1..=keys).map(|rank| (rank as f64).powf(-slope)).collect();
    let sum: f64 = weights.iter().sum();
    let mut reached = 0.0;
    let ends: Vec<f64> = weights
        .iter()
        .map(|weight| {
            reached += weight / sum;
            reached
        })
        .collect();
    let step = |(draw, weight, worker, halves): &(f64, u64, usize, bool)| {
        if *halves {
            return Step::Halve;
        }
        let rank = ends.partition_point(|end| end < draw);
        Step::Add {
            worker: worker % workers,
            key: digest(rank as u64),
            weight: *weight,
        }
    };
    draws.iter().map(step).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn count_of_each_key_is_within_its_bound_on_random_streams(
        keys in prop_oneof![Just(10_u64), Just(1_000), Just(1_001), Just(20_000)],
        slope in 0.0..2.0_f64,
        workers in 1..=8_usize,
        draws in proptest::collection::vec(
            (0.0..1.0_f64, 1..=(1_u64 << 40), 0..8_usize, proptest::bool::weighted(0.000_5)),
            0..12_000,
        ),
    ) {
        run(workers, &zipf((keys, slope, workers), &draws));
    }
}

#[test]
fn bound_holds_when_one_key_too_many_comes_in_turn() {
    for workers in [1, 3] {
        let keys = (COUNTERS_MAX as u64 + 1) * workers as u64;
        let steps = (0..40_000_u64)
            .zip((0..workers).cycle())
            .flat_map(|(at, worker)| {
                let halves = (at % 7_001 == 7_000).then_some(Step::Halve);
                let add = Step::Add {
                    worker,
                    key: digest(at % keys),
                    weight: 1,
                };
                halves.into_iter().chain([add])
            });
        run(workers, &steps.collect::<Vec<_>>());
    }
}

#[test]
fn keys_with_equal_low_bits_are_told_apart() {
    // all in one slot of the table, as no digest under a secret would be
    let steps: Vec<Step> = (0..6_000_u64)
        .map(|at| Step::Add {
            worker: 0,
            key: (at * 37 % 1_500) << 32,
            weight: at % 5,
        })
        .collect();
    run(1, &steps);
}

#[test]
fn counts_are_exact_while_there_are_free_counters() {
    let mut sketch = SpaceSaving::new();
    for round in 1..=3 {
        for key in 0..COUNTERS_MAX as u64 {
            sketch.add(digest(key), key * round);
        }
    }
    let merged = merge(&[&sketch]);
    assert!(merged.rows.iter().all(|row| row.error == 0));
    assert_eq!(merged.rows[0].count, (COUNTERS_MAX as u64 - 1) * 6);
    assert_eq!(
        merged.total,
        merged.rows.iter().map(|row| row.count).sum::<u64>()
    );
}

#[test]
fn equal_weights_beyond_the_resolution_are_not_certain() {
    let mut sketch = SpaceSaving::new();
    for key in 0..100_000 {
        sketch.add(digest(key), 1);
    }
    sketch.add(digest(7), 500);
    let merged = merge(&[&sketch]);
    let certain = merged.rows.iter().filter(|row| merged.is_certain(row));
    let certain: Vec<u64> = certain.map(|row| row.key).collect();
    assert_eq!(certain, [digest(7)]);
}

#[test]
fn counts_saturate_and_do_not_wrap() {
    let mut sketch = SpaceSaving::new();
    sketch.add(1, u64::MAX);
    sketch.add(1, u64::MAX);
    sketch.add(2, 3);
    let merged = merge(&[&sketch, &sketch]);
    assert_eq!((merged.rows[0].key, merged.rows[0].count), (1, u64::MAX));
    assert_eq!((merged.rows[1].key, merged.rows[1].count), (2, 6));
    assert_eq!(merged.total, u64::MAX);
}

#[test]
fn empty_sketch_has_no_row_and_a_full_one_has_its_documented_size() {
    assert_eq!(SpaceSaving::BYTES_MAX, 1000 * 34 + 4096);
    let merged = merge(&[&SpaceSaving::new()]);
    assert_eq!(merged, Merged::default());
}
