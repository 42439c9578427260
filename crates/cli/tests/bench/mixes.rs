//! The open loops whole: every phase of PolyMix-3, and the mix of today, in half a minute.

use super::bench::{Bench, number};
use super::proxies::forward_nginx;
use super::support::{Config, Weir};
use serde_json::Value;

/// PolyMix-3's twelve phases with plateaus of two and a half seconds, at a rate that a busy machine
/// can ask for.
const POLYMIX: &[&str] = &[
    "polymix3-mini",
    "--scale",
    "0.01",
    "--set",
    "workload.peak_rate_per_s=60",
    "--set",
    "workload.fill_rate_per_s=60",
    "--set",
    "origin.latency=normal(60ms, 20ms)",
];

const WEB: &[&str] = &[
    "web-2026",
    "--scale",
    "0.02",
    "--set",
    "workload.rate_per_s=150",
    "--set",
    "workload.agents=100",
];

/// A run that is valid, or is not for one reason only: this machine had something else to do.
#[track_caller]
fn run(mix: &[&str], address: &str) -> (Value, String) {
    let bench = Bench::new();
    let mut arguments = vec!["run"];
    arguments.extend(mix);
    arguments.extend(["--proxy", address, "--out", "record.json"]);
    let output = bench.output(&arguments);
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let record = bench.record("record.json");
    let reasons = record["reasons"].as_array().expect("a list");
    let is_overload = |reason: &Value| {
        reason
            .as_str()
            .is_some_and(|reason| reason.contains("The generator was overloaded"))
    };
    assert!(reasons.iter().all(is_overload), "{said}");
    (record, said)
}

/// A share of a phase's requests.
#[track_caller]
fn share(phase: &Value, pointer: &str) -> f64 {
    ratio(number(phase, pointer), number(phase, "/client/requests"))
}

#[expect(clippy::cast_precision_loss, reason = "a few hundred requests")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// How many requests of a hundred with a date from before the last modification may be answered
/// 304. A target of this mix changes in the second that its Expires names. A cache may take it for
/// fresh through a part of that second: nginx until it ends, Weir for whole seconds from the time
/// at which the response came (RFC 9111 §4.2.3). Then it answers rightly for the version before,
/// whose date is not later than the one asked with.
const LINGERING_MAX: u64 = 25;

/// What holds for every cache that may keep all of it.
#[track_caller]
fn check_polymix(record: &Value, said: &str) {
    let phases = record["phases"].as_array().expect("a list");
    let names: Vec<&str> = phases
        .iter()
        .filter_map(|phase| phase["name"].as_str())
        .collect();
    let expected = [
        "warm", "framp", "fill", "fexit", "inc1", "top1", "dec1", "idle", "inc2", "top2", "dec2",
        "cool",
    ];
    assert_eq!(names, expected);
    let phase = |name: &str| {
        let found = phases.iter().find(|phase| phase["name"] == name);
        found.unwrap_or_else(|| panic!("no phase {name}"))
    };
    for name in &expected[..11] {
        assert!(
            number(phase(name), "/client/requests") > 0,
            "{name}: {said}"
        );
        assert_eq!(phase(name)["is_measured"], *name == "top2", "{name}");
    }
    let saved = |name: &str| 1.0 - share(phase(name), "/origin/requests");
    let offered = |name: &str| share(phase(name), "/client/could_hit");
    // a recurrence of 7 %, and of 72 %, of which four in five can be stored
    assert!(offered("fill") < 0.15, "{}: {said}", offered("fill"));
    for plateau in ["top1", "top2"] {
        let (offered, saved) = (offered(plateau), saved(plateau));
        assert!((0.35..0.70).contains(&offered), "{offered}: {said}");
        // less: what changed, what was under way, what was not read to its end
        assert!(
            (offered - 0.15..offered + 0.03).contains(&saved),
            "{plateau}: {saved} of {offered}: {said}"
        );
    }
    // an idle robot asks for less than a busy one
    let rate = |name: &str| {
        let seconds = phase(name)["seconds"].as_f64().expect("a number");
        ratio(number(phase(name), "/client/requests"), 1) / seconds
    };
    assert!(rate("idle") < 0.5 * rate("top2"), "{said}");
    // special requests are answered as what they are
    let kinds = &record["total"]["client"]["by_kind"];
    let of = |kind: &str, field: &str| number(kinds, &format!("/{kind}/{field}"));
    assert_eq!(of("reload", "hits"), 0, "{kinds}");
    assert!(of("reload", "forwarded") > 0, "{kinds}");
    assert!(of("if-modified-304", "not_modified") > 0, "{kinds}");
    let (early, dated) = (
        of("if-modified-200", "not_modified"),
        of("if-modified-200", "requests"),
    );
    assert!(dated > 0 && early * 100 <= dated * LINGERING_MAX, "{kinds}");
    let special = of("reload", "requests") + of("if-modified-304", "requests");
    let all = number(record, "/total/client/requests");
    assert!((0.02..0.16).contains(&ratio(special, all)), "{kinds}");
    assert_eq!(number(record, "/total/client/cache_status/disagree"), 0);
}

#[test]
fn polymix_phases_and_hit_shares_are_within_bounds_through_weir() {
    let weir = Weir::serve(&Config::forward());
    let (record, said) = run(POLYMIX, &weir.address().to_string());
    check_polymix(&record, &said);
}

#[test]
fn polymix_phases_and_hit_shares_are_within_bounds_through_nginx() {
    let nginx = forward_nginx();
    let (record, said) = run(POLYMIX, &nginx.address.to_string());
    check_polymix(&record, &format!("{said}{}", nginx.errors()));
}

#[test]
fn web_2026_hits_and_validations_are_within_bounds_through_weir() {
    let weir = Weir::serve(&Config::forward());
    let (record, said) = run(WEB, &weir.address().to_string());
    let measured = &record["phases"][1];
    assert_eq!(measured["name"], "measured", "{said}");
    let (offered, hits) = (
        share(measured, "/client/could_hit"),
        share(measured, "/client/hits"),
    );
    // most of what is offered has a lifetime, and what has none is validated
    assert!((0.3..0.9).contains(&offered), "{offered}: {said}");
    assert!((0.3 * offered..offered).contains(&hits), "{hits}: {said}");
    assert!(number(measured, "/client/validated") > 0, "{said}");
    assert_eq!(number(measured, "/client/cache_status/disagree"), 0);
}
