//! Reports of record files: what must be on the page, and what must not.

use std::collections::BTreeMap;
use std::path::PathBuf;
use weir_bench::report::{self, RecordFile};
use weir_measure::record::{KindSide, Record, WrongResponse};

/// Made up in every number.
const MADE_UP: &str = include_str!("data/record-wpb.json");

/// What a hostile name may hold.
const HOSTILE: &str = "<script>alert(1)</script>\"'&amp;</style>]]>\u{7}";

fn made_up() -> Record {
    serde_json::from_str(MADE_UP).expect("it is a record")
}

/// A run of `label` with some number of clients, with or without caching.
fn run(label: &str, clients: u32, is_caching: bool) -> RecordFile {
    let mut record = made_up();
    label.clone_into(&mut record.subject.label);
    record.subject.is_caching = is_caching;
    record.parameters = BTreeMap::from([("clients".to_owned(), f64::from(clients))]);
    RecordFile {
        file: format!("{label}-{clients}-{is_caching}.json"),
        record,
    }
}

fn sweep() -> Vec<RecordFile> {
    let mut runs = Vec::new();
    for label in ["weir", "squid"] {
        for clients in [8, 48, 96] {
            runs.push(run(label, clients, true));
            runs.push(run(label, clients, false));
        }
    }
    runs
}

/// The page, and its figures by name.
fn written(runs: &[RecordFile]) -> (String, BTreeMap<String, String>) {
    let directory = tempfile::tempdir().expect("a directory");
    let (out, figures) = (
        directory.path().join("new/report.html"),
        directory.path().join("new/figures"),
    );
    report::write(runs, &out, Some(&figures)).expect("it can be written");
    let page = std::fs::read_to_string(&out).expect("the page");
    let files = std::fs::read_dir(&figures).expect("the figures");
    let files = files.map(|entry| {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name").display().to_string();
        (name, std::fs::read_to_string(path).expect("a figure"))
    });
    (page, files.collect())
}

/// Every tag is closed, in order, and every `&` begins a reference. `None` if so.
fn ill_formed(markup: &str) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = markup;
    while let Some(at) = rest.find(['<', '&']) {
        rest = &rest[at..];
        if let Some(reference) = rest.strip_prefix('&') {
            let end = reference.find(';').filter(|end| *end < 8);
            if end.is_none() {
                return Some(format!(
                    "a lonely & before `{}`",
                    &reference[..reference.len().min(20)]
                ));
            }
            rest = reference;
            continue;
        }
        let Some((tag, after)) = rest[1..].split_once('>') else {
            return Some("a tag without an end".to_owned());
        };
        if let Some(closed) = tag.strip_prefix('/') {
            let expected = open.pop();
            if expected != Some(closed) {
                return Some(format!("</{closed}> closes {expected:?}"));
            }
        } else if !tag.starts_with('!') && !tag.ends_with('/') {
            let name = tag.split_whitespace().next().unwrap_or_default();
            open.push(name);
        }
        // a style sheet is no markup
        rest = if tag == "style" {
            &after[after.find("</style>").unwrap_or_default()..]
        } else {
            after
        };
    }
    (!open.is_empty()).then(|| format!("never closed: {open:?}"))
}

#[test]
fn page_loads_no_external_resource_or_script() {
    let (page, _) = written(&sweep());
    for outside in [
        "http://", "https://", "src=", "href=", "url(", "@import", "<script", "<link", "<iframe",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn page_and_figures_are_well_formed() {
    let mut modem = run("weir", 30, true);
    modem
        .record
        .parameters
        .insert("link_bits_per_s".to_owned(), 28_800.0);
    for runs in [
        sweep(),
        vec![run("weir", 8, true)],
        vec![run("weir", 30, true), modem],
    ] {
        let (page, figures) = written(&runs);
        assert_eq!(ill_formed(&page), None);
        for (name, svg) in &figures {
            assert_eq!(ill_formed(svg), None, "{name}");
        }
    }
    assert!(ill_formed("<p><b></p></b>").is_some() && ill_formed("<p>&</p>").is_some());
}

#[test]
fn page_lists_every_record_file() {
    let runs = sweep();
    let (page, _) = written(&runs);
    for run in &runs {
        assert!(page.contains(&run.file), "{}", run.file);
    }
    assert!(page.contains(&runs[0].record.tool.command.replace('\'', "&#39;")));
}

#[test]
fn sweep_writes_all_figures_but_no_empty_error_figure() {
    let (_, figures) = written(&sweep());
    let expected = [
        "time-caching.svg",
        "time-no-cache.svg",
        "time-weir.svg",
        "time-squid.svg",
        "hit-ratio.svg",
        "byte-hit-ratio.svg",
        "percentiles.svg",
        "rate.svg",
    ];
    for name in expected {
        let svg = figures
            .get(name)
            .unwrap_or_else(|| panic!("{name}: {:?}", figures.keys()));
        assert!(
            svg.contains("<polyline") && svg.contains("prefers-color-scheme"),
            "{name}"
        );
    }
    // nothing failed: a plot of zeros would say less
    assert!(!figures.contains_key("errors.svg"));
}

#[test]
fn generator_limit_is_not_attributed_to_the_proxy() {
    let load = |clients: u32, reasons: &[&str]| {
        let mut run = run("weir", clients, true);
        let record = &mut run.record;
        record.scenario_name = "wpb-load".to_owned();
        record.is_valid = reasons.is_empty();
        record.reasons = reasons.iter().map(|&reason| reason.to_owned()).collect();
        if !record.is_valid {
            let errors = &mut record.total.client.errors;
            errors.insert("out-of-sockets".to_owned(), 9000);
        }
        run
    };
    let failed =
        "9000 of 40000 requests failed, which is 22.50 %; at most 1.00 % may: out-of-sockets 9000.";
    let (page, _) = written(&[load(250, &[]), load(500, &[failed])]);
    assert!(page.contains("with 500 clients: ") && page.contains("of the requests failed"));
    for generator in [
        "The generator had no socket for 9000 requests: raise the limit of open files.",
        "The generator was overloaded: a thread of clients had more than 95 % of a core in 9 of 9 seconds.",
        "7 connections waited because the origin had as many open as it takes (8192).",
    ] {
        let (page, _) = written(&[load(250, &[]), load(500, &[failed, generator])]);
        let expected = "with 500 clients: not known, as the generator was at its limit. ";
        let expected = format!("{expected}{generator}");
        assert!(page.contains(&expected), "{generator}");
    }
}

#[test]
fn failed_requests_get_an_error_figure() {
    let mut runs = sweep();
    runs[2].record.phases[0]
        .client
        .errors
        .insert("connect".to_owned(), 40);
    let (_, figures) = written(&runs);
    assert!(figures["errors.svg"].contains("weir"));
}

#[test]
fn hostile_text_in_a_record_is_escaped() {
    let mut one = run(HOSTILE, 8, true);
    one.file = format!("{HOSTILE}.json");
    let record = &mut one.record;
    record.scenario_name = HOSTILE.to_owned();
    record.scenario = HOSTILE.to_owned();
    record.tool.command = HOSTILE.to_owned();
    record.is_valid = false;
    record.reasons = vec![HOSTILE.to_owned()];
    record.warnings = vec![HOSTILE.to_owned()];
    record
        .versions
        .insert(HOSTILE.to_owned(), HOSTILE.to_owned());
    record.parameters.insert(HOSTILE.to_owned(), 1.0);
    record.phases[1].name = HOSTILE.to_owned();
    record.samples = Some(HOSTILE.to_owned());
    record.wrong_responses = vec![WrongResponse {
        kind: HOSTILE.to_owned(),
        at_s: 1.0,
        phase: HOSTILE.to_owned(),
        id: HOSTILE.to_owned(),
        server: 0,
        number: 1,
        path: HOSTILE.to_owned(),
        version: None,
        offset: None,
        detail: HOSTILE.to_owned(),
        head: HOSTILE.to_owned(),
    }];
    let other = run("weir", 48, true);
    let (page, figures) = written(&[one, other]);
    assert!(
        !page.contains("<script") && !page.contains('\u{7}'),
        "{page}"
    );
    assert_eq!(ill_formed(&page), None);
    for (name, svg) in &figures {
        assert!(!name.contains(['<', '/', '"']), "{name}");
        assert_eq!(ill_formed(svg), None, "{name}");
    }
}

#[test]
fn invalid_and_scaled_runs_are_marked_as_such() {
    let mut runs = sweep();
    runs[0].record.is_valid = false;
    runs[0].record.reasons = vec!["the clocks were wrong".to_owned()];
    let (page, _) = written(&runs);
    assert!(page.contains("1 of 12 runs is not valid"), "{page}");
    assert!(page.contains("the clocks were wrong"));
    assert!(page.contains("Scaled by 0.1"));
    let mut whole = run("weir", 8, true);
    whole.record.scale = 1.0;
    whole.record.rules.clear();
    let (page, _) = written(&[whole]);
    assert!(!page.contains("Scaled by") && !page.contains("not valid"));
}

#[test]
fn invalid_run_is_not_named_the_fastest() {
    let mut fast = run("fast", 8, true);
    fast.record.phases[1].response_time.all.sum /= 2;
    let slow = run("slow", 8, true);
    let (page, _) = written(&[fast.clone(), slow.clone()]);
    assert!(page.contains("fast answered soonest"), "{page}");
    fast.record.is_valid = false;
    let (page, _) = written(&[fast, slow]);
    assert!(!page.contains("answered soonest"), "{page}");
}

#[test]
fn headline_is_made_of_valid_runs_only() {
    let mut one = run("weir", 8, true);
    let has_headline = |runs: &[RecordFile]| written(runs).0.contains("class=\"lead\"");
    assert!(has_headline(&[one.clone()]));
    one.record.is_valid = false;
    assert!(!has_headline(&[one.clone()]));
    let (page, _) = written(&[one.clone(), run("squid", 8, true)]);
    assert!(
        page.contains("squid answered in") && !page.contains("weir answered"),
        "{page}"
    );
    let mut other = run("squid", 8, true);
    other.record.is_valid = false;
    assert!(!has_headline(&[one, other]));
}

#[test]
fn proxy_with_only_failed_requests_has_no_hit_ratio_row() {
    let mut dead = run("weir", 8, true);
    dead.record.is_valid = false;
    for phase in dead
        .record
        .phases
        .iter_mut()
        .chain([&mut dead.record.total])
    {
        let requests = phase.client.requests;
        phase.client = weir_measure::record::ClientSide {
            requests,
            errors: BTreeMap::from([("connect-refused".to_owned(), requests)]),
            ..Default::default()
        };
        phase.origin = Default::default();
    }
    let row = "<th scope=\"row\">hit ratio</th>";
    assert!(written(&[run("weir", 8, true)]).0.contains(row));
    let (page, _) = written(&[dead]);
    assert!(
        !page.contains(row) && page.contains("failed requests"),
        "{page}"
    );
}

#[test]
fn runs_under_other_conditions_are_separated_and_the_difference_named() {
    let change = |of: fn(&mut Record)| {
        let mut other = run("squid", 8, true);
        of(&mut other.record);
        let (page, _) = written(&[run("weir", 8, true), other]);
        page
    };
    let check = |of: fn(&mut Record), difference: &str| {
        let page = change(of);
        assert!(
            page.contains("Not compared with the runs above: "),
            "{difference}"
        );
        assert!(page.contains(difference), "{difference}: {page}");
        assert!(!page.contains("answered soonest") && !page.contains("no difference"));
    };
    let page = change(|_| {});
    assert!(!page.contains("Not compared"));
    check(|record| record.seed = 7, "the seed is 1998 and 7");
    check(
        |record| record.host.cores = 64,
        "Example CPU @ 2.00GHz, 64 cores",
    );
    check(
        |record| {
            record
                .scenario
                .push_str("\n[origin]\nlatency = \"constant(1s)\"\n")
        },
        "origin.latency is not given and &quot;constant(1s)&quot;",
    );
}

#[test]
fn repetitions_are_shown_as_median_and_range() {
    let runs: Vec<RecordFile> = [1, 2, 9]
        .map(|factor| {
            let mut one = run("weir", 8, true);
            one.record.phases[1].response_time.all.sum = 480 * factor * 1_000_000;
            one.record.phases[1].response_time.all.count = 480;
            one
        })
        .into();
    let (page, _) = written(&runs);
    assert!(
        page.contains("2\u{a0}s<span class=\"beside\"> (1\u{a0}s to 9\u{a0}s)"),
        "{page}"
    );
    assert!(page.contains("Of up to 3 repetitions the median"));
}

/// Runs of `label` whose mean response times are these, seconds.
fn repeated(label: &str, means_s: &[u64]) -> Vec<RecordFile> {
    let one = |mean_s: &u64| {
        let mut one = run(label, 8, true);
        one.record.phases[1].response_time.all.sum = 480 * mean_s * 1_000_000;
        one.record.phases[1].response_time.all.count = 480;
        one
    };
    means_s.iter().map(one).collect()
}

#[test]
fn repetitions_with_overlapping_ranges_have_no_winner() {
    let (a, b) = (repeated("a", &[60, 65, 75]), repeated("b", &[74, 78, 80]));
    let (page, _) = written(&[a.clone(), b].concat());
    assert!(!page.contains("answered soonest"), "{page}");
    let said = "no difference beyond the spread in mean response time (65\u{a0}s to 78\u{a0}s)";
    assert!(page.contains(said), "{page}");
    let (page, _) = written(&[a, repeated("b", &[76, 78, 80])].concat());
    assert!(page.contains("a answered soonest (65\u{a0}s)"), "{page}");
}

#[test]
fn single_runs_have_a_winner_only_beyond_ten_percent() {
    let page = |other_s| written(&[repeated("a", &[100]), repeated("b", &[other_s])].concat()).0;
    assert!(!page(110).contains("answered soonest"));
    assert!(page(112).contains("a answered soonest"));
}

/// So much CPU time was used, in one second of the run.
fn using(mut run: RecordFile, cpu_s: f64) -> RecordFile {
    let second = serde_json::json!({
        "at_s": 1.0, "processes": 1, "cpu_share": cpu_s, "rss_bytes": 1, "read_bytes": 0, "written_bytes": 0,
        "machine_cpu_share": 0.0, "machine_wait_share": 0.0, "disk_read_bytes": 0, "disk_written_bytes": 0,
        "disk_busy_share": null
    });
    let second = serde_json::from_value(second).expect("a second");
    run.record.usage = vec![second];
    run
}

#[test]
fn cpu_time_difference_within_a_few_ticks_has_no_winner() {
    let page = |other_s| {
        written(&[
            using(run("a", 8, true), 0.10),
            using(run("b", 8, true), other_s),
        ])
        .0
    };
    assert!(page(0.14).contains("no difference beyond the spread in CPU time a request"));
    assert!(page(0.16).contains("a used the least CPU time"));
}

#[test]
fn cpu_time_without_a_watched_process_is_shown_as_not_measured() {
    let mut without = run("b", 8, true);
    without.record.usage.clear();
    let (page, _) = written(&[using(run("a", 8, true), 0.10), without]);
    assert!(!page.contains("in CPU time a request"), "{page}");
    assert!(page.contains("CPU time a request of a: "), "{page}");
    assert!(page.contains(", not measured for b"), "{page}");
}

#[test]
fn sweep_is_shown_beside_the_results_of_the_paper() {
    let (page, _) = written(&sweep());
    for part in [
        "figure 11",
        "Constant, the best of the four",
        "First phase 9.00 s, second 5.44 s",
        "squid: first phase ",
        "apache was not measured",
        "all proxies: none, with any number of clients.",
        "As the paper&#39;s figure 10.",
        "As the paper&#39;s figures 3, 6, 8 and 11.",
    ] {
        assert!(page.contains(part), "no `{part}`");
    }
    let (page, _) = written(&[run("squid", 8, true)]);
    assert!(!page.contains("figure 11"), "one run is no sweep");
}

#[test]
fn load_section_shows_where_each_proxy_failed() {
    let mut runs = Vec::new();
    for (label, limit) in [("weir", 1000), ("squid", 500), ("nginx", 9999)] {
        for clients in [250, 500, 1000] {
            let mut one = run(label, clients, true);
            one.record.scenario_name = "wpb-load".to_owned();
            if clients >= limit {
                one.record.is_valid = false;
                one.record
                    .total
                    .client
                    .errors
                    .insert("reset".to_owned(), 96);
            }
            runs.push(one);
        }
    }
    let (page, figures) = written(&runs);
    assert!(page.contains("How far each proxy got"));
    assert!(
        page.contains("with 1\u{202f}000 clients: 10\u{a0}% of the requests failed (reset)")
            || page.contains("with 1000 clients: 10\u{a0}% of the requests failed (reset)"),
        "{page}"
    );
    assert!(page.contains("with 500 clients: "));
    assert!(page.contains("more clients were not tried"));
    assert!(figures["load.svg"].contains("<polyline"));
}

#[test]
fn record_without_later_fields_is_read_and_reported() {
    // it has none of the fields that were added since
    assert!(!MADE_UP.contains("collapsed") && !MADE_UP.contains("failed_content_bytes"));
    let record = made_up();
    assert_eq!(record.total.client.not_modified_forwarded, None);
    assert_eq!(
        written(&[run("weir", 8, true)])
            .0
            .matches("<!DOCTYPE html>")
            .count(),
        1
    );
}

#[test]
fn page_shows_phases_of_both_sides_and_kinds_of_requests() {
    let mut one = run("weir", 8, true);
    let origin_requests = one.record.phases[1].origin.requests;
    for phase in &mut one.record.phases {
        let reloads = KindSide {
            requests: 4,
            hits: 1,
            forwarded: 3,
            ..KindSide::default()
        };
        phase.client.by_kind.insert("reload".to_owned(), reloads);
        phase.client.could_hit = phase.client.requests / 4;
    }
    let (page, _) = written(&[one]);
    for part in ["hit ratio offered", "without a mark", "kind of request"] {
        assert!(page.contains(part), "no {part} on the page");
    }
    let offered = "<td>25\u{a0}%</td>";
    assert!(page.contains(offered), "no quarter on the page");
    assert!(page.contains(&format!("<td>{origin_requests}</td>")));
    // two phases of four, one in four from the store
    let row = "<th scope=\"row\">reload</th><td>8</td><td>100\u{a0}%</td><td>25\u{a0}%</td><td>0\u{a0}%</td><td>75\u{a0}%</td>";
    assert!(page.replace('\n', "").contains(row), "no row of reloads");
    // a record of an earlier version does not say
    let (page, _) = written(&[run("weir", 8, true)]);
    assert!(!page.contains("kind of request"));
}

#[test]
fn modem_run_is_shown_with_its_factor_beside_the_run_without_link() {
    let mut modem = run("weir", 30, true);
    modem
        .record
        .parameters
        .insert("link_bits_per_s".to_owned(), 28_800.0);
    modem.record.phases[0].response_time.all.sum *= 3;
    let (page, _) = written(&[run("weir", 30, true), modem]);
    assert!(
        page.contains("28.8\u{a0}kbit/s") && page.contains("(3 ×)"),
        "{page}"
    );
}

#[test]
fn report_without_records_is_refused_with_a_hint() {
    let failure = report::write(&[], &PathBuf::from("/nowhere/r.html"), None);
    assert!(failure.is_err_and(|failure| failure.hint.is_some()));
}

#[test]
fn failure_to_write_the_report_names_the_file() {
    let runs = [run("weir", 8, true)];
    let failure = report::write(&runs, &PathBuf::from("/proc/r.html"), None);
    let said = failure.expect_err("nobody may write there").to_string();
    assert!(said.contains("/proc/r.html"), "{said}");
}
