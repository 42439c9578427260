//! What the simulator says: bytes, gains, connections.

use super::{Row, Table};
use crate::paper::drawing::{Bar, Bars, Group, Picture};
use crate::paper::proxim::experiment::{Cache, Kind, Persistent, Run};
use crate::paper::proxim::findings::{Findings, Of, mean, median, percent};
use crate::paper::proxim::published::{PublishedValue, Unit};
use crate::results::outcome::{Connections, Outcome};

/// What becomes of aborted fetches, in the order of the paper's text: word, run, what.
const FATES: [(&str, Run, &str); 5] = [
    ("continue", Run::Continue, "go on after an abort"),
    ("stop-45", Run::FULL, "stop at once, 45 Mbit/s"),
    ("stop-1.5", Run::Stop1500, "stop at once, 1.5 Mbit/s"),
    ("stop-0.5", Run::Stop500, "stop at once, 0.5 Mbit/s"),
    (
        "flow-control",
        Run::FlowControl,
        "at most 64 KiB ahead, 45 Mbit/s",
    ),
];

/// The run on this trace: the research network has 1.5 Mbit/s, and nothing else.
fn on(kind: Kind, run: Run) -> Option<Run> {
    match (kind, run) {
        (Kind::Modem, run) => Some(run),
        (Kind::Research, Run::Stop1500) => Some(Run::FULL),
        (Kind::Research, _) => None,
    }
}

pub(super) fn bandwidth(findings: &[Findings]) -> Table {
    let mut rows = vec![Row::new(
        "bandwidth.none-gb",
        "no proxy, for as many requests as in the paper",
        Unit::Gigabytes,
        |findings| findings.gigabytes(Run::NoProxy),
    )];
    for (word, run, what) in FATES {
        rows.push(Row::new(
            &format!("bandwidth.{word}-gb"),
            what,
            Unit::Gigabytes,
            move |findings| findings.gigabytes(on(findings.kind, run)?),
        ));
    }
    for (word, run, what) in FATES {
        rows.push(Row::percent(
            &format!("bandwidth.{word}"),
            &format!("saved: {what}"),
            move |findings| findings.savings(on(findings.kind, run)?),
        ));
    }
    Table {
        about: "Content that comes from servers through a proxy that caches data and keeps connections, beside no proxy. What a proxy \
                fetches ahead of a client that leaves is paid for by nobody's reading."
            .to_owned(),
        rows,
        pictures: bandwidth_picture(findings).into_iter().collect(),
    }
}

fn bandwidth_picture(findings: &[Findings]) -> Option<Picture> {
    let modem = findings.iter().find(|one| one.kind == Kind::Modem)?;
    let bars: Vec<Group> = FATES
        .iter()
        .filter_map(|(word, run, what)| {
            let saved = modem.savings(*run)?;
            let paper = PublishedValue::of(&format!("bandwidth.{word}"), Kind::Modem);
            Some(Group {
                name: (*what).to_owned(),
                bars: vec![Bar {
                    name: (*what).to_owned(),
                    series: 0,
                    value: 100.0 - saved,
                    paper: paper.map(|paper| 100.0 - paper.value),
                }],
            })
        })
        .collect();
    (!bars.is_empty()).then(|| {
        Picture::Bars(Bars {
            title: "Bytes from servers, modem trace".to_owned(),
            note:
                "Beside no proxy (100 %). Below the line a proxy saves bytes, above it costs some."
                    .to_owned(),
            label: "bytes from servers, % of no proxy".to_owned(),
            reference: 100.0,
            groups: bars,
        })
    })
}

/// A gain: key, what, the run, what it is over, and whether of means or medians.
type Gain = (&'static str, &'static str, Run, Run, Of);

const DATA_COOKIES: Run = Run::Proxy(Persistent::None, Cache::DataAndCookies);
const FULL_COOKIES: Run = Run::Proxy(Persistent::All, Cache::DataAndCookies);

/// Over no proxy, which is what section IV of the paper compares with.
#[rustfmt::skip]
const GAINS: [Gain; 9] = [
    ("latency.nothing", "nothing cached, mean", Run::NOTHING, Run::NoProxy, mean),
    ("latency.data", "data, mean", Run::DATA, Run::NoProxy, mean),
    ("latency.data-median", "data, median", Run::DATA, Run::NoProxy, median),
    ("latency.data-cookies", "data with cookies, mean", DATA_COOKIES, Run::NoProxy, mean),
    ("latency.connections", "connections, mean", Run::CONNECTIONS, Run::NoProxy, mean),
    ("latency.connections-median", "connections, median", Run::CONNECTIONS, Run::NoProxy, median),
    ("latency.both", "both, mean", Run::FULL, Run::NoProxy, mean),
    ("latency.both-median", "both, median", Run::FULL, Run::NoProxy, median),
    ("latency.both-cookies", "both with cookies, mean", FULL_COOKIES, Run::NoProxy, mean),
];

/// Over a proxy that caches nothing, as its introduction does.
#[rustfmt::skip]
const GAINS_OVER_PROXY: [Gain; 4] = [
    ("over-proxy.data", "data, mean, over a proxy without caching", Run::DATA, Run::NOTHING, mean),
    ("over-proxy.connections", "connections, the same", Run::CONNECTIONS, Run::NOTHING, mean),
    ("over-proxy.connections-again", "connections, the same, as section IV has it", Run::CONNECTIONS, Run::NOTHING, mean),
    ("over-proxy.both", "both, the same", Run::FULL, Run::NOTHING, mean),
];

fn gain((key, what, run, other, of): Gain) -> Row {
    Row::percent(key, what, move |findings| findings.gain(run, other, of))
}

pub(super) fn latency() -> Table {
    let mut rows: Vec<Row> = GAINS.into_iter().map(gain).collect();
    rows.extend([
        factor(
            "latency.client-factor",
            "data and client connections, times the gain of data",
            Run::Proxy(Persistent::Client, Cache::Data),
        ),
        factor(
            "latency.all-factor",
            "both, times the gain of data",
            Run::FULL,
        ),
    ]);
    rows.extend(GAINS_OVER_PROXY.into_iter().map(gain));
    Table {
        about: "By how much less time a request takes on average, or at the median, than without a proxy; then than with a proxy that \
                caches neither data nor connections, which is what the paper's introduction compares with."
            .to_owned(),
        rows,
        pictures: Vec::new(),
    }
}

/// How many times the gain of a cache of data alone; nothing if that gains nothing.
fn factor(key: &str, what: &str, run: Run) -> Row {
    Row::new(key, what, Unit::Mean, move |findings| {
        let one = findings.gain(Run::DATA, Run::NoProxy, mean)?;
        let other = findings.gain(run, Run::NoProxy, mean)?;
        (one > 0.0).then(|| other / one)
    })
}

pub(super) fn connections() -> Table {
    let mut rows: Vec<Row> = Persistent::ALL.into_iter().rev().flat_map(kept).collect();
    rows.push(Row::new(
        "connections.no-proxy",
        "no proxy: most at once",
        Unit::Count,
        |findings| Some(findings.outcome(Run::NoProxy)?.client_connections.open_max as f64),
    ));
    let each = |of: fn(&Outcome) -> Connections| {
        move |findings: &Findings| Some(of(findings.outcome(Run::FULL)?).requests_each())
    };
    rows.extend([
        Row::new(
            "connections.client-requests",
            "all: requests on a client connection",
            Unit::Mean,
            each(|outcome| outcome.client_connections),
        ),
        Row::new(
            "connections.server-requests",
            "all: requests on a server connection",
            Unit::Mean,
            each(|outcome| outcome.server_connections),
        ),
        Row::new(
            "connections.client-servers",
            "all: servers behind a client connection",
            Unit::Mean,
            |findings| findings.facts.as_ref()?.clients.mean(),
        ),
        Row::new(
            "connections.server-clients",
            "all: clients before a server connection",
            Unit::Mean,
            |findings| findings.facts.as_ref()?.servers.mean(),
        ),
    ]);
    Table {
        about: "By which connections persist, with a cache of data: most at once, and of all requests those that had to wait for a new \
                one. The last two lines are by the times of the trace."
            .to_owned(),
        rows,
        pictures: Vec::new(),
    }
}

fn kept(persistent: Persistent) -> [Row; 4] {
    let word = ["none", "client", "server", "all"][persistent as usize];
    let run = Run::Proxy(persistent, Cache::Data);
    let name = persistent.as_str();
    let most = |side: &str, of: fn(&Outcome) -> Connections| {
        Row::new(
            &format!("connections.{word}.{side}-max"),
            &format!("{name}: to {side}s, most at once"),
            Unit::Count,
            move |findings| Some(of(findings.outcome(run)?).open_max as f64),
        )
    };
    let new = |side: &str, of: fn(&Outcome) -> Connections| {
        Row::percent(
            &format!("connections.{word}.{side}-new"),
            &format!("{name}: to {side}s, new"),
            move |findings| {
                let outcome = findings.outcome(run)?;
                let share = of(outcome).opened as f64 / outcome.requests.count.max(1) as f64;
                Some(percent(share))
            },
        )
    };
    [
        most("client", |outcome| outcome.client_connections),
        most("server", |outcome| outcome.server_connections),
        new("client", |outcome| outcome.client_connections),
        new("server", |outcome| outcome.server_connections),
    ]
}
