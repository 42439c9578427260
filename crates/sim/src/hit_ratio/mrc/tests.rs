use super::counts::LruCounts;
use super::*;
use crate::hit_ratio::hits::{Setting, Simulation, Trace, ZipfTrace, survey};
use crate::hit_ratio::keys::{Access, KeyRule, Keys, NumberedRequest};
use std::num::NonZero;
use weir_policy::admission::Rule;
use weir_policy::eviction::EvictionKind;
use weir_workload::Chance;

fn plan(sizes: &str, policies: &[EvictionKind]) -> Plan {
    Plan {
        rule: KeyRule::FirstSize,
        sizes: sizes.parse().unwrap(),
        policies: policies.to_vec(),
        admission: Rule::Always,
        sample: None,
        with_bound: true,
        is_by_count: false,
        threads: NonZero::new(2).unwrap(),
    }
}

fn zipf(requests: u64, keys: u64, size: &str, seed: u64) -> ZipfTrace {
    ZipfTrace {
        requests,
        keys,
        exponent: 0.8,
        size: size.parse().unwrap(),
        seed,
    }
}

#[test]
fn exact_lru_curve_equals_a_simulation_of_each_size() {
    for seed in 0..40 {
        let mut chance = Chance::new(seed, 0);
        // most are small, and some as large as many sizes of the list
        let sizes: Vec<u64> = (0..150)
            .map(|_| match chance.below(10) {
                0 => chance.below(6000),
                1 => 0,
                _ => 1 + chance.below(60),
            })
            .collect();
        let accesses: Vec<Access> = (0..4000)
            .map(|_| {
                let key = chance.below(150).min(chance.below(150));
                Access {
                    key,
                    size_bytes: sizes[usize::try_from(key).unwrap()],
                }
            })
            .collect();
        let mut numbered: Vec<NumberedRequest> = Vec::new();
        let mut keys = Keys::new(KeyRule::FirstSize);
        keys.number_all(&accesses, &mut numbered).unwrap();
        let mut capacities: Vec<u64> = (0..60).map(|_| chance.below(20_000)).collect();
        capacities.extend([50, 51, 52, 5999, 6000, keys.footprint_bytes()]);
        capacities.sort_unstable();
        capacities.dedup();
        let mut counts = LruCounts::new(capacities.clone());
        for asked in &numbered {
            counts.ask(*asked, 1.0, 1.0);
        }
        for (capacity_bytes, hits) in capacities.into_iter().zip(counts.hits()) {
            let mut cache = Simulation::new(Setting {
                capacity_bytes,
                eviction: EvictionKind::Lru,
                admission: Rule::Always,
            });
            cache.ask_all(&numbered);
            let totals = cache.totals();
            let expected = (totals.hits as f64, totals.hit_bytes as f64);
            assert_eq!(
                (hits.requests, hits.bytes),
                expected,
                "seed {seed}, {capacity_bytes} bytes"
            );
        }
    }
}

fn ratios(curve: &Curve) -> Vec<(f64, f64)> {
    let point = |point: &CurvePoint| (point.miss_ratio, point.byte_miss_ratio);
    curve.points.iter().map(point).collect()
}

#[test]
fn no_policy_is_below_the_reference_curve_or_above_a_miss_ratio_of_one() {
    for (size, is_by_count, reference) in [
        ("exp(3000)", false, Method::Bound),
        ("700", false, Method::Optimum),
        ("exp(3000)", true, Method::Optimum),
    ] {
        let trace = zipf(30_000, 3000, size, 5);
        let plan = Plan {
            is_by_count,
            ..plan("0.5%..100%:9", &EvictionKind::ALL)
        };
        let curves = curves(&trace, &plan).unwrap();
        let (line, policies) = curves.curves.split_last().unwrap();
        assert_eq!(line.method, reference, "{size}");
        assert_eq!(policies.len(), EvictionKind::ALL.len());
        for curve in policies {
            for (found, least) in ratios(curve).into_iter().zip(ratios(line)) {
                assert!(
                    found.0 >= least.0 && found.0 <= 1.0,
                    "{size} {} {found:?}",
                    curve.name
                );
                assert!(
                    found.1 >= least.1 && found.1 <= 1.0,
                    "{size} {} {found:?}",
                    curve.name
                );
                assert!(found.0 >= curves.least_miss_ratio);
            }
            // a cache with room for all misses once a key
            let last = curve.points.last().unwrap();
            assert_eq!(last.miss_ratio, curves.least_miss_ratio, "{}", curve.name);
        }
    }
}

#[test]
fn lru_curve_by_stack_distances_equals_that_by_simulation() {
    let trace = zipf(20_000, 2000, "exp(3000)", 2);
    let by_distances = curves(&trace, &plan("1%..100%:12", &[EvictionKind::Lru])).unwrap();
    // a rule that refuses nothing, and that only a simulation knows
    let simulated = Plan {
        admission: Rule::Small { largest: u64::MAX },
        ..plan("1%..100%:12", &[EvictionKind::Lru])
    };
    let simulated = curves(&trace, &simulated).unwrap();
    assert_eq!(simulated.curves[0].method, Method::Simulation);
    assert_eq!(
        ratios(&by_distances.curves[0]),
        ratios(&simulated.curves[0])
    );
}

/// Of all points of all samples: how many are within the stated error, the mean of the differences,
/// and of the errors.
fn judge(exact: &Curves, sampled: impl Iterator<Item = Curves>) -> (f64, f64, f64) {
    let (mut within, mut off, mut stated, mut count) = (0.0, 0.0, 0.0, 0.0);
    for curves in sampled {
        for (found, truth) in curves.curves.iter().zip(&exact.curves) {
            for (found, truth) in found.points.iter().zip(&truth.points) {
                assert_eq!(found.capacity_bytes, truth.capacity_bytes);
                let error = found.miss_ratio_error.unwrap();
                let difference = (found.miss_ratio - truth.miss_ratio).abs();
                within += f64::from(u8::from(difference <= error));
                off += difference;
                stated += error;
                count += 1.0;
            }
        }
    }
    (within / count, off / count, stated / count)
}

fn check_sample(policies: &[EvictionKind], sample: impl Fn(u64) -> Sample, off_max: f64) {
    let trace = zipf(200_000, 60_000, "exp(3000)", 9);
    let footprint = survey(&trace, KeyRule::FirstSize).unwrap().footprint_bytes;
    let sizes = format!("{}..{}:8", footprint / 100, footprint);
    let exact = curves(&trace, &plan(&sizes, policies)).unwrap();
    let sampled = (0..12).map(|seed| {
        let plan = Plan {
            sample: Some(sample(seed)),
            ..plan(&sizes, policies)
        };
        curves(&trace, &plan).unwrap()
    });
    let (within, off, stated) = judge(&exact, sampled);
    assert!(
        within >= 0.9,
        "{within} of the points are within their errors, {off} off, {stated} stated"
    );
    assert!(off < off_max, "{off} off, {stated} stated");
    assert!(
        stated < 6.0 * off,
        "{stated} stated is no statement where {off} is off"
    );
}

#[test]
fn fixed_rate_sample_is_within_its_stated_error_at_nine_points_in_ten() {
    check_sample(
        &[EvictionKind::Lru],
        |seed| Sample::Rate { share: 0.05, seed },
        0.025,
    );
}

#[test]
fn scaled_down_simulation_is_within_its_stated_error_at_nine_points_in_ten() {
    let policies = [EvictionKind::S3Fifo, EvictionKind::Sieve];
    check_sample(&policies, |seed| Sample::Rate { share: 0.05, seed }, 0.025);
}

#[test]
fn fixed_size_sample_is_within_its_stated_error_at_nine_points_in_ten() {
    check_sample(
        &[EvictionKind::Lru],
        |seed| Sample::Keys { max: 2000, seed },
        0.025,
    );
}

#[test]
fn sample_of_all_keys_equals_the_exact_curve() {
    let trace = zipf(20_000, 2000, "exp(3000)", 2);
    let policies = [EvictionKind::Sieve, EvictionKind::Lru];
    let exact = curves(&trace, &plan("1%..100%:7", &policies)).unwrap();
    let sampled = Plan {
        sample: Some(Sample::Rate {
            share: 1.0,
            seed: 3,
        }),
        ..plan("1%..100%:7", &policies)
    };
    let sampled = curves(&trace, &sampled).unwrap();
    for (found, truth) in sampled.curves.iter().zip(&exact.curves) {
        assert_eq!(ratios(found), ratios(truth));
    }
    let bytes: Vec<String> = exact.curves[0]
        .points
        .iter()
        .map(|point| point.capacity_bytes.to_string())
        .collect();
    let all_keys = Plan {
        sample: Some(Sample::Keys { max: 5000, seed: 3 }),
        ..plan(&bytes.join(","), &[EvictionKind::Lru])
    };
    let all_keys = curves(&trace, &all_keys).unwrap();
    assert_eq!(ratios(&all_keys.curves[0]), ratios(&exact.curves[1]));
    assert_eq!(all_keys.footprint_bytes, exact.footprint_bytes);
    assert_eq!(all_keys.sampled_share, 1.0);
}

#[test]
fn invalid_sampling_plan_is_refused() {
    let trace = zipf(10, 10, "1", 2);
    let check = |sample, sizes: &str, policies: &[EvictionKind], part: &str| {
        let plan = Plan {
            sample: Some(sample),
            ..plan(sizes, policies)
        };
        let error = curves(&trace, &plan).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    let lru = [EvictionKind::Lru];
    let keys = |max| Sample::Keys { max, seed: 1 };
    check(
        Sample::Rate {
            share: 0.0,
            seed: 1,
        },
        "1%",
        &lru,
        "more than 0",
    );
    check(
        Sample::Rate {
            share: f64::NAN,
            seed: 1,
        },
        "1%",
        &lru,
        "more than 0",
    );
    check(keys(99), "1KiB", &lru, "at least 100");
    check(keys(1000), "1%", &lru, "sizes in bytes");
    check(keys(1000), "1KiB", &[EvictionKind::Sieve], "for lru");
}

#[test]
fn empty_trace_gives_finite_curves() {
    let trace: Vec<Access> = Vec::new();
    let none: &dyn Trace = &trace;
    for sample in [
        None,
        Some(Sample::Rate {
            share: 0.5,
            seed: 1,
        }),
    ] {
        let plan = Plan {
            sample,
            ..plan("1%,5KiB", &EvictionKind::ALL)
        };
        let curves = curves(none, &plan).unwrap();
        let values = curves.curves.iter().flat_map(ratios);
        assert!(
            values
                .flat_map(|(a, b)| [a, b])
                .all(|value| value.is_finite() && value <= 1.0)
        );
    }
}
