//! Heavy hitters and recent misses on the admin interface.

use super::table::aligned;
use super::{Proxy, json, text, wants_json};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use std::fmt::Write as _;
use weir_measure::Label as _;
use weir_measure::live::{Meaning, RecentMisses, TopBy, TopOf, TopTable};

/// Rows of an answer, if the query does not say how many.
const ROWS_DEFAULT: usize = 20;

/// What is said where nothing is counted.
const OFF: &str = "nothing is counted: `admin.top` is false\n";

/// What a query asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TopQuery {
    of: TopOf,
    by: TopBy,
    rows_max: usize,
}

impl TopQuery {
    fn read(query: Option<&str>) -> Result<Self, String> {
        let mut read = Self {
            of: TopOf::Urls,
            by: TopBy::ToClients,
            rows_max: ROWS_DEFAULT,
        };
        for part in query.unwrap_or_default().split('&') {
            match part.split_once('=') {
                Some(("of", word)) => {
                    read.of = TopOf::from_word(word).ok_or_else(|| unknown::<TopOf>("of", word))?;
                }
                // the bytes that an operator means
                Some(("by", "bytes")) => read.by = TopBy::ToClients,
                Some(("by", word)) => {
                    read.by = TopBy::from_word(word).ok_or_else(|| unknown::<TopBy>("by", word))?;
                }
                Some(("n", count)) => {
                    let count = count.parse().ok().filter(|count| *count > 0);
                    read.rows_max = count.ok_or("n: a number of rows is expected, from 1")?;
                }
                Some(("format", "json")) => {}
                None if part.is_empty() => {}
                _ => {
                    let part = part.escape_debug();
                    return Err(format!(
                        "unexpected `{part}`: use of, by, n and format=json"
                    ));
                }
            }
        }
        Ok(read)
    }
}

fn unknown<L: weir_measure::Label>(name: &str, word: &str) -> String {
    let words = L::WORDS.join(", ");
    format!("{name}: `{}` is none of {words}", word.escape_debug())
}

/// `GET /top`.
pub(super) async fn top(
    State(control): Proxy,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let asked = match TopQuery::read(query.as_deref()) {
        Ok(asked) => asked,
        Err(why) => return text(StatusCode::BAD_REQUEST, format!("{why}\n")),
    };
    match control.top(asked.of, asked.by, asked.rows_max) {
        None => text(StatusCode::NOT_FOUND, OFF.into()),
        Some(table) if wants_json(query.as_deref(), &headers) => {
            json(serde_json::to_string(&table))
        }
        Some(table) => text(StatusCode::OK, written(&table)),
    }
}

/// The table as text: what may hold any character is escaped.
fn written(table: &TopTable) -> String {
    let TopTable {
        of,
        by,
        unit,
        total,
        ..
    } = table;
    let mut page = format!("{of} by {by}: {total} {unit} in all, halved each 10 minutes\n\n");
    let head = ["place", "at most", "at least", "%", "name"].map(str::to_owned);
    let rows = table.rows.iter().zip(1..).map(|(row, rank)| {
        let least = row.count - row.error;
        let name = row.name.escape_debug().to_string();
        let share = tenths_of_percent(row.count, *total);
        let share = format!("{}.{}", share / 10, share % 10);
        let mark = if row.certain { " " } else { "?" };
        [
            format!("{rank}{mark}"),
            row.count.to_string(),
            least.to_string(),
            share,
            name,
        ]
    });
    page.push_str(&aligned(
        &[head].into_iter().chain(rows).collect::<Vec<_>>(),
    ));
    let _infallible = writeln!(
        page,
        "\nwhat is not listed has at most {}; what has no counter has at most {}, and a row with `?` \
         may have less than that",
        table.unlisted_max, table.resolution
    );
    page
}

fn tenths_of_percent(part: u64, whole: u64) -> u64 {
    let whole = u128::from(whole.max(1));
    let tenths = (u128::from(part) * 1000 + whole / 2) / whole;
    u64::try_from(tenths).unwrap_or(u64::MAX)
}

/// `GET /misses`.
pub(super) async fn misses(
    State(control): Proxy,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    match control.misses() {
        None => text(StatusCode::NOT_FOUND, OFF.into()),
        Some(misses) if wants_json(query.as_deref(), &headers) => {
            json(serde_json::to_string(&misses))
        }
        Some(misses) => text(StatusCode::OK, written_misses(&misses)),
    }
}

fn written_misses(misses: &RecentMisses) -> String {
    let head = ["time", "why", "reason", "status", "client", "method", "url"].map(str::to_owned);
    let rows = misses.misses.iter().map(|miss| {
        [
            time_of_day(miss.at_unix_ms),
            miss.why.clone(),
            miss.reason().unwrap_or_default().to_owned(),
            miss.status.to_string(),
            miss.client.clone(),
            miss.method.escape_debug().to_string(),
            miss.url.escape_debug().to_string(),
        ]
    });
    let mut page = aligned(&[head].into_iter().chain(rows).collect::<Vec<_>>());
    for (of, meanings) in [
        ("why", &misses.why_meanings),
        ("reason", &misses.reason_meanings),
    ] {
        if !meanings.is_empty() {
            let _infallible = writeln!(page, "\n{of}:");
        }
        for Meaning { word, about } in meanings {
            let _infallible = writeln!(page, "  {word}: {about}");
        }
    }
    let _infallible = writeln!(page, "\n{MISSES_NOTE}");
    page
}

/// Which requests are listed as misses and refusals, and where the others are.
pub const MISSES_NOTE: &str = "listed are requests that a next hop was asked for, or was to be; those that were refused before, \
     by access, login, rule or form (400, 403, 407, 421), are in the access log";

/// The time of the day, UTC.
fn time_of_day(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000 % 86_400;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}Z", seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_measure::live::{Miss, TopRow, VERSION};

    #[test]
    fn query_of_top_has_defaults_and_names_what_it_does_not_know() {
        let read = TopQuery::read(None).expect("defaults");
        assert_eq!(
            (read.of, read.by, read.rows_max),
            (TopOf::Urls, TopBy::ToClients, 20)
        );
        let read = TopQuery::read(Some("of=clients&by=bytes&n=3&format=json")).expect("good");
        assert_eq!(
            (read.of, read.by, read.rows_max),
            (TopOf::Clients, TopBy::ToClients, 3)
        );
        let read = TopQuery::read(Some("by=wasted&of=next-hops")).expect("good");
        assert_eq!((read.of, read.by), (TopOf::NextHops, TopBy::Wasted));
        for (query, word) in [
            ("of=cookies", "urls, hosts, clients, next-hops"),
            ("by=size", "requests, to-clients"),
            ("n=0", "from 1"),
            ("n=many", "from 1"),
            ("sort=asc", "of, by, n"),
            ("of=%1b[2J", "none of"),
        ] {
            let why = TopQuery::read(Some(query)).expect_err(query);
            assert!(why.contains(word), "{query}: {why}");
        }
    }

    #[test]
    fn hostile_names_are_escaped_in_text() {
        let row = TopRow {
            name: "http://a/\u{1b}[2J\u{202e}<script>\n".into(),
            count: 30,
            error: 10,
            certain: false,
        };
        let table = TopTable {
            version: VERSION,
            of: "urls".into(),
            by: "requests".into(),
            unit: "requests".into(),
            total: 40,
            resolution: 20,
            unlisted_max: 25,
            halving_s: 600,
            rows: vec![row],
        };
        let page = written(&table);
        let line = page.lines().nth(3).expect("a row");
        assert_eq!(
            line,
            r"1?     30       20        75.0  http://a/\u{1b}[2J\u{202e}<script>\n"
        );
        let bounds = "what is not listed has at most 25; what has no counter has at most 20,";
        assert!(page.contains(bounds), "{page}");
        let miss = Miss {
            at_unix_ms: 86_400_000 + 3_723_000,
            method: "GE\u{7}T".into(),
            url: "\u{202e}x".into(),
            client: "client-1".into(),
            why: "uri-miss".into(),
            status: 200,
            not_stored: Some("no-lifetime".into()),
            refused: None,
        };
        let page = written_misses(&RecentMisses {
            version: VERSION,
            misses: vec![miss],
            why_meanings: vec![Meaning {
                word: "uri-miss".into(),
                about: "Nothing is stored.".into(),
            }],
            reason_meanings: Vec::new(),
        });
        assert!(
            page.contains("01:02:03Z  uri-miss  no-lifetime  200"),
            "{page}"
        );
        let meaning = "\n\nwhy:\n  uri-miss: Nothing is stored.\n";
        assert!(page.contains(meaning), "{page}");
        assert!(page.ends_with(&format!("{MISSES_NOTE}\n")), "{page}");
        assert_eq!(tenths_of_percent(2, 3), 667);
        let is_plain = |sign: char| sign == '\n' || !sign.is_control() && sign != '\u{202e}';
        assert!(page.chars().all(is_plain), "{page:?}");
    }
}
