//! What was agreed that modules cost at most.

use super::Record;
use super::cases::{
    AGAINST, BASELINE, BODY, CASES, COMPRESSED, ICAP_ECHO, SQUID_ICAP, WASM_EMPTY, WASM_HEADERS,
    Work,
};
use super::costs;
use super::counts::SMALL_BYTES;
use super::cpu::HIT_256K;
use super::transcoder::{IMAGES_PER_S, TranscoderSet};
use crate::peers::{FORWARD_1K, HIT_1K, Run};
use crate::record::markdown::{Target, bytes};

/// By what a limit is judged.
#[derive(Clone, Copy, Debug)]
enum By {
    /// Instructions of a hit of 1 KiB.
    Instructions,
    /// CPU time of this kind of request.
    Cpu(&'static str),
}

/// The most that a case costs, as a multiple of no module.
const LIMITS: [(&str, By, f64); 4] = [
    ("enabled, out of scope", By::Instructions, ENABLED_RATIO_MAX),
    ("native: empty callback", By::Cpu(HIT_1K), 1.01),
    (WASM_EMPTY, By::Cpu(HIT_1K), 1.15),
    (WASM_HEADERS, By::Cpu(HIT_1K), 1.40),
];

/// The most that a hit of 256 KiB costs whose content passes a module, as a multiple of one that is
/// copied once.
const BODY_RATIO_MAX: f64 = 1.25;

/// The same of the interface that is there, and of no module.
const ENABLED_RATIO_MAX: f64 = 1.003;

/// A hit is plain if it costs no more than this: the module is called and adds Vary, and nothing is
/// compressed, which would take a hundred times as many instructions.
const HIT_RATIO_MAX: f64 = 2.0;

/// CPU time beside that of Squid, which asks the same ICAP server.
const SQUID_RATIO_MAX: f64 = 0.5;

/// How much a module holds at most, bytes (`module[].hold`).
const HOLD_BYTES: u64 = 256 << 10;

/// The time of a hit beside images that are converted, as a multiple of that of hits alone.
const TRANSCODER_RATIO_MAX: f64 = 1.03;

/// A target for each of which there are figures.
pub(super) fn judge(record: &Record) -> Vec<Target> {
    let limits = LIMITS.iter().filter_map(|limit| at_most(record, limit));
    let limits = against(record).into_iter().chain(limits);
    let limits = limits.chain(body(record)).chain(compressed(record));
    limits
        .chain(icap(record))
        .chain(read_ahead(record))
        .chain(transcoder(record))
        .collect()
}

/// What the interface costs where there is no module, beside a weir without it.
fn against(record: &Record) -> Option<Target> {
    let ratio = By::Instructions.beside(record, BASELINE, AGAINST)?;
    let what = format!(
        "{BASELINE}, {}: {ratio:.3} × {AGAINST}, at most {ENABLED_RATIO_MAX:.3}",
        By::Instructions.name()
    );
    Some(Target::new(what, ratio <= ENABLED_RATIO_MAX))
}

/// A module that puts out content again must copy it, and a hit without a module does not.
fn body(record: &Record) -> Option<Target> {
    let beside_plain = costs::beside(record, BODY, BASELINE, HIT_256K)?;
    let plain = costs::cpu(record, BASELINE, HIT_256K)?.median;
    let ratio = beside_plain * plain / costs::copying_hit(record)?;
    let what = format!(
        "{BODY}, CPU of a {HIT_256K}: {ratio:.3} × {BASELINE} and a copy ({beside_plain:.3} × {BASELINE}), at most {BODY_RATIO_MAX:.3}"
    );
    Some(Target::new(what, ratio <= BODY_RATIO_MAX))
}

/// It was counted, so that the origin was asked once: all but the first were hits.
fn compressed(record: &Record) -> Option<Target> {
    let ratio = By::Instructions.beside(record, COMPRESSED, BASELINE)?;
    let what = format!(
        "{COMPRESSED}: a hit of {ratio:.3} × the instructions of {BASELINE}, at most {HIT_RATIO_MAX:.3}"
    );
    Some(Target::new(what, ratio <= HIT_RATIO_MAX))
}

fn at_most(record: &Record, &(case, by, most): &(&str, By, f64)) -> Option<Target> {
    let ratio = by.beside(record, case, BASELINE)?;
    let what = format!(
        "{case}, {}: {ratio:.3} × {BASELINE}, at most {most:.3}",
        by.name()
    );
    Some(Target::new(what, ratio <= most))
}

impl By {
    fn name(self) -> String {
        match self {
            Self::Instructions => format!("instructions of a {HIT_1K}"),
            Self::Cpu(cell) => format!("CPU of a {cell}"),
        }
    }

    fn beside(self, record: &Record, case: &str, base: &str) -> Option<f64> {
        let instructions = |case| costs::instructions(record, case, SMALL_BYTES);
        match self {
            Self::Instructions => Some(instructions(case)? / instructions(base)?),
            Self::Cpu(cell) => costs::beside(record, case, base, cell),
        }
    }
}

/// Beside Squid that asks the same server, by hits and by forwarded requests.
fn icap(record: &Record) -> Vec<Target> {
    let mut targets = Vec::new();
    for cell in [HIT_1K, FORWARD_1K] {
        let both = |number: fn(&Run) -> f64| {
            let of = |case| costs::of(record, case, cell, number).map(|it| it.median);
            of(ICAP_ECHO).zip(of(SQUID_ICAP))
        };
        if let Some(ratio) = costs::beside(record, ICAP_ECHO, SQUID_ICAP, cell) {
            let what = format!(
                "{ICAP_ECHO}, CPU of a {cell}: {ratio:.2} × that of Squid, at most {SQUID_RATIO_MAX:.2}"
            );
            targets.push(Target::new(what, ratio <= SQUID_RATIO_MAX));
        }
        if let Some((weir, squid)) = both(Run::p99_us) {
            let what = format!("{ICAP_ECHO}, p99 of a {cell}: {weir:.0} us, Squid {squid:.0}");
            targets.push(Target::new(what, weir <= squid));
        }
    }
    targets
}

/// The largest read-ahead beside that of the same experiment without a module, of the experiment in
/// which it is the most.
fn read_ahead(record: &Record) -> Vec<Target> {
    let measured = || record.figures.read_ahead.iter();
    let base = |kind| {
        let mut of_kind = measured().filter(|it| it.read_ahead.kind == kind);
        let base = of_kind.find(|it| it.case == BASELINE)?;
        Some(base.read_ahead.largest_bytes)
    };
    let cases = CASES.iter().filter(|case| case.work == Work::Body);
    let targets = cases.filter_map(|case| {
        let these = measured().filter(|it| it.case == case.name());
        let more = these.filter_map(|it| {
            let base = base(it.read_ahead.kind)?;
            Some(it.read_ahead.largest_bytes.saturating_sub(base))
        });
        let more = more.max()?;
        let what = format!(
            "{}, read-ahead: {} more than {BASELINE}, at most {}",
            case.name(),
            bytes(more),
            bytes(HOLD_BYTES)
        );
        Some(Target::new(what, more <= HOLD_BYTES))
    });
    targets.collect()
}

fn transcoder(record: &Record) -> Option<Target> {
    let ratio = costs::of_sets(record, |set| Some(set.ratio()))?.median;
    let fetches = costs::of_sets(record, TranscoderSet::fetches_ratio);
    let fetches = fetches.map_or_else(String::new, |fetches| {
        let ratio = fetches.median;
        format!(" ({ratio:.3} × where images are fetched and not converted)")
    });
    let what = format!(
        "hits beside {IMAGES_PER_S} images a second: {ratio:.3} × the time of hits alone{fetches}, at most {TRANSCODER_RATIO_MAX:.2}"
    );
    Some(Target::new(what, ratio <= TRANSCODER_RATIO_MAX))
}

#[cfg(test)]
mod tests {
    use super::super::Figures;
    use super::*;
    use crate::record::Benchmark;
    use serde_json::{Value, json};

    const ENABLED: &str = "enabled, out of scope";
    const EMPTY: &str = "native: empty callback";

    fn count(case: &str, instructions: u64) -> Value {
        json!({ "case": case, "content_bytes": SMALL_BYTES, "requests": 10, "instructions": instructions })
    }

    fn run(case: &str, cell: &str, cpu_us: u64, trouble: Option<&str>) -> Value {
        let wrk = json!({ "requests": 100, "duration_us": 1_000_000, "bytes": 1, "p50_us": 1, "p99_us": 77,
            "errors": 0, "statuses": 0 });
        json!({ "round": 1, "contender": case, "cell": cell, "wrk": wrk, "user_us": cpu_us, "system_us": 0,
            "origin_requests": 0, "rss_kib": 1, "pss_kib": 1, "trouble": trouble })
    }

    fn polymix(case: &str, hit_us: f64, reasons: &[&str]) -> Value {
        json!({ "case": case, "requests": 100, "rate_per_s": 99.5, "response_us": 1.5e6, "miss_us": 2.7e6,
            "hit_us": hit_us, "hit_ratio": 0.55, "reasons": reasons })
    }

    fn ahead(case: &str, largest_bytes: u64) -> Value {
        let kind = json!({ "reads": true, "is_storable": true });
        let read_ahead = json!({ "kind": kind, "taken_bytes": 1, "read_bytes": 1, "unread_bytes": 0,
            "largest_bytes": largest_bytes, "fetches": 1 });
        json!({ "case": case, "read_ahead": read_ahead })
    }

    fn record(figures: &Value) -> Record {
        let mut record = json!({
            "schema": 1, "command": "cargo xtask extend", "commit": "none", "begun": "now",
            "host": { "cpu": "c", "cores": 2, "kernel": "6", "load_average": "0", "memory_kib": "1" },
            "settings": { "parts": ["cpu"], "case": [], "requests": 1, "seconds": 1, "rounds": 1, "scale": 1.0,
                "against": null, "seed": 1 },
            "cores": { "server": 0, "load": 1 }, "counts": [], "runs": [], "polymix": [], "read_ahead": [],
            "transcoder": [],
        });
        for (name, value) in figures.as_object().expect("figures by name") {
            record[name] = value.clone();
        }
        serde_json::from_value(record).expect("a record")
    }

    #[track_caller]
    fn check(figures: &Value, expected: &[&str]) {
        let found = judge(&record(figures));
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn limit_holds_for_a_case_beside_no_module() {
        let counts =
            |enabled| json!({ "counts": [count(BASELINE, 10_000), count(ENABLED, enabled)] });
        let what = "enabled, out of scope, instructions of a hit 1 KiB";
        let met = format!("{what}: 1.003 × no module, at most 1.003: met");
        check(&counts(10_030), &[&met]);
        let missed = format!("{what}: 1.004 × no module, at most 1.003: MISSED");
        check(&counts(10_040), &[&missed]);
        check(&json!({ "counts": [count(ENABLED, 1)] }), &[]);
        let counts = json!({ "counts": [count(BASELINE, 10_040), count(AGAINST, 10_000)] });
        let what = "no module, instructions of a hit 1 KiB: 1.004 × no module, the other weir";
        check(&counts, &[&format!("{what}, at most 1.003: MISSED")]);
    }

    #[test]
    fn content_that_passes_a_module_may_cost_a_quarter_more_than_a_copy() {
        let figures = |body_us| {
            let runs = [
                run(BASELINE, HIT_256K, 3000, None),
                run(BODY, HIT_256K, body_us, None),
            ];
            json!({ "runs": runs, "copies_us": [9.0, 10.0, 90.0] })
        };
        let what = "native: body + headers, CPU of a hit 256 KiB";
        let met = "1.250 × no module and a copy (1.667 × no module), at most 1.250: met";
        check(&figures(5000), &[&format!("{what}: {met}")]);
        let missed = "1.275 × no module and a copy (1.700 × no module), at most 1.250: MISSED";
        check(&figures(5100), &[&format!("{what}: {missed}")]);
    }

    #[test]
    fn cpu_time_is_compared_with_the_runs_next_to_it() {
        let pair = |round: u32, case: &str, ratio: f64| json!({ "round": round, "case": case, "cell": HIT_1K, "ratio": ratio });
        // no module ran in a fast minute
        let runs = [
            run(BASELINE, HIT_1K, 1000, None),
            run(EMPTY, HIT_1K, 1300, None),
        ];
        let pairs = [
            pair(1, EMPTY, 1.008),
            pair(1, ICAP_ECHO, 4.0),
            pair(1, SQUID_ICAP, 8.0),
        ];
        let met =
            "native: empty callback, CPU of a hit 1 KiB: 1.008 × no module, at most 1.010: met";
        let icap =
            "ICAP, c-icap: echo, CPU of a hit 1 KiB: 0.50 × that of Squid, at most 0.50: met";
        check(&json!({ "runs": runs, "pairs": pairs }), &[met, icap]);
    }

    #[test]
    fn run_that_failed_a_check_is_in_no_figure() {
        let empty = EMPTY;
        let runs = [
            run(BASELINE, HIT_1K, 1000, None),
            run(empty, HIT_1K, 1005, None),
            run(empty, HIT_1K, 9000, Some("it broke")),
        ];
        let figures = json!({ "runs": runs });
        let met =
            "native: empty callback, CPU of a hit 1 KiB: 1.005 × no module, at most 1.010: met";
        check(&figures, &[met]);
        let text = Figures::render(&record(&figures));
        assert!(
            text.contains("native: empty callback, hit 1 KiB, round 1: it broke"),
            "{text}"
        );
    }

    #[test]
    fn read_ahead_may_grow_by_what_a_module_holds() {
        let body = BODY;
        let of = |more: u64| json!({ "read_ahead": [ahead(BASELINE, 100_000), ahead(body, 100_000 + more)] });
        let what = "native: body + headers, read-ahead";
        let met = format!("{what}: 256 KiB more than no module, at most 256 KiB: met");
        check(&of(HOLD_BYTES), &[&met]);
        let missed = format!("{what}: 257 KiB more than no module, at most 256 KiB: MISSED");
        check(&of(HOLD_BYTES + 1024), &[&missed]);
    }

    #[test]
    fn hits_beside_images_that_are_converted_may_take_little_more_than_hits_alone() {
        let set = |fetches: Option<f64>, beside: f64| {
            let times = |mean_us: f64| json!({ "requests": 1, "mean_us": mean_us, "p99_us": 90.0 });
            let mut set = json!({ "alone": times(100.0), "beside": times(beside), "converted": 1,
                "trouble": null });
            if let Some(fetches) = fetches {
                set["beside_fetches"] = times(fetches);
            }
            json!({ "transcoder": [set] })
        };
        let what = "hits beside 25 images a second";
        let older = "1.030 × the time of hits alone, at most 1.03: met";
        check(&set(None, 103.0), &[&format!("{what}: {older}")]);
        let fetched = "(1.020 × where images are fetched and not converted)";
        let missed = format!("1.050 × the time of hits alone {fetched}, at most 1.03: MISSED");
        let sets = set(Some(102.0), 105.0);
        check(&sets, &[&format!("{what}: {missed}")]);
        let text = Figures::render(&record(&sets));
        let row =
            "| beside 25 images a second that are converted, too | 105.0 | 90 | 1.050 | 1.029 |";
        assert!(text.lines().any(|line| line == row), "{text}");
    }

    #[test]
    fn table_5_has_a_row_of_the_paper_and_one_of_each_way() {
        let runs = [
            polymix(BASELINE, 12_340.0, &[]),
            polymix(EMPTY, 99_000.0, &["it was late"]),
        ];
        let text = Figures::render(&record(&json!({ "polymix": runs })));
        let has = |row: &str| assert!(text.lines().any(|line| line == row), "{row}\n{text}");
        has("| | baseline | enabled | empty callback | add headers | body + headers |");
        has("| hit, ms: paper | 19.82 | 19.86 | 20.87 | 20.85 | 22.10 |");
        has("| hit, ms: native | 12.34 |  |  |  |  |");
        has("* native: empty callback, PolyMix-3 mini: it was late");
    }
}
