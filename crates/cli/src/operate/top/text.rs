//! A reading as lines of text.

use super::numbers::{Sums, latest};
use super::reading::{MINUTE_S, Reading};
use super::units::{bytes, clock, count, micros, share, span, visible};
use weir_measure::live::{LinkRow, Live, Miss, NAME_BYTES_MAX, TopRow, TopTable};
use weir_proxy::admin::MISSES_NOTE;

/// Columns that lines of a row need beside its name for all that they have.
const WIDE: usize = 60;

/// Columns of a miss with its client and why its response was not stored.
const VERY_WIDE: usize = 120;

/// Said where the proxy counts no heavy hitters.
pub(super) const OFF: &str = "nothing is counted: `admin.top` is false";

/// Everything, for a reader without a terminal.
pub(super) fn page(address: &str, reading: &Reading) -> String {
    let mut lines = summary(address, reading);
    lines.push(String::new());
    match &reading.top {
        None => lines.push(OFF.to_owned()),
        Some(table) => {
            lines.push(title(table));
            lines.push(head(table, usize::MAX));
            let rows = table.rows.iter().zip(1..);
            lines.extend(rows.map(|(row, rank)| top_row(table, row, rank, usize::MAX, 0)));
        }
    }
    if let Some(misses) = &reading.misses {
        lines.extend([String::new(), MISSES.to_owned()]);
        let rows = misses.misses.iter();
        lines.extend(rows.map(|miss| miss_row(miss, usize::MAX, 0)));
        let meanings = [&misses.why_meanings, &misses.reason_meanings];
        let meanings = meanings.into_iter().flatten();
        lines.extend(meanings.map(|it| {
            let about = visible(&it.about.replace('§', "section "), NAME_BYTES_MAX);
            format!("  {}: {about}", visible(&it.word, 32))
        }));
        lines.push(MISSES_NOTE.to_owned());
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Over the last requests that were forwarded, or were to be and were refused.
pub(super) const MISSES: &str = "last misses and refusals";

/// What the proxy does: eight lines, and one for each link, of 80 columns at most.
pub(super) fn summary(address: &str, reading: &Reading) -> Vec<String> {
    let Some(live) = &reading.live else {
        return vec![format!("Weir at {address} has measured nothing yet")];
    };
    let up_s = live.sample.at_s.saturating_sub(live.started_unix_ms / 1000);
    let version = visible(&live.weir, 20);
    let mut lines = vec![
        format!(
            "weir {version} at {address}, up {}, {}",
            span(up_s),
            clock(live.sample.at_s)
        ),
        format!(
            "{:<13} {:>9} {:>8} {:>9} {:>13} {:>15}",
            "", "requests", "hits", "of bytes", "to clients", "from next hops"
        ),
    ];
    let mut line = |label: &str, sums: Sums, seconds: Option<u64>| {
        let per = |value: u64| value / seconds.unwrap_or(1);
        let unit = if seconds.is_some() { "/s" } else { "" };
        lines.push(format!(
            "{label:<13} {:>9} {:>8} {:>9} {:>13} {:>15}",
            count(per(sums.requests)) + unit,
            share(sums.hits, sums.requests),
            share(sums.from_store, sums.content),
            bytes(per(sums.to_clients)) + unit,
            bytes(per(sums.from_next_hops)) + unit,
        ));
    };
    line("last second", Sums::of_second(live), Some(1));
    if let Some(minute) = &reading.minute {
        line("last minute", Sums::of_rows(minute), Some(minute_s(live)));
    }
    line("in all", Sums::since_start(live), None);
    lines.extend([times(live), connections(live), stored(live)]);
    let links = reading.links.iter().flat_map(|rows| &rows.links);
    lines.extend(links.map(|row| visible(&link(row), 80)));
    lines
}

fn link(row: &LinkRow) -> String {
    let name = visible(&row.name, 24);
    let words = row.state_words().join(", ");
    let state = if words.is_empty() {
        String::new()
    } else {
        format!(" ({words})")
    };
    let moved = bytes(row.received_bytes.saturating_add(row.sent_bytes));
    let Some(quota) = &row.quota else {
        return format!("link          {name}{state}: {moved} in all, no quota");
    };
    format!(
        "link          {name}{state}: {} of {} spent, {}; {} not sent",
        bytes(quota.spent_bytes),
        bytes(quota.bytes),
        share(quota.spent_bytes, quota.bytes),
        count(row.refused)
    )
}

/// How much of the last minute the proxy has run, seconds.
pub(super) fn minute_s(live: &Live) -> u64 {
    let up_s = live.sample.at_s.saturating_sub(live.started_unix_ms / 1000);
    up_s.clamp(1, MINUTE_S)
}

fn times(live: &Live) -> String {
    let time = |name| latest(live, name).map_or_else(|| "-".to_owned(), micros);
    format!(
        "times         hits {} (99 %: {}), forwarded {} (99 %: {})",
        time("time.hit.p50"),
        time("time.hit.p99"),
        time("time.miss.p50"),
        time("time.miss.p99")
    )
}

fn connections(live: &Live) -> String {
    let gauge = |name| latest(live, name).unwrap_or(0);
    format!(
        "connections   {} of clients, {} to next hops",
        count(gauge("clients-open")),
        count(gauge("next-hops-open"))
    )
}

fn stored(live: &Live) -> String {
    let gauge = |name| latest(live, name).unwrap_or(0);
    let mut line = format!(
        "stored        {} of {} in memory",
        bytes(gauge("store.used-bytes")),
        bytes(gauge("store.budget-bytes")),
    );
    if gauge("disk.budget-bytes") > 0 {
        line.push_str(&format!(
            ", {} of {} on disk",
            bytes(gauge("disk.used-bytes")),
            bytes(gauge("disk.budget-bytes"))
        ));
    }
    line
}

/// Over a table of heavy hitters.
pub(super) fn title(table: &TopTable) -> String {
    format!(
        "{} by {}: {} in all, halved each {}",
        visible(&table.of, 20),
        visible(&table.by, 20),
        amount(table, table.total),
        span(table.halving_s.into())
    )
}

/// The titles of its columns, for a screen of `width` columns.
pub(super) fn head(table: &TopTable, width: usize) -> String {
    let at_most = if table.unit == "bytes" {
        "bytes"
    } else {
        "count"
    };
    if width < WIDE {
        format!("{at_most:>8} name")
    } else {
        format!("{:>4}  {at_most:>8} {:>7}  name", "", "share")
    }
}

fn amount(table: &TopTable, value: u64) -> String {
    if table.unit == "bytes" {
        bytes(value)
    } else {
        count(value)
    }
}

/// A row of it; of its name so many characters are left out in front.
pub(super) fn top_row(
    table: &TopTable,
    row: &TopRow,
    rank: usize,
    width: usize,
    shift: usize,
) -> String {
    let amount = amount(table, row.count);
    if width < WIDE {
        // what all URLs begin with tells nothing
        let name = row.name.strip_prefix("http://").unwrap_or(&row.name);
        return with_name(format!("{amount:>8} "), name, width, shift);
    }
    let mark = if row.certain { ' ' } else { '?' };
    let share = share(row.count, table.total);
    let line = format!("{rank:>4}{mark} {amount:>8} {share:>7}  ");
    with_name(line, &row.name, width, shift)
}

/// A request that was forwarded or refused.
pub(super) fn miss_row(miss: &Miss, width: usize, shift: usize) -> String {
    let time = clock(miss.at_unix_ms / 1000);
    let why = visible(&miss.why, 9);
    let line = match width {
        0..WIDE => format!("{why:<9} "),
        WIDE..VERY_WIDE => format!("{time} {why:<9} {:>3} ", miss.status),
        _ => {
            let reason = visible(miss.reason().unwrap_or("-"), 22);
            let client = visible(&miss.client, 24);
            let method = visible(&miss.method, 8);
            format!(
                "{time} {why:<9} {:>3} {reason:<22} {client:<15} {method:<4} ",
                miss.status
            )
        }
    };
    with_name(line, &miss.url, width, shift)
}

fn with_name(mut line: String, name: &str, width: usize, shift: usize) -> String {
    let left: String = name.chars().skip(shift).collect();
    line.push_str(&visible(
        &left,
        width.saturating_sub(line.len()).min(NAME_BYTES_MAX),
    ));
    line
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    fn is_plain(text: &str) -> bool {
        text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n'))
    }

    #[test]
    fn page_has_rates_ratios_table_and_misses_in_visible_ascii() {
        let page = page("127.0.0.1:3129", &example::reading());
        for part in [
            "weir 0.1.0 at 127.0.0.1:3129, up 1 h 0 min, 14:46:40Z\n",
            "last second        12/s   75.0 %    75.0 %     1.20 kB/s         400 B/s\n",
            "last minute         4/s   50.0 %   100.0 %         2 B/s           2 B/s\n",
            "in all              120   75.0 %    75.0 %       12.0 kB         4.00 kB\n",
            "times         hits - (99 %: -), forwarded 12.5 ms (99 %: -)\n",
            "connections   4 of clients, 0 to next hops\n",
            "stored        3.00 MB of 268 MB in memory, 4.81 MB of 10.7 GB on disk\n",
            "link          satellite (spent): 2.00 kB of 2.00 kB spent, 100.0 %; 7 not sent\n",
            "urls by to-clients: 12.0 kB in all, halved each 10 min\n",
            "   1   6.00 kB  50.0 %  http://b.example/large\n",
            "   3?      5 B   0.0 %  http://c.example/rare\n",
            r"   2   3.00 kB  25.0 %  http://a/\u{1b}]0;owned\u{7}\u{202e}\u{6f22}\u{9b}2J",
            "14:46:40Z uri-miss  200 no-lifetime            client-1        GET  http://a/",
            "\n  uri-miss: Nothing is stored.\n  no-lifetime: http://a/",
            "\nlisted are requests that a next hop was asked for, or was to be;",
        ] {
            assert!(page.contains(part), "no `{part}` in:\n{page}");
        }
        assert!(is_plain(&page), "{page:?}");
        assert!(page.ends_with('\n'));
    }

    #[test]
    fn lines_are_no_wider_than_the_screen() {
        let reading = example::reading();
        let table = reading.top.as_ref().expect("a table");
        let misses = reading.misses.as_ref().expect("misses");
        for width in [20, 59, 60, 80, 119, 120] {
            for row in &table.rows {
                let line = top_row(table, row, 1, width, 0);
                assert!(line.len() <= width && is_plain(&line), "{width}: {line:?}");
            }
            let line = miss_row(&misses.misses[0], width, 0);
            assert!(line.len() <= width && is_plain(&line), "{width}: {line:?}");
        }
        for line in summary("[2001:db8::1234:5678]:3129", &reading) {
            assert!(line.len() <= 80, "{line:?}");
        }
        let line = top_row(table, &table.rows[0], 1, 20, 2);
        assert_eq!(line, " 6.00 kB example/...");
        assert_eq!(top_row(table, &table.rows[0], 1, 20, 9999), " 6.00 kB ");
    }

    #[test]
    fn what_is_not_known_is_said() {
        let nothing = Reading {
            live: None,
            minute: None,
            top: None,
            links: None,
            misses: None,
        };
        let page = page("127.0.0.1:1", &nothing);
        assert!(page.contains("has measured nothing yet"), "{page}");
        assert!(page.contains(OFF), "{page}");
    }
}
