//! The tables of a record, as Markdown.

use super::restart::Restart;
use super::setup::{Hits, Load};
use super::{Record, Row};
use crate::process::usage::Traffic;
use crate::proxy::contender::WEIR;
use crate::record::markdown::{self, COULD_NOT, TARGETS, Target, list, ratio, row, table};

/// Weir's hits a second against those of the best of the others, at least.
const HITS_TIMES_MIN: f64 = 1.5;

/// Bytes written for a byte stored, at most.
const AMPLIFICATION_MAX: f64 = 1.1;

const ACCEPTED_MS_MAX: u64 = 1000;

const INDEX_BYTES_MAX: f64 = 32.0;

pub(super) fn render(record: &Record) -> String {
    let mut out = head(record);
    let columns = "| proxy | responses/s | MB/s | CPU a request, us | p50, ms | p99, ms | fetched again | read by it, B/B | written by it, B/B | device read, B/B | device written, B/B | RSS, MiB |";
    let hits = rows(record, |row| median(&row.hits).map(hits));
    table(&mut out, "### Hits from disk", columns, hits);
    let rounds = record.figures.rows.iter().map(|row| row.hits.len()).max();
    if let Some(count @ 2..) = rounds {
        let title = format!(
            "That is the round with the middle speed of {count}. Over all rounds, slowest, quartiles and fastest, each with its CPU time a request:"
        );
        let columns =
            "| proxy | slowest | a quarter below | half below | three quarters below | fastest |";
        let rounds = rows(record, |row| quartiles(&row.hits));
        table(&mut out, &title, columns, rounds);
    }
    let columns = "| proxy | responses/s | MB/s | CPU a request, us | written by it, B/B | device written, B/B |";
    let fills = rows(record, |row| row.fill.as_ref().map(fill));
    table(&mut out, "### Fill by misses", columns, fills);
    let columns = "| proxy | responses | accepts after, ms | hits at once | hits later | index full after, ms | index, B a response |";
    let restarts = rows(record, |row| row.restart.as_ref().map(restart));
    table(&mut out, "### Start after kill -9", columns, restarts);
    list(&mut out, TARGETS, targets(record));
    let mut troubles = markdown::left_out(record);
    troubles.extend(record.figures.troubles.iter().cloned());
    list(&mut out, COULD_NOT, troubles);
    out
}

fn head(record: &Record) -> String {
    let settings = &record.settings;
    let mut out = format!(
        "{}. {} MiB of memory for stored responses, a working set {} times that, {} connections, seed {}{}.\n\n",
        markdown::origin(record, "; "),
        settings.memory_mib,
        settings.times,
        settings.connections,
        settings.seed,
        match settings.cgroup_mib {
            0 => ", page cache not limited".to_owned(),
            mib => format!(", {mib} MiB for the process and its page cache"),
        }
    );
    markdown::versions(&mut out, record);
    out
}

fn rows(record: &Record, cells: impl Fn(&Row) -> Option<Vec<String>>) -> Vec<String> {
    let cells = |it: &Row| {
        let cells = cells(it)?;
        Some(row([it.contender.clone()].into_iter().chain(cells)))
    };
    record.figures.rows.iter().filter_map(cells).collect()
}

fn hits(hits: &Hits) -> Vec<String> {
    let load = &hits.load;
    let mut cells = speeds(load);
    cells.extend([
        format!("{:.2}", ratio(hits.latency.p50_us, 1000)),
        format!("{:.2}", ratio(hits.latency.p99_us, 1000)),
        hits.fetches.to_string(),
    ]);
    cells.extend(traffic(Some(load.process), load.content_bytes));
    cells.extend(traffic(load.device, load.content_bytes));
    cells.push(format!("{:.0}", ratio(hits.rss_kib, 1024)));
    cells
}

/// Responses and megabytes a second, CPU time of a request.
fn speeds(load: &Load) -> Vec<String> {
    vec![
        format!("{:.0}", speed(load)),
        format!("{:.1}", per_second(load.content_bytes, load.took_ms) / 1e6),
        format!("{:.1}", ratio(load.cpu_us, load.responses)),
    ]
}

fn traffic(traffic: Option<Traffic>, served: u64) -> [String; 2] {
    let Some(traffic) = traffic else {
        return [(); 2].map(|()| "-".to_owned());
    };
    [traffic.read_bytes, traffic.written_bytes].map(|bytes| format!("{:.3}", ratio(bytes, served)))
}

fn fill(fill: &Load) -> Vec<String> {
    let [_, written] = traffic(Some(fill.process), fill.content_bytes);
    let [_, device] = traffic(fill.device, fill.content_bytes);
    let mut cells = speeds(fill);
    cells.extend([written, device]);
    cells
}

fn restart(restart: &Restart) -> Vec<String> {
    let sample = restart.sample;
    let of = |fetches: u64| format!("{} of {sample}", sample.saturating_sub(fetches));
    let known = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |it| it.to_string());
    vec![
        restart.responses.to_string(),
        restart.accepted_ms.to_string(),
        of(restart.sample_fetches),
        of(restart.later_fetches),
        known(restart.loaded_ms),
        index_bytes(restart).map_or_else(|| "-".to_owned(), |bytes| format!("{bytes:.1}")),
    ]
}

fn index_bytes(restart: &Restart) -> Option<f64> {
    Some(ratio(restart.index_bytes?, restart.entries?))
}

/// A target for each of which there are figures.
fn targets(record: &Record) -> Vec<Target> {
    let mut targets = Vec::new();
    let Some(weir) = record.figures.rows.iter().find(|row| row.contender == WEIR) else {
        return targets;
    };
    let mut times = times(weir, record);
    times.sort_by(f64::total_cmp);
    let at = |quarter: usize| times.get(times.len().saturating_sub(1) * quarter / 4);
    if let (Some(low), Some(middle), Some(high)) = (at(1), at(2), at(3)) {
        let of = match times.len() {
            1 => String::new(),
            rounds => format!(" (median of {rounds} rounds; quartiles {low:.2} and {high:.2})"),
        };
        let what = format!(
            "hits a second: {middle:.2} x the best of the others{of}, at least {HITS_TIMES_MIN}"
        );
        targets.push(Target::new(what, *middle >= HITS_TIMES_MIN));
    }
    if let Some(fill) = &weir.fill {
        let written = ratio(fill.process.written_bytes, fill.content_bytes);
        let what = format!(
            "bytes written for a byte of content: {written:.3}, at most {AMPLIFICATION_MAX}"
        );
        targets.push(Target::new(what, written <= AMPLIFICATION_MAX));
    }
    if let Some(restart) = &weir.restart {
        let ms = restart.accepted_ms;
        let what = format!("accepts after {ms} ms, at most {ACCEPTED_MS_MAX}");
        targets.push(Target::new(what, ms <= ACCEPTED_MS_MAX));
        if let Some(bytes) = index_bytes(restart) {
            let what = format!("index: {bytes:.1} B a response, at most {INDEX_BYTES_MAX}");
            targets.push(Target::new(what, bytes <= INDEX_BYTES_MAX));
        }
    }
    targets
}

/// How many times the hits a second of the best of the others, in each round in which there are
/// any.
fn times(weir: &Row, record: &Record) -> Vec<f64> {
    let others = record
        .figures
        .rows
        .iter()
        .filter(|row| row.contender != WEIR);
    let best = |round: usize| {
        let speeds = others.clone().filter_map(|row| row.hits.get(round));
        speeds.map(|hits| speed(&hits.load)).reduce(f64::max)
    };
    let rounds = weir.hits.iter().enumerate();
    rounds
        .filter_map(|(round, hits)| Some(speed(&hits.load) / best(round)?))
        .collect()
}

/// The one with the middle speed; of two, the slower one.
fn median(rounds: &[Hits]) -> Option<&Hits> {
    let sorted = sorted(rounds);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

fn speed(load: &Load) -> f64 {
    per_second(load.responses, load.took_ms)
}

/// Responses a second and CPU time a request of five rounds, from the slowest to the fastest.
fn quartiles(rounds: &[Hits]) -> Option<Vec<String>> {
    let sorted = sorted(rounds);
    let last = sorted.len().checked_sub(1)?;
    let cell = |quarter: usize| {
        let load = &sorted[last * quarter / 4].load;
        let cpu = ratio(load.cpu_us, load.responses);
        format!("{:.0} at {cpu:.1} us", speed(load))
    };
    Some((0..=4).map(cell).collect())
}

fn sorted(rounds: &[Hits]) -> Vec<&Hits> {
    let mut sorted: Vec<&Hits> = rounds.iter().collect();
    sorted.sort_by(|one, other| speed(&one.load).total_cmp(&speed(&other.load)));
    sorted
}

fn per_second(count: u64, took_ms: u64) -> f64 {
    ratio(count, took_ms) * 1000.0
}

#[cfg(test)]
mod tests {
    use super::super::latency::Latency;
    use super::*;

    fn row(contender: &str, responses: &[u64]) -> Row {
        let load = |responses| Load {
            responses,
            content_bytes: 1000,
            took_ms: 1000,
            cpu_us: 1000,
            process: Traffic::default(),
            device: None,
        };
        let hits = responses.iter().map(|responses| Hits {
            load: load(*responses),
            latency: Latency::default(),
            fetches: 0,
            rss_kib: 1,
        });
        Row {
            hits: hits.collect(),
            contender: contender.to_owned(),
            ..Row::default()
        }
    }

    fn record(rows: Vec<Row>) -> Record {
        let text = std::fs::read_to_string(
            xtask::root::directory().join("records/store-2026-11-21-direct.json"),
        );
        let mut record: Record = serde_json::from_str(&text.unwrap()).unwrap();
        assert_eq!(
            record.figures.rows[0].hits.len(),
            1,
            "a record without rounds"
        );
        record.figures.rows = rows;
        record
    }

    #[test]
    fn median_of_all_rounds_is_compared_with_the_best_peer() {
        let record = record(vec![
            row(WEIR, &[300, 100, 180]),
            row("slow", &[10, 20, 30]),
            row("fast", &[100, 100, 100]),
        ]);
        let text = render(&record);
        let expected = "hits a second: 1.80 x the best of the others (median of 3 rounds; quartiles 1.00 and 1.80), at least 1.5: met";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("| weir | 180 |"), "{text}");
        assert!(
            text.contains("| weir | 100 at 10.0 us | 100 at 10.0 us | 180 at 5.6 us | 180 at 5.6 us | 300 at 3.3 us |"),
            "{text}"
        );
    }
}
