//! The tables of a record, as Markdown.

use super::herd::{CLIENTS, Herd};
use super::join::Join;
use super::measurement::Measurement;
use super::path::{Download, DownloadKind, LongPath, SIDES};
use super::read_ahead::{KINDS, Kind};
use super::{Record, targets};
use crate::proxy::contender::WEIR;
use crate::record::markdown::{self, COULD_NOT, TARGETS, bytes, line, list, ratio, row, table};

pub(super) fn render(record: &Record) -> String {
    let (origin, files_max) = (markdown::origin(record, "; "), record.figures.files_max);
    let mut out = format!("{origin}, {files_max} open files a process.\n\n");
    markdown::versions(&mut out, record);
    out.push_str(&experiments(record));
    memory(&mut out, record);
    if let Some(path) = &record.figures.path {
        long_path(&mut out, path);
    }
    list(&mut out, TARGETS, targets::judge(record));
    list(&mut out, COULD_NOT, troubles(record));
    out
}

/// Rows with a cell for every contender.
struct Rows<'r> {
    contenders: &'r [String],
    rows: Vec<String>,
}

impl Rows<'_> {
    /// Adds a row, if any contender has a cell.
    fn add<T>(&mut self, name: &str, of: &[Measurement<T>], cell: impl Fn(&T) -> Option<String>) {
        let cell = |contender: &String| {
            let mut these = of.iter().filter(|one| one.contender == *contender);
            these.find_map(|one| one.figures.as_ref().and_then(&cell))
        };
        let cells: Vec<Option<String>> = self.contenders.iter().map(cell).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(Option::unwrap_or_default);
            self.rows
                .push(row([name.to_owned()].into_iter().chain(cells)));
        }
    }
}

/// What happens to each proxy: a row an experiment, a column a proxy.
pub(crate) fn experiments(record: &Record) -> String {
    let figures = &record.figures;
    let contenders = &figures.contenders[..];
    let rows = Vec::new();
    let mut rows = Rows { contenders, rows };
    let name = "a client disconnects in a 20 MB download after 0.26 MB: fetched";
    rows.add(name, &figures.aborts, |abort| {
        Some(bytes(abort.fetched_bytes))
    });
    let name = "a second client takes all of it: fetched again";
    rows.add(name, &figures.seconds, |second| {
        Some(bytes(second.fetched_bytes))
    });
    for kind in KINDS {
        rows.add(&read_ahead(kind), &figures.leads, |lead| {
            (lead.kind == kind).then(|| bytes(lead.over_program()))
        });
    }
    let joins = &figures.joins;
    let name = "a fast reader joins a slow reader's 30 MB: time";
    rows.add(name, joins, |join| Some(join_time(join)));
    rows.add("its speed beside a direct download", joins, |join| {
        join.speed_ratio().map(|ratio| format!("{ratio:.2} ×"))
    });
    rows.add("fetches for the two of them", joins, |join| {
        Some(format!("{} ({})", join.fetches, bytes(join.fetched_bytes)))
    });
    for clients in CLIENTS {
        let name = format!("fetches for {clients} concurrent misses");
        rows.add(&name, &figures.herds, |herd| {
            (herd.clients == clients).then(|| fetches(herd))
        });
    }
    let mut out = String::new();
    if !rows.rows.is_empty() {
        let columns = format!("| | {} |", contenders.join(" | "));
        out.push('\n');
        table(&mut out, "", &columns, rows.rows);
    }
    out
}

fn read_ahead(kind: Kind) -> String {
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
    format!("read-ahead over a client {client} after 8 s, {stored}")
}

fn join_time(join: &Join) -> String {
    let seconds = |ms| format!("{:.1} s", ratio(ms, 1000));
    match join.joined_ms {
        Some(ms) => seconds(ms),
        None => format!(
            "stalled: {} in {}",
            bytes(join.joined_bytes),
            seconds(join.limit_ms)
        ),
    }
}

fn fetches(herd: &Herd) -> String {
    match herd.clients - herd.whole {
        0 => herd.fetches.to_string(),
        failed => format!("{} (could not: {failed} clients failed)", herd.fetches),
    }
}

fn memory(out: &mut String, record: &Record) {
    let mib = |kib: u64| format!("{:.1}", ratio(kib, 1024));
    let mut clients = 0;
    let mut rows = Vec::new();
    for measured in &record.figures.memories {
        let Some(memory) = &measured.figures else {
            continue;
        };
        let (Some(first), Some(last)) = (memory.samples.first(), memory.samples.last()) else {
            continue;
        };
        let (least, most) = memory.extent_kib().unwrap_or_default();
        clients = memory.clients;
        rows.push(row([
            memory.kind.name().to_owned(),
            measured.contender.clone(),
            format!("{} + {}", mib(first.pss_kib), mib(first.sockets_kib)),
            format!("{} + {}", mib(last.pss_kib), mib(last.sockets_kib)),
            format!("{:.0}-{:.0}", ratio(least, 1024), ratio(most, 1024)),
            format!("{:.2}", memory.growth().unwrap_or_default()),
            bytes(last.taken_bytes),
            bytes(last.read_bytes),
        ]));
    }
    if rows.is_empty() {
        return;
    }
    line(
        out,
        format_args!(
            "\nMiB with {clients} clients at 28.8 Kbit/s on responses of 1 MB: PSS of the proxy + TCP buffers of the machine\n\n\
             | responses | | when all had begun | a minute later | least-most | last third / first | fetched by then | read by then |\n\
             | --- | --- | --: | --: | --: | --: | --: | --: |\n{}",
            rows.join("\n")
        ),
    );
}

fn long_path(out: &mut String, path: &LongPath) {
    let rules = &path.rules;
    let latest_ms = path
        .traffic
        .iter()
        .map(|direction| direction.late_us_max / 1000)
        .max();
    let title = format!(
        "One client on a path of {} ms, {} MB/s (packets through TUN interfaces of two network namespaces, delayed in user \
         space, the latest by {} ms; {} dropped; {}; round trip of connecting {:.1} ms); medians",
        2 * rules.delay_ms,
        rules.rate_bytes_s / 1_000_000,
        latest_ms.unwrap_or_default(),
        path.traffic
            .iter()
            .map(|direction| direction.dropped)
            .sum::<u64>(),
        path.congestion_control,
        ratio(path.round_trip_us, 1000),
    );
    let rows = SIDES.map(|side| {
        let speed = |kind| {
            let speed = path.median(side, kind, Download::mb_per_s);
            speed.map_or(String::new(), |speed| format!("{speed:.1} MB/s"))
        };
        let early = |kind| {
            let early = path.median(side, kind, |download| ratio(download.early_ms, 1000));
            early.map_or(String::new(), |early| format!("{early:.2} s"))
        };
        row([
            side.name().to_owned(),
            speed(DownloadKind::Direct),
            speed(DownloadKind::Default),
            speed(DownloadKind::Unbounded),
            path.speed_ratio(side)
                .map_or(String::new(), |ratio| format!("{ratio:.3}")),
            early(DownloadKind::Default),
            early(DownloadKind::Unbounded),
        ])
    });
    let columns = "| long path to | direct | default read-ahead | unbounded | default / unbounded | first 5 MB: default | unbounded |";
    table(out, &title, columns, rows);
}

/// What could not be measured, and why.
pub(super) fn troubles(record: &Record) -> Vec<String> {
    fn of<T>(measured: &[Measurement<T>], what: &str) -> Vec<String> {
        let trouble = |one: &Measurement<T>| {
            let trouble = one.trouble.as_ref()?;
            Some(format!("{}, {what}: {trouble}", one.contender))
        };
        measured.iter().filter_map(trouble).collect()
    }
    let figures = &record.figures;
    let mut entries = markdown::left_out(record);
    entries.extend(of(&figures.aborts, "a client disconnects"));
    entries.extend(of(&figures.seconds, "a second client"));
    entries.extend(of(&figures.leads, "read-ahead"));
    entries.extend(of(&figures.joins, "a fast reader joins"));
    entries.extend(of(&figures.herds, "concurrent misses"));
    entries.extend(of(&figures.memories, "memory"));
    for download in figures.path.iter().flat_map(|path| &path.downloads) {
        if let Some(trouble) = &download.trouble {
            let (side, kind) = (download.side.name(), download.kind);
            entries.push(format!("{WEIR}, long path to {side}, {kind:?}: {trouble}"));
        }
    }
    // one that did not start has the same trouble in every pair
    entries.dedup();
    for measured in &figures.herds {
        if let Some(herd) = &measured.figures {
            let (contender, clients) = (&measured.contender, herd.clients);
            entries.extend(herd.failed.iter().map(|(why, count)| {
                format!("{contender}, {clients} concurrent misses: {count} clients: {why}")
            }));
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

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
