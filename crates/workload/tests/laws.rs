//! Laws: what they draw, and their text.

use proptest::prelude::*;
use weir_workload::{Chance, Dimension, Law};

fn law(text: &str) -> Law {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn draws(law: &Law, count: usize) -> Vec<f64> {
    let mut chance = Chance::new(11, 4);
    (0..count).map(|_| law.draw(&mut chance)).collect()
}

fn mean(draws: &[f64]) -> f64 {
    let count = u32::try_from(draws.len()).expect("few");
    draws.iter().sum::<f64>() / f64::from(count)
}

#[test]
fn mean_of_draws_is_the_stated_mean_of_the_law() {
    // tolerances of about four standard deviations of a mean of 200 000
    let check = |text: &str, expected: f64, tolerance: f64| {
        let law = law(text);
        let stated = law.mean().unwrap();
        assert!(
            (stated / expected - 1.0).abs() < 1e-3,
            "{text}: states {stated}, not {expected}"
        );
        let drawn = mean(&draws(&law, 200_000));
        assert!(
            (drawn / stated - 1.0).abs() < tolerance,
            "{text}: draws {drawn}, states {stated}"
        );
    };
    check("constant(3s)", 3.0, 1e-9);
    check("uniform(0, 40KB)", 20_480.0, 0.006);
    check("exp(4.5KB)", 4608.0, 0.01);
    check("normal(2.5s, 1s)", 2.5, 0.004);
    check("lognormal(300KB, 300KB)", 307_200.0, 0.01);
    check("lognormal(57KB, 280KB)", 58_368.0, 0.06);
    // the means of PGL's discrete law
    check("zipf(13)", 4.4544, 0.01);
    check("zipf(16)", 5.1716, 0.01);
    check("zipf(64)", 14.8502, 0.015);
    check("zipf(1)", 1.0, 1e-9);
    // uncapped, a mean of 33 KB: too heavy a tail to draw one
    assert!((law("pareto(1.1, 3KB)").mean().unwrap() / 33_792.0 - 1.0).abs() < 1e-9);
    check(
        "pareto(1.1, 3KB, max 1MB)",
        3072.0 * (1.0 + (1.0 - libm::pow(3.0 / 1024.0, 0.1)) / 0.1),
        0.05,
    );
    check(
        "pareto(1, 3KB, max 1MB)",
        3072.0 * (1.0 + libm::log(1024.0 / 3.0)),
        0.05,
    );
    check("pareto(2.5, 3KB, max 1MB)", 5119.1, 0.02);
    check(
        "mix(99%: uniform(0, 40KB), 1%: constant(1MB))",
        0.99 * 20_480.0 + 10_485.76,
        0.04,
    );
    assert_eq!(law("pareto(1, 3KB)").mean(), None);
}

#[test]
fn deviation_of_draws_is_that_of_the_law() {
    let check = |text: &str, expected: f64, tolerance: f64| {
        let drawn = draws(&law(text), 200_000);
        let center = mean(&drawn);
        let squares: Vec<f64> = drawn
            .iter()
            .map(|value| (value - center) * (value - center))
            .collect();
        let found = mean(&squares).sqrt();
        assert!(
            (found / expected - 1.0).abs() < tolerance,
            "{text}: {found}"
        );
    };
    check("normal(2.5s, 1s)", 1.0, 0.01);
    check("lognormal(25KB, 10KB)", 10_240.0, 0.02);
    check("lognormal(300KB, 300KB)", 307_200.0, 0.08);
    check("exp(4.5KB)", 4608.0, 0.02);
}

#[test]
fn zipf_draws_have_the_probabilities_of_pgl() {
    // P(k) = ln((k + 1) / k) / ln(N + 1)
    let drawn = draws(&law("zipf(13)"), 200_000);
    for k in 1..=13_u32 {
        let k = f64::from(k);
        let found = mean(
            &drawn
                .iter()
                .map(|value| f64::from(u8::from((value - k).abs() < 0.5)))
                .collect::<Vec<_>>(),
        );
        let expected = libm::log((k + 1.0) / k) / libm::log(14.0);
        assert!(
            (found - expected).abs() < 0.005,
            "{k}: {found}, not {expected}"
        );
    }
}

#[test]
fn law_text_parses_to_its_normal_form_and_dimension() {
    let check = |text: &str, normal: &str, dimension: Dimension| {
        let law = law(text);
        assert_eq!(law.to_string(), normal, "{text}");
        assert_eq!(law.dimension(), dimension, "{text}");
    };
    check("3s", "constant(3s)", Dimension::Seconds);
    check("0", "constant(0)", Dimension::Plain);
    check("constant(0s)", "constant(0)", Dimension::Plain);
    check(" uniform( 0,40 KB ) ", "uniform(0, 40KB)", Dimension::Bytes);
    check("uniform(0, 8192B)", "uniform(0, 8KB)", Dimension::Bytes);
    check("zipf(64)", "zipf(64)", Dimension::Plain);
    check(
        "pareto(mean 33KB, 3KB)",
        "pareto(1.1, 3KB)",
        Dimension::Bytes,
    );
    check(
        "pareto(1.1, 3KB, max 100MB)",
        "pareto(1.1, 3KB, max 100MB)",
        Dimension::Bytes,
    );
    check(
        "mix(0.5: 1KB, 50%: mix(100%: exp(2KB)))",
        "mix(50%: constant(1KB), 50%: mix(100%: exp(2KB)))",
        Dimension::Bytes,
    );
    assert!(law("0").is_of(Dimension::Bytes) && law("0").is_of(Dimension::Seconds));
    assert!(!law("3s").is_of(Dimension::Bytes));
}

#[test]
fn malformed_law_is_refused_with_the_reason() {
    let check = |text: &str, what: &str| {
        let error = text.parse::<Law>().expect_err(text).to_string();
        assert!(error.contains(what), "{text}: {error}");
    };
    check("", "is not a number with a unit");
    check("exp", "`exp` has no parameters");
    check("exponential(3s)", "unknown law `exponential`");
    check("exp(3s", "closing parenthesis is missing");
    check("exp(3s))", "no opening one");
    check("exp((3s)", "closing parenthesis is missing");
    check(
        "exp(3s, 4s)",
        "has 2 parameters; did you mean `exp(4.5KB)`?",
    );
    check("exp(-3s)", "not more than zero");
    check("constant(-1)", "less than zero");
    check("uniform(4KB, 3KB)", "the first value is the larger one");
    check("uniform(1s, 40KB)", "`40KB` is not a time");
    check("zipf(0)", "not an integer from 1");
    check("zipf(1.5)", "not an integer from 1");
    check("pareto(1.1, 3KB, 100MB)", "did you mean `max 100MB`?");
    check("pareto(1.1, 3KB, max 1KB)", "less than the least");
    check("pareto(mean 3KB, 3KB)", "not more than the least");
    check("pareto(1.1s, 3KB)", "alpha is a plain number");
    check("mix(50%: 1KB)", "add up to 50%");
    check("mix(1KB)", "has no share");
    check("mix(150%: 1KB)", "not a share from 0% to 100%");
    check("mix()", "has no share");
    let nested = (0..9).fold("1KB".to_owned(), |inner, _| format!("mix(100%: {inner})"));
    check(&nested, "mixes stand in each other");
    check(&" ".repeat(5000), "longer than 4096 bytes");
}

/// Numbers as people write them, and some that they do not.
fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![(1_u32..100_000).prop_map(f64::from), 1e-6_f64..1e12]
}

fn any_law() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any_number().prop_map(|a| format!("constant({a}B)")),
        (any_number(), any_number()).prop_map(|(a, b)| format!(
            "uniform({}B, {}B)",
            a.min(b),
            a.max(b)
        )),
        any_number().prop_map(|a| format!("exp({a}KB)")),
        (any_number(), any_number()).prop_map(|(a, b)| format!("normal({a}B, {b}B)")),
        (any_number(), any_number()).prop_map(|(a, b)| format!("lognormal({a}KB, {b}B)")),
        (0.1_f64..5.0, any_number(), 1.0_f64..1e6)
            .prop_map(|(alpha, k, more)| format!("pareto({alpha}, {k}B, max {}B)", k * more)),
    ];
    let parts = prop::collection::vec((1_u32..100, leaf.clone()), 1..5).prop_map(|parts| {
        let sum: f64 = parts.iter().map(|(share, _)| f64::from(*share)).sum();
        let parts: Vec<String> = parts
            .into_iter()
            .map(|(share, law)| format!("{}: {law}", f64::from(share) / sum))
            .collect();
        format!("mix({})", parts.join(", "))
    });
    prop_oneof![leaf, parts]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn written_law_parses_to_the_same_law(text in any_law()) {
        let law: Law = text.parse().unwrap();
        let again: Law = law.to_string().parse().unwrap();
        prop_assert_eq!(&again, &law);
        prop_assert_eq!(again.to_string(), law.to_string());
    }

    #[test]
    fn drawn_value_is_within_the_minimum_and_maximum_of_its_law(text in any_law(), seed: u64) {
        let law: Law = text.parse().unwrap();
        let mut chance = Chance::new(seed, 0);
        for _ in 0..100 {
            let value = law.draw(&mut chance);
            // a hair for the rounding of the last step
            let slack = 1e-9 * (value.abs() + law.minimum().abs());
            prop_assert!(value.is_finite() && value >= law.minimum() - slack, "{} of {}", value, law);
            if let Some(most) = law.maximum() {
                prop_assert!(value <= most + slack, "{} of {}", value, law);
            }
        }
    }

    #[test]
    fn scaled_law_draws_the_scaled_value(text in any_law(), seed: u64) {
        let law: Law = text.parse().unwrap();
        let (mut one, mut other) = (Chance::new(seed, 0), Chance::new(seed, 0));
        let (found, expected) = (law.times(2.0).draw(&mut one), 2.0 * law.draw(&mut other));
        prop_assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} {expected}");
    }

    #[test]
    fn any_text_is_refused_or_parses_to_a_law_that_round_trips(text in prop_oneof!["\\PC{0,40}", "[a-z]{3,9}\\([0-9., KBs%:max()]{0,30}\\)?"]) {
        if let Ok(law) = text.parse::<Law>() {
            let mut chance = Chance::new(1, 1);
            let _value = law.draw(&mut chance);
            prop_assert_eq!(law.to_string().parse::<Law>().unwrap(), law);
        }
    }
}
