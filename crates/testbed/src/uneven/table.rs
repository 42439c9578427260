//! The tables of a record, as Markdown.

use super::herd::{CLIENTS, Herd};
use super::join::Join;
use super::measured::Measured;
use super::path::{Download, LongPath, SIDES, Side, Way};
use super::read_ahead::{KINDS, ReadAhead};
use super::record::Record;
use super::targets;
use crate::proxy::contender::WEIR;
use crate::spread::spread;
use std::fmt::Write;

pub(crate) fn render(record: &Record) -> String {
    let mut out = String::new();
    head(&mut out, record);
    out.push_str(&experiments(record));
    memory(&mut out, record);
    if let Some(path) = &record.path {
        long_path(&mut out, path);
    }
    list(&mut out, "Targets of weir", &targets::judge(record));
    list(&mut out, "What could not be", &troubles(record));
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn list(out: &mut String, title: &str, entries: &[String]) {
    if !entries.is_empty() {
        line(out, &format!("\n### {title}\n"));
        for entry in entries {
            line(out, &format!("* {entry}"));
        }
    }
}

fn head(out: &mut String, record: &Record) {
    let Record {
        command,
        begun,
        commit,
        host,
        files_max,
        ..
    } = record;
    line(
        out,
        &format!(
            "`{command}`, begun {begun}, commit `{commit}`; {}, {} cores, Linux {}, load average {} at the beginning, \
             {files_max} open files a process.",
            host.cpu, host.cores, host.kernel, host.load_average
        ),
    );
    line(out, "");
    for (name, version) in &record.versions {
        line(out, &format!("* {name}: {version}"));
    }
}

/// A row with a cell for every contender, if anybody has one.
fn row<T>(
    out: &mut String,
    record: &Record,
    name: &str,
    of: &[Measured<T>],
    cell: impl Fn(&T) -> Option<String>,
) {
    let cells: Vec<Option<String>> = record
        .contenders
        .iter()
        .map(|contender| {
            let mut these = of.iter().filter(|one| one.contender == *contender);
            these.find_map(|one| one.figures.as_ref().and_then(&cell))
        })
        .collect();
    if cells.iter().any(Option::is_some) {
        let cells: Vec<String> = cells.into_iter().map(Option::unwrap_or_default).collect();
        line(out, &format!("| {name} | {} |", cells.join(" | ")));
    }
}

/// What happens to each proxy: a row an experiment, a column a proxy.
pub(crate) fn experiments(record: &Record) -> String {
    let mut rows = String::new();
    row(
        &mut rows,
        record,
        "a client leaves a 20 MB download after 0.26 MB: fetched",
        &record.aborts,
        |abort| Some(bytes(abort.fetched_bytes)),
    );
    row(
        &mut rows,
        record,
        "a second client takes all of it: fetched again",
        &record.seconds,
        |second| Some(bytes(second.fetched_bytes)),
    );
    for kind in KINDS {
        let client = if kind.reads {
            "of 50 KB/s"
        } else {
            "that reads nothing"
        };
        let stored = if kind.is_storable {
            "storable"
        } else {
            "`no-store`"
        };
        let name = format!("read-ahead over a client {client} after 8 s, {stored}");
        row(
            &mut rows,
            record,
            &name,
            &record.leads,
            |lead: &ReadAhead| (lead.kind == kind).then(|| bytes(lead.over_program())),
        );
    }
    row(
        &mut rows,
        record,
        "a fast reader joins a slow reader's 30 MB: time",
        &record.joins,
        |join| Some(join_time(join)),
    );
    row(
        &mut rows,
        record,
        "its speed beside a direct download",
        &record.joins,
        |join| join_ratio(join).map(|ratio| format!("{ratio:.2} ×")),
    );
    row(
        &mut rows,
        record,
        "fetches for the two of them",
        &record.joins,
        |join| Some(format!("{} ({})", join.fetches, bytes(join.fetched_bytes))),
    );
    for clients in CLIENTS {
        let name = format!("fetches for {clients} concurrent misses");
        row(&mut rows, record, &name, &record.herds, |herd: &Herd| {
            (herd.clients == clients).then(|| fetches(herd))
        });
    }
    if rows.is_empty() {
        return rows;
    }
    let names = record.contenders.join(" | ");
    let rule = " --: |".repeat(record.contenders.len());
    format!("\n| | {names} |\n| --- |{rule}\n{rows}")
}

fn join_time(join: &Join) -> String {
    match join.joined_ms {
        Some(ms) => format!("{} s", seconds(ms)),
        None => format!(
            "stalled: {} in {} s",
            bytes(join.joined_bytes),
            seconds(join.limit_ms)
        ),
    }
}

/// The joiner's speed over that of a direct download; `None` when it was not done in time.
pub(crate) fn join_ratio(join: &Join) -> Option<f64> {
    join.joined_ms.map(|ms| ratio(join.direct_ms, ms))
}

fn fetches(herd: &Herd) -> String {
    let failed = herd.clients - herd.whole;
    if failed == 0 {
        herd.fetches.to_string()
    } else {
        format!("{} (could not: {failed} clients failed)", herd.fetches)
    }
}

fn memory(out: &mut String, record: &Record) {
    let mut rows = String::new();
    for measured in &record.memories {
        let Some(memory) = &measured.figures else {
            continue;
        };
        let (Some(first), Some(last)) = (memory.samples.first(), memory.samples.last()) else {
            continue;
        };
        let (least, most) = memory.extent_kib().unwrap_or_default();
        let mib = |kib: u64| format!("{:.1}", ratio(kib, 1024));
        line(
            &mut rows,
            &format!(
                "| {} | {} | {} + {} | {} + {} | {:.0}-{:.0} | {:.2} | {} | {} |",
                memory.kind.name(),
                measured.contender,
                mib(first.pss_kib),
                mib(first.sockets_kib),
                mib(last.pss_kib),
                mib(last.sockets_kib),
                ratio(least, 1024),
                ratio(most, 1024),
                memory.growth().unwrap_or_default(),
                bytes(last.taken_bytes),
                bytes(last.read_bytes),
            ),
        );
    }
    if !rows.is_empty() {
        let clients = record
            .memories
            .iter()
            .find_map(|measured| measured.figures.as_ref())
            .map_or(0, |memory| memory.clients);
        line(
            out,
            &format!(
                "\nMiB with {clients} clients at 28.8 Kbit/s on responses of 1 MB: PSS of the proxy + TCP buffers of the machine\n"
            ),
        );
        line(
            out,
            "| responses | | when all had begun | a minute later | least-most | last third / first | fetched by then | read by then |",
        );
        line(out, "| --- | --- | --: | --: | --: | --: | --: | --: |");
        out.push_str(&rows);
    }
}

fn long_path(out: &mut String, path: &LongPath) {
    let rules = &path.rules;
    line(
        out,
        &format!(
            "\nOne client on a path of {} ms, {} MB/s (packets through TUN interfaces of two network namespaces, delayed in user \
             space, the latest by {} ms; {} dropped; {}; round trip of connecting {:.1} ms); medians\n",
            2 * rules.delay_ms,
            rules.rate_bytes_s / 1_000_000,
            path.traffic
                .iter()
                .map(|way| way.late_us_max / 1000)
                .max()
                .unwrap_or_default(),
            path.traffic.iter().map(|way| way.dropped).sum::<u64>(),
            path.congestion_control,
            ratio(path.round_trip_us, 1000),
        ),
    );
    line(
        out,
        "| long path to | direct | default read-ahead | unbounded | default / unbounded | first 5 MB: default | unbounded |",
    );
    line(out, "| --- | --: | --: | --: | --: | --: | --: |");
    for side in SIDES {
        let speed = |way| {
            path_median(path, side, way, Download::mb_per_s)
                .map_or(String::new(), |speed| format!("{speed:.1} MB/s"))
        };
        let early = |way| {
            path_median(path, side, way, |download| ratio(download.early_ms, 1000))
                .map_or(String::new(), |early| format!("{early:.2} s"))
        };
        line(
            out,
            &format!(
                "| {} | {} | {} | {} | {} | {} | {} |",
                side.name(),
                speed(Way::Direct),
                speed(Way::Default),
                speed(Way::Unbounded),
                path_ratio(path, side).map_or(String::new(), |ratio| format!("{ratio:.3}")),
                early(Way::Default),
                early(Way::Unbounded),
            ),
        );
    }
}

fn path_median(
    path: &LongPath,
    side: Side,
    way: Way,
    number: impl Fn(&Download) -> f64,
) -> Option<f64> {
    let sound = path.downloads.iter().filter(|one| one.trouble.is_none());
    let these = sound.filter(|one| one.side == side && one.way == way);
    spread(these.map(number).collect()).map(|spread| spread.median)
}

/// Speed with the default read-ahead over that without a bound, medians.
pub(crate) fn path_ratio(path: &LongPath, side: Side) -> Option<f64> {
    let bounded = path_median(path, side, Way::Default, Download::mb_per_s)?;
    let unbounded = path_median(path, side, Way::Unbounded, Download::mb_per_s)?;
    Some(bounded / unbounded)
}

/// What could not be measured, and why.
pub(crate) fn troubles(record: &Record) -> Vec<String> {
    let mut entries: Vec<String> = record
        .left_out
        .iter()
        .map(|(name, reason)| format!("{name}: {reason}"))
        .collect();
    let mut add = |what: &str, contender: &str, trouble: &Option<String>| {
        entries.extend(
            trouble
                .as_ref()
                .map(|trouble| format!("{contender}, {what}: {trouble}")),
        );
    };
    fn each<T>(of: &[Measured<T>], what: &str, add: &mut impl FnMut(&str, &str, &Option<String>)) {
        for one in of {
            add(what, &one.contender, &one.trouble);
        }
    }
    each(&record.aborts, "a client leaves", &mut add);
    each(&record.seconds, "a second client", &mut add);
    each(&record.leads, "read-ahead", &mut add);
    each(&record.joins, "a fast reader joins", &mut add);
    each(&record.herds, "concurrent misses", &mut add);
    each(&record.memories, "memory", &mut add);
    for download in record.path.iter().flat_map(|path| &path.downloads) {
        let side = download.side.name();
        let what = format!("long path to {side}, {:?}", download.way);
        add(&what, WEIR, &download.trouble);
    }
    // one that did not start has the same trouble in every pair
    entries.dedup();
    for herd in &record.herds {
        for (why, count) in herd.figures.iter().flat_map(|herd| &herd.failed) {
            let clients = herd.figures.as_ref().map_or(0, |herd| herd.clients);
            entries.push(format!(
                "{}, {clients} concurrent misses: {count} clients: {why}",
                herd.contender
            ));
        }
    }
    entries
}

/// KiB below a megabyte, since leads are promised in them; above, decimal as downloads are.
pub(crate) fn bytes(count: u64) -> String {
    let mut text = String::new();
    // writing to a string cannot fail
    let _ = match count {
        0 => write!(text, "0"),
        1..1_000_000 => write!(text, "{:.0} KiB", ratio(count, 1024)),
        _ => write!(text, "{:.1} MB", ratio(count, 1_000_000)),
    };
    text
}

fn seconds(ms: u64) -> String {
    format!("{:.1}", ratio(ms, 1000))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "bytes and milliseconds of a measurement are far below 2^52"
)]
pub(crate) fn ratio(of: u64, to: u64) -> f64 {
    of as f64 / to.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_in_kib_below_one_megabyte_and_in_mb_from_there() {
        for (count, expected) in [
            (0, "0"),
            (65_536, "64 KiB"),
            (999_999, "977 KiB"),
            (1_000_000, "1.0 MB"),
            (59_640_000, "59.6 MB"),
        ] {
            assert_eq!(bytes(count), expected);
        }
    }

    const RECORD: &str = r#"{"schema":1,"command":"cargo xtask uneven","seed":"none","commit":"none","begun":"now",
        "host":{"cpu":"c","cores":2,"kernel":"6","load_average":"0","memory_kib":"1"},"versions":{"weir":"weir 1"},
        "settings":{"peers":[],"experiments":["abort"],"pairs":3},"files_max":20000,"contenders":["weir","nginx"],
        "left_out":{"squid":"not installed"},
        "aborts":[
            {"contender":"weir","figures":{"size_bytes":20000000,"read_bytes":262144,"fetched_bytes":300000,"fetches":[]},
             "trouble":null},
            {"contender":"nginx","figures":{"size_bytes":20000000,"read_bytes":262144,"fetched_bytes":20000000,
             "fetches":[]},"trouble":null}],
        "seconds":[{"contender":"weir","figures":{"size_bytes":20000000,"fetched_bytes":19700000,"duration_ms":9000,
             "fetches":[{"range":"bytes=300000-","status":206,"handed_bytes":19700000,"acknowledged_bytes":19700000,
             "end":"whole"}]},"trouble":null}],
        "leads":[{"contender":"weir","figures":{"kind":{"reads":true,"is_storable":true},"taken_bytes":600000,
             "read_bytes":400000,"unread_bytes":100000,"largest_bytes":262144,"fetches":1},"trouble":null},
             {"contender":"nginx","figures":null,"trouble":"cut after 0 bytes"}],
        "joins":[{"contender":"nginx","figures":{"size_bytes":30000000,"direct_ms":12000,"joined_ms":null,
             "joined_bytes":3000000,"limit_ms":30000,"slow_bytes":1,"fetches":1,"fetched_bytes":5},"trouble":null},
             {"contender":"weir","figures":{"size_bytes":30000000,"direct_ms":12000,"joined_ms":15000,
             "joined_bytes":30000000,"limit_ms":30000,"slow_bytes":1,"fetches":1,"fetched_bytes":30000000},
             "trouble":null}],
        "herds":[{"contender":"weir","figures":{"clients":50,"asking_ms":1,"duration_ms":2,"whole":50,"failed":{},
             "fetches":1,"fetched_bytes":20000},"trouble":null},
             {"contender":"nginx","figures":{"clients":50,"asking_ms":1,"duration_ms":2,"whole":48,
             "failed":{"status 500":2},"fetches":48,"fetched_bytes":20000},"trouble":null}],
        "memories":[{"contender":"weir","figures":{"kind":"each-passed","clients":2000,"before":SAMPLE,
             "samples":[SAMPLE,SAMPLE,SAMPLE],"reading":2000},"trouble":null}],
        "path":{"rules":{"delay_ms":50,"rate_bytes_s":25000000,"queue_bytes":1},"round_trip_us":100400,
             "congestion_control":"cubic","downloads":[DOWNLOADS],"traffic":[]}}"#;

    const SAMPLE: &str = r#"{"at_ms":1,"rss_kib":1,"pss_kib":2048,"sockets_kib":1024,"taken_bytes":1,"read_bytes":1}"#;

    fn record() -> Record {
        let download = |way: &str, ms: u64| {
            format!(
                r#"{{"side":"client","way":"{way}","pair":1,"size_bytes":100000000,"duration_ms":{ms},
                "early_bytes":5000000,"early_ms":500,"trouble":null}}"#
            )
        };
        let downloads = [
            download("default", 5000),
            download("unbounded", 4000),
            download("default", 5000),
        ];
        let text = RECORD
            .replace("SAMPLE", SAMPLE)
            .replace("DOWNLOADS", &downloads.join(","));
        serde_json::from_str(&text).expect("a record")
    }

    fn check(text: &str, expected: &str) {
        let found = text.lines().any(|line| line.contains(expected));
        assert!(found, "`{expected}` is not in\n{text}");
    }

    #[test]
    fn table_has_a_column_for_each_proxy() {
        let text = render(&record());
        check(&text, "| | weir | nginx |");
        check(&text, "fetched | 293 KiB | 20.0 MB |");
        check(&text, "fetched again | 19.7 MB |  |");
        check(&text, "of 50 KB/s after 8 s, storable | 195 KiB |  |");
        check(&text, "time | 15.0 s | stalled: 3.0 MB in 30.0 s |");
        check(&text, "direct download | 0.80 × |  |");
        check(
            &text,
            "50 concurrent misses | 1 | 48 (could not: 2 clients failed) |",
        );
        check(&text, "| weir | 2.0 + 1.0 | 2.0 + 1.0 | 3-3 | 1.00 |");
        check(&text, "| the client |  | 20.0 MB/s | 25.0 MB/s | 0.800 |");
    }

    #[test]
    fn target_is_met_at_its_bound_and_missed_beyond_it() {
        let text = render(&record());
        check(&text, "had read: 37 KiB, at most 64 KiB: met");
        check(&text, "client takes all: 0, at most 64 KiB: met");
        check(&text, "program: 256 KiB, at most 256 KiB");
        check(
            &text,
            "joiner: 0.80 × a direct download, at least 0.9: MISSED",
        );
        check(
            &text,
            "50 concurrent misses: 1 fetches, at most 1; 50 clients served: met",
        );
        check(
            &text,
            "path to the client: 0.800 × unbounded, at least 0.95: MISSED",
        );
    }

    #[test]
    fn unmeasured_and_failed_peers_are_named_with_the_cause() {
        let text = render(&record());
        check(&text, "squid: not installed");
        check(&text, "nginx, read-ahead: cut after 0 bytes");
        check(&text, "nginx, 50 concurrent misses: 2 clients: status 500");
    }
}
