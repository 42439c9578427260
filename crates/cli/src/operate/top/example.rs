//! A reading for tests, with names that a terminal must not get as they are.

use super::reading::Reading;
use weir_measure::live::{
    HistoryTable, LinkQuotaRow, LinkRow, LinkRows, Live, LiveKind, LiveSample, LiveSeries, Meaning,
    Miss, RecentMisses, TopRow, TopTable, VERSION,
};

/// An escape sequence, text from right to left, a wide character and a control.
pub(super) const HOSTILE: &str = "http://a/\u{1b}]0;owned\u{7}\u{202e}\u{6f22}\u{9b}2J";

/// A name, whether it is a gauge, its last value, and its value since the start.
type Value = (&'static str, bool, Option<u64>, u64);

const VALUES: [Value; 13] = [
    ("requests.hit", false, Some(9), 90),
    ("requests.uri-miss", false, Some(3), 30),
    ("bytes.content-to-clients", false, Some(1000), 10_000),
    ("bytes.content-from-store", false, Some(750), 7_500),
    ("bytes.to-clients", false, Some(1200), 12_000),
    ("bytes.from-next-hops", false, Some(400), 4_000),
    ("time.hit.p50", true, None, 0),
    ("time.miss.p50", true, Some(12_500), 0),
    ("clients-open", true, Some(4), 4),
    ("store.used-bytes", true, Some(3_000_000), 3_000_000),
    ("store.budget-bytes", true, Some(268_000_000), 0),
    ("disk.used-bytes", true, Some(4_810_000), 0),
    ("disk.budget-bytes", true, Some(10_700_000_000), 0),
];

pub(super) fn live() -> Live {
    let series = VALUES.map(|(name, is_gauge, ..)| LiveSeries {
        name: name.to_owned(),
        kind: if is_gauge {
            LiveKind::Gauge
        } else {
            LiveKind::Count
        },
    });
    Live {
        version: VERSION,
        weir: "0.1.0".into(),
        started_unix_ms: 1_000_000_000,
        series: series.to_vec(),
        sample: LiveSample {
            at_s: 1_003_600,
            values: VALUES.map(|(_, _, value, _)| value).to_vec(),
            totals: VALUES.map(|(.., total)| Some(total)).to_vec(),
        },
    }
}

pub(super) fn reading() -> Reading {
    let live = live();
    let minute = HistoryTable {
        version: VERSION,
        step_s: 1,
        from_s: 1_003_540,
        series: live.series[..6].to_vec(),
        columns: vec![vec![Some(2); 60]; 6],
    };
    let row = |name: &str, count, certain| TopRow {
        name: name.to_owned(),
        count,
        error: 0,
        certain,
    };
    let miss = Miss {
        at_unix_ms: 1_003_600_000,
        method: "GET".into(),
        url: HOSTILE.into(),
        client: "client-1".into(),
        why: "uri-miss".into(),
        status: 200,
        not_stored: Some("no-lifetime".into()),
        refused: None,
    };
    let meaning = |word: &str, about: &str| Meaning {
        word: word.into(),
        about: about.into(),
    };
    Reading {
        live: Some(live),
        minute: Some(minute),
        top: Some(TopTable {
            version: VERSION,
            of: "urls".into(),
            by: "to-clients".into(),
            unit: "bytes".into(),
            total: 12_000,
            resolution: 0,
            unlisted_max: 10,
            halving_s: 600,
            rows: vec![
                row("http://b.example/large", 6_000, true),
                row(HOSTILE, 3_000, true),
                row("http://c.example/rare", 5, false),
            ],
        }),
        links: Some(LinkRows {
            version: VERSION,
            links: vec![LinkRow {
                name: "satellite".into(),
                received_bytes: 1900,
                sent_bytes: 100,
                refused: 7,
                waited_ms: 0,
                rate_bytes_s: None,
                is_in_window: false,
                is_free: false,
                is_after_clock_step: false,
                quota: Some(LinkQuotaRow {
                    bytes: 2000,
                    spent_bytes: 2000,
                    booked_bytes: 2000,
                    begin_unix_s: 0,
                    end_unix_s: 86_400,
                    when_spent: "refuse".into(),
                    is_spent: true,
                }),
            }],
        }),
        misses: Some(RecentMisses {
            version: VERSION,
            misses: vec![miss],
            why_meanings: vec![meaning("uri-miss", "Nothing is stored.")],
            reason_meanings: vec![meaning("no-lifetime", HOSTILE)],
        }),
    }
}
