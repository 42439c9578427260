//! The Wisconsin benchmark of all proxies, and the load until they fail: the tables of
//! `docs/bench.md`.
//!
//! A command writes a directory `records/bench-wpb-DATE` with a record for each run; ratios and
//! means are computed by the schema's own methods.

use crate::record::markdown::{line, median, row};
use crate::record::newest;
use weir_measure::float;
use weir_measure::quantile::Spread;
use weir_measure::record::{Phase, Record};
use xtask::failure::Failure;
use xtask::files;
use xtask::root;

/// The scenario that is the paper's, and the one that follows it.
const WPB: &str = "wpb";
const LOAD: &str = "wpb-load";

/// Names of the directories begin with it and go on with the date.
const PREFIX: &str = "bench-wpb-2";

/// Contenders by the names that people know, in the order of columns.
const NAMES: [(&str, &str); 6] = [
    ("weir", "weir"),
    ("squid", "Squid"),
    ("nginx", "nginx"),
    ("apache", "Apache"),
    ("varnish", "Varnish"),
    ("trafficserver", "Traffic Server"),
];

/// All runs of one command, and their directory.
pub(super) struct RunSet {
    path: String,
    runs: Vec<Record>,
}

/// The runs that were begun last.
///
/// # Errors
/// There is none, or a file cannot be read.
pub(super) fn newest() -> Result<RunSet, Failure> {
    let paths = newest::records(|name| name.starts_with(PREFIX))?;
    let sets: Vec<RunSet> = paths.into_iter().map(read).collect::<Result<_, _>>()?;
    let begun = |set: &RunSet| set.runs.iter().map(|run| run.started.clone()).max();
    let newest = sets.into_iter().max_by_key(begun);
    newest.ok_or_else(|| Failure::Refused(format!("no directory `records/{PREFIX}*`")))
}

fn read(path: String) -> Result<RunSet, Failure> {
    let listed = files::list(&root::directory().join(&path))?.into_iter();
    let records = listed.filter(|file| file.extension().is_some_and(|ending| ending == "json"));
    let runs = records.map(|file| files::read_json(&file));
    let runs = runs.collect::<Result<_, _>>()?;
    Ok(RunSet { path, runs })
}

/// Mean response time and hit ratio of the last phase with caching; a row for each number of
/// clients.
pub(super) fn render(set: &RunSet) -> String {
    let cell = |runs: &[&Record]| {
        let valid: Vec<&&Record> = runs.iter().filter(|run| run.is_valid).collect();
        let mean = median(valid.iter().filter_map(|run| mean_s(run)));
        let ratio = median(valid.iter().filter_map(|run| last(run)?.hit_ratio()));
        match (mean, ratio) {
            (Some(mean), Some(ratio)) => format!("{mean:.2} s, {:.1} %", 100.0 * ratio),
            _ if runs.is_empty() => String::new(),
            _ => "not valid".to_owned(),
        }
    };
    let offered = |runs: &[&Record]| {
        let offered = median(runs.iter().filter_map(|run| last(run)?.offered_hit_ratio()));
        offered.map_or_else(String::new, |offered| format!("{:.1} %", 100.0 * offered))
    };
    let table = table(set, WPB, ("offered", &offered), &cell);
    let valid = set.runs.iter().filter(|run| run.is_valid).count();
    format!(
        "{table}\n{}\n{valid} of the {} runs of [`{path}`](../{path}) are valid.\n",
        spread(set),
        set.runs.len(),
        path = set.path
    )
}

/// Answers a second; a row for each number of clients.
pub(super) fn render_load(set: &RunSet) -> String {
    let cell = |runs: &[&Record]| {
        let rates = runs.iter().filter(|run| run.is_valid);
        let rate = median(rates.filter_map(|run| rate_per_s(run)));
        let none = if runs.is_empty() { "" } else { "not valid" };
        rate.map_or_else(|| none.to_owned(), |rate| format!("{rate:.0}"))
    };
    let failed = |runs: &[&Record]| {
        let errors = runs.iter().map(|run| run.total.client.error_count());
        errors.sum::<u64>().to_string()
    };
    if set.runs.iter().all(|run| run.scenario_name != LOAD) {
        return format!("There is no run of `{LOAD}` in `{}`.\n", set.path);
    }
    table(set, LOAD, ("failed requests of all", &failed), &cell)
}

type Cell<'c> = &'c dyn Fn(&[&Record]) -> String;

/// A row for each number of clients, a column for each proxy, and one more of all of them.
fn table(set: &RunSet, scenario: &str, (name, of_all): (&str, Cell<'_>), cell: Cell<'_>) -> String {
    let is_in = |run: &&Record| run.scenario_name == scenario && run.subject.is_caching;
    let runs: Vec<&Record> = set.runs.iter().filter(is_in).collect();
    let mut places: Vec<f64> = runs.iter().filter_map(|run| clients(run)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let is_there = |label: &&(&str, &str)| runs.iter().any(|run| run.subject.label == label.0);
    let columns: Vec<&(&str, &str)> = NAMES.iter().filter(is_there).collect();
    let names = columns.iter().map(|(_, proxy)| *proxy);
    let mut out = row(["clients"].into_iter().chain(names).chain([name]));
    out.push_str(&format!(
        "\n| --:{} |\n",
        " | --:".repeat(columns.len() + 1)
    ));
    for place in places {
        let mut here = runs.clone();
        here.retain(|run| clients(run) == Some(place));
        let cells = columns.iter().map(|(label, _)| {
            let mut of = here.clone();
            of.retain(|run| run.subject.label == *label);
            cell(&of)
        });
        let cells = [place.to_string()].into_iter().chain(cells);
        line(&mut out, row(cells.chain([of_all(&here)])));
    }
    out
}

/// What is equal for all proxies: the first phase, and everything without caching.
fn spread(set: &RunSet) -> String {
    let runs = set.runs.iter();
    let valid = runs.filter(|run| run.scenario_name == WPB && run.is_valid);
    let means = valid.flat_map(|run| {
        let plain = if run.subject.is_caching {
            1
        } else {
            usize::MAX
        };
        run.measured().take(plain).filter_map(phase_s)
    });
    let Some(Spread { min, max, .. }) = Spread::of(means) else {
        return String::new();
    };
    format!(
        "The first phase, and everything without caching: {min:.3} to {max:.3} s, for every proxy and number of clients."
    )
}

fn clients(run: &Record) -> Option<f64> {
    run.parameters.get("clients").copied()
}

fn last(run: &Record) -> Option<&Phase> {
    run.measured().last()
}

fn mean_s(run: &Record) -> Option<f64> {
    last(run).and_then(phase_s)
}

fn phase_s(phase: &Phase) -> Option<f64> {
    phase.response_time.all.mean_us().map(|mean| mean / 1e6)
}

fn rate_per_s(run: &Record) -> Option<f64> {
    (run.seconds > 0.0).then(|| float(run.total.client.answered()) / run.seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(label: &str, scenario: &str, clients: u32) -> Record {
        let path = root::directory().join("crates/bench/tests/data/record-wpb.json");
        let text = std::fs::read_to_string(path).expect("a record made up for tests");
        let mut run: Record = serde_json::from_str(&text).expect("a record");
        label.clone_into(&mut run.subject.label);
        scenario.clone_into(&mut run.scenario_name);
        run.parameters
            .insert("clients".to_owned(), f64::from(clients));
        run.subject.is_caching = true;
        run.is_valid = true;
        run
    }

    fn set(runs: Vec<Record>) -> RunSet {
        let path = "records/bench-wpb-2000-01-01".to_owned();
        RunSet { path, runs }
    }

    #[test]
    fn row_is_one_client_count_and_an_invalid_run_has_no_number() {
        let mut bad = run("squid", WPB, 32);
        bad.is_valid = false;
        let runs = vec![
            run("weir", WPB, 96),
            run("weir", WPB, 32),
            bad,
            run("weir", LOAD, 250),
        ];
        let ratio = last(&runs[0]).and_then(Phase::hit_ratio).expect("a ratio");
        let text = render(&set(runs));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "| clients | weir | Squid | offered |");
        assert!(
            lines[2].starts_with("| 32 | ") && lines[2].contains(" | not valid | "),
            "{text}"
        );
        assert!(
            lines[3].starts_with("| 96 | ") && lines[3].contains(" |  | "),
            "{text}"
        );
        assert!(
            lines[2].contains(&format!("{:.1} % |", 100.0 * ratio)),
            "{text}"
        );
        assert!(
            text.contains("3 of the 4 runs of [`records/bench-wpb-2000-01-01`]"),
            "{text}"
        );
    }

    #[test]
    fn load_table_shows_median_answers_per_second_of_repetitions() {
        let mut runs = vec![
            run("weir", LOAD, 250),
            run("weir", LOAD, 250),
            run("weir", LOAD, 250),
        ];
        for (run, seconds) in runs.iter_mut().zip([1.0, 10.0, 2.0]) {
            run.seconds = seconds;
        }
        let rate = rate_per_s(&runs[2]).expect("a rate");
        let text = render_load(&set(runs));
        assert!(text.contains(&format!("| 250 | {rate:.0} | ")), "{text}");
        let text = render_load(&set(vec![run("weir", WPB, 8)]));
        assert!(text.contains("There is no run of `wpb-load`"), "{text}");
    }
}
