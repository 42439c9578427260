//! The figures. Of 4, 7 and 9 it is known what they show; 5, 6 and 8 are what the text between them
//! speaks of.

use super::{Row, Table};
use crate::paper::drawing::{Along, Bar, Bars, Curve, Curves, Group, Mark, Picture, Stroke};
use crate::paper::proxim::experiment::{Cache, Kind, Persistent, Run};
use crate::paper::proxim::facts::{Facts, SHARE_STEPS};
use crate::paper::proxim::findings::{Findings, Of, mean, median};
use crate::paper::proxim::published::{PublishedValue, Unit};
use crate::results::spread::{Bin, Summary};

fn of_kind(findings: &[Findings], kind: Kind) -> Option<&Findings> {
    findings.iter().find(|findings| findings.kind == kind)
}

/// The key of the figure of this trace.
fn figure(kind: Kind, [modem, research]: [&'static str; 2]) -> &'static str {
    match kind {
        Kind::Modem => modem,
        Kind::Research => research,
    }
}

const DENSITY: [&str; 2] = ["time", "requests in a doubling of time, %"];

/// A density as a line: percent of all in a doubling of time.
fn density(name: &str, series: usize, stroke: Stroke, summary: &Summary) -> Curve {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut before: Option<u64> = None;
    let shown = summary
        .density
        .iter()
        .filter(|bin| bin.from_us >= DENSITY_FROM_US);
    for bin in shown {
        if before.is_some_and(|end| end < bin.from_us) {
            // nothing was in between
            points.push((before.unwrap_or(0) as f64 / 1e6, 0.0));
            points.push((bin.from_us as f64 / 1e6, 0.0));
        }
        before = Some(bin.to_us);
        points.push(point(bin));
    }
    Curve {
        name: name.to_owned(),
        series,
        stroke,
        points: smoothed(&points),
    }
}

/// Shorter times are no transfers, but packets that came together; bins are not whole there.
const DENSITY_FROM_US: u64 = 1024;

fn point(bin: &Bin) -> (f64, f64) {
    let (from, to) = (bin.from_us as f64, bin.to_us as f64);
    (
        (from * to).sqrt() / 1e6,
        100.0 * bin.share / (to / from).log2(),
    )
}

/// Each point with its neighbours, so that steps of single packets do not hide the shape.
fn smoothed(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let at = |place: usize| points[place].1;
    (0..points.len())
        .map(|place| {
            let (before, after) = (place.saturating_sub(1), (place + 1).min(points.len() - 1));
            (
                points[place].0,
                (at(before) + 2.0 * at(place) + at(after)) / 4.0,
            )
        })
        .collect()
}

fn median_marks(key: &str, kind: Kind, series: usize, ours: &Summary, what: &str) -> Vec<Mark> {
    let ours_s = ours.median_us as f64 / 1e6;
    let mut marks = vec![Mark {
        name: format!("{what}: median {ours_s:.2} s"),
        series,
        is_paper: false,
        x: ours_s,
        y: None,
    }];
    marks.extend(PublishedValue::of(key, kind).map(|paper| Mark {
        name: format!("{what}, the paper: median {:.2} s", paper.value),
        series,
        is_paper: true,
        x: paper.value,
        y: None,
    }));
    marks
}

/// A time of the trace itself.
fn of_trace(key: &str, what: &str, of: fn(&Facts) -> f64) -> Row {
    let what = format!("{what}: in the trace");
    Row::new(key, &what, Unit::Seconds, move |findings| {
        Some(of(findings.facts.as_ref()?) / 1e6)
    })
}

/// A time of the simulated trace.
fn of_validation(key: &str, what: &str, of: Of) -> Row {
    let what = format!("{what}: simulated");
    Row::new(key, &what, Unit::Seconds, move |findings| {
        Some(of(&findings.outcome(Run::Validation)?.latency) / 1e6)
    })
}

pub(super) fn validation(findings: &[Findings]) -> Table {
    #[rustfmt::skip]
    let rows = vec![
        of_trace("validation.transfer-trace", "transfer, median", |facts| facts.transfer.median_us as f64),
        of_validation("validation.transfer", "transfer, median", |latency| latency.transfer.median_us as f64),
        of_trace("validation.total-trace", "latency, median", |facts| facts.total.median_us as f64),
        of_validation("validation.total", "latency, median", median),
        of_trace("validation.total-mean-trace", "latency, mean", |facts| facts.total.mean_us),
        of_validation("validation.total-mean", "latency, mean", mean),
    ];
    let pictures = findings.iter().filter_map(validation_picture);
    Table {
        about: "Requests of the trace without a proxy, on connections as they were there, through the simulator: PROXIM's own validation. \
                Diamonds on the axis are medians."
            .to_owned(),
        rows,
        pictures: pictures.collect(),
    }
}

/// Lines of the picture: key, name, and whether it is simulated.
const VALIDATED: [(&str, &str, Stroke); 4] = [
    ("validation.total", "latency, simulated", Stroke::Solid),
    ("validation.total-trace", "latency, trace", Stroke::Dashed),
    ("validation.transfer", "transfer, simulated", Stroke::Solid),
    (
        "validation.transfer-trace",
        "transfer, trace",
        Stroke::Dashed,
    ),
];

fn validation_picture(findings: &Findings) -> Option<Picture> {
    let facts = findings.facts.as_ref()?;
    let latency = &findings.outcome(Run::Validation)?.latency;
    let summaries = [
        &latency.total,
        &facts.total,
        &latency.transfer,
        &facts.transfer,
    ];
    let all = || VALIDATED.into_iter().zip(summaries).enumerate();
    Some(Picture::Curves(Curves {
        title: format!("Without a proxy, {} trace", findings.kind.as_str()),
        note: format!(
            "Simulated (solid) beside the trace (dashed). Median latency: {:.2} s simulated, {:.2} s in the trace.",
            latency.total.median_us as f64 / 1e6,
            facts.total.median_us as f64 / 1e6,
        ),
        along: Along::Time,
        labels: DENSITY.map(str::to_owned),
        lines: all()
            .map(|(place, ((_, name, stroke), summary))| density(name, place / 2, stroke, summary))
            .collect(),
        marks: all()
            .flat_map(|(place, ((key, name, _), summary))| {
                median_marks(key, findings.kind, place / 2, summary, name)
            })
            .collect(),
    }))
}

pub(super) fn setup(findings: &[Findings]) -> Table {
    let half = SHARE_STEPS / 2;
    let rows = vec![
        Row::new("setup.mean", "set-up, mean", Unit::Seconds, |findings| {
            Some(findings.facts.as_ref()?.setup.mean_us / 1e6)
        }),
        Row::percent(
            "setup.half",
            "documents with half of their latency or more in set-up",
            move |findings| Some(100.0 * findings.facts.as_ref()?.setup_shares[half]),
        ),
    ];
    let seen = || findings.iter().filter(|findings| findings.facts.is_some());
    let lines = seen().enumerate().filter_map(|(series, findings)| {
        let shares = findings.facts.as_ref()?.setup_shares.iter().enumerate();
        Some(Curve {
            name: findings.kind.as_str().to_owned(),
            series,
            stroke: Stroke::Solid,
            points: shares
                .map(|(at, share)| (at as f64, 100.0 * share))
                .collect(),
        })
    });
    let marks = seen().enumerate().filter_map(|(series, findings)| {
        let paper = PublishedValue::of("setup.half", findings.kind)?;
        Some(Mark {
            name: format!("{}, the paper: {} %", findings.kind.as_str(), paper.value),
            series,
            is_paper: true,
            x: 50.0,
            y: Some(paper.value),
        })
    });
    let picture = Picture::Curves(Curves {
        title: "Connection set-up in the latency".to_owned(),
        note: "How many documents that needed a new connection spent at least this share of their latency on setting it up.".to_owned(),
        along: Along::Percent,
        labels: ["share of set-up in the latency, at least".to_owned(), "documents, %".to_owned()],
        lines: lines.collect(),
        marks: marks.collect(),
    });
    let is_any = seen().next().is_some();
    Table {
        about: "What keeping connections could spare at best. Counted in the trace, not simulated."
            .to_owned(),
        rows,
        pictures: is_any.then_some(picture).into_iter().collect(),
    }
}

/// How the runs of the curves are called.
const CURVES: [(&str, &str); 4] = [
    ("none", "no proxy"),
    ("data", "data cached"),
    ("connections", "connections cached"),
    ("both", "both cached"),
];

pub(super) fn spread(findings: &[Findings], kind: Kind) -> Table {
    let figure = figure(kind, ["figure-6", "figure-8"]);
    let mut rows = Vec::new();
    for ((word, name), run) in CURVES.into_iter().zip(Run::CURVES) {
        for (which, of) in [("mean", mean as Of), ("median", median)] {
            rows.push(Row::new(
                &format!("{figure}.{word}-{which}"),
                &format!("{name}: {which}"),
                Unit::Seconds,
                move |findings| {
                    let outcome = findings.outcome(run).filter(|_| findings.kind == kind)?;
                    Some(of(&outcome.latency) / 1e6)
                },
            ));
        }
    }
    let picture = of_kind(findings, kind).map(|findings| {
        let seen = CURVES.into_iter().zip(Run::CURVES).enumerate();
        let outcomes = || {
            seen.clone().filter_map(|(series, ((_, name), run))| {
                Some((series, name, &findings.outcome(run)?.latency.total))
            })
        };
        let medians: Vec<String> = outcomes()
            .map(|(_, name, total)| format!("{name} {:.2} s", total.median_us as f64 / 1e6))
            .collect();
        let stroke = |series: usize| [Stroke::Dashed, Stroke::Solid][usize::from(series > 0)];
        Picture::Curves(Curves {
            title: format!("Latency, {} trace", kind.as_str()),
            note: format!("Medians, on the axis: {}.", medians.join(", ")),
            along: Along::Time,
            labels: DENSITY.map(str::to_owned),
            lines: outcomes()
                .map(|(series, name, total)| density(name, series, stroke(series), total))
                .collect(),
            marks: outcomes()
                .flat_map(|(series, name, total)| median_marks("", kind, series, total, name))
                .collect(),
        })
    });
    Table {
        about: "How long requests take from the first packet to the last byte, with and without what a proxy keeps. The paper's curves are \
                not known as numbers."
            .to_owned(),
        rows,
        pictures: picture.into_iter().collect(),
    }
}

/// The paper's number of a bar, if it says one.
fn key_of(persistent: Persistent, cache: Cache) -> Option<&'static str> {
    match (persistent, cache) {
        (Persistent::None, Cache::Data) => Some("latency.data"),
        (Persistent::None, Cache::DataAndCookies) => Some("latency.data-cookies"),
        (Persistent::All, Cache::None) => Some("latency.connections"),
        (Persistent::All, Cache::Data) => Some("latency.both"),
        (Persistent::All, Cache::DataAndCookies) => Some("latency.both-cookies"),
        _ => None,
    }
}

pub(super) fn bars(findings: &[Findings], kind: Kind) -> Table {
    let figure = figure(kind, ["figure-7", "figure-9"]);
    let of_no_proxy = move |findings: &Findings, run: Run| {
        (findings.kind == kind).then_some(())?;
        Some(100.0 - findings.gain(run, Run::NoProxy, mean)?)
    };
    let mut rows = vec![Row::new(
        &format!("{figure}.no-proxy"),
        "no proxy: mean latency",
        Unit::Seconds,
        move |findings| {
            let outcome = findings
                .outcome(Run::NoProxy)
                .filter(|_| findings.kind == kind)?;
            Some(mean(&outcome.latency) / 1e6)
        },
    )];
    let mut groups = Vec::new();
    for persistent in Persistent::ALL {
        let mut bars = Vec::new();
        for (series, cache) in Cache::ALL.into_iter().enumerate() {
            let run = Run::Proxy(persistent, cache);
            let what = format!("{} persistent, {}", persistent.as_str(), cache.as_str());
            let key = format!("{figure}.{}.{}", persistent.as_str(), cache.as_str());
            rows.push(Row::percent(
                &key.replace([' ', ','], "-"),
                &what,
                move |findings| of_no_proxy(findings, run),
            ));
            let value = of_kind(findings, kind).and_then(|findings| of_no_proxy(findings, run));
            let paper = key_of(persistent, cache).and_then(|key| PublishedValue::of(key, kind));
            bars.extend(value.map(|value| Bar {
                name: cache.as_str().to_owned(),
                series,
                value,
                paper: paper.map(|paper| 100.0 - paper.value),
            }));
        }
        if !bars.is_empty() {
            groups.push(Group {
                name: format!("{} persistent", persistent.as_str()),
                bars,
            });
        }
    }
    let picture = Picture::Bars(Bars {
        title: format!("Mean latency, {} trace", kind.as_str()),
        note: "Beside no proxy (100 %), by which connections persist and what is cached. Shorter is faster.".to_owned(),
        label: "mean latency, % of no proxy".to_owned(),
        reference: 100.0,
        groups,
    });
    let is_any = of_kind(findings, kind).is_some();
    Table {
        about: "The paper gives no numbers for its bars; marks are from its text, where they stand in the table of gains.".to_owned(),
        rows,
        pictures: is_any.then_some(picture).into_iter().collect(),
    }
}
