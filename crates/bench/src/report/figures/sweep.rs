//! Figures against the number of clients: 2 to 11 of the Wisconsin Proxy Benchmark's paper, for any
//! proxies.
//!
//! The paper has one plot of response times for each proxy (2, 5, 7, 10), with and without caching,
//! by phase; one of hit ratios for each (3, 6, 8, 11), and one of errors for two of them (4, 9).
//! Here the plots of response times share their scale, and the others hold all proxies, so that
//! they can be compared.

use crate::report::comparison::{
    CACHING, Comparison, ProxyRuns, RunKind, UNCACHED, distinct, mean_us, places, result, together,
};
use crate::report::median_range::MedianRange;
use crate::report::source::RecordFile;
use crate::report::{metric, paper};
use weir_measure::float;
use weir_measure::record::{Phase, Record};
use weir_report::palette;
use weir_report::{Axis, Figure, Line, Point, Stroke, Unit, ys};

/// All figures of a sweep; none if it is no sweep.
pub(in crate::report) fn figures(comparison: &Comparison<'_>) -> Vec<Figure> {
    if !comparison.is_sweep() || super::load::is_load(comparison) {
        return Vec::new();
    }
    let mut figures: Vec<Figure> = compared(comparison).into();
    figures.extend(each(comparison));
    figures.extend(ratios(comparison));
    figures.push(errors(comparison));
    figures.push(cpu(comparison));
    figures
}

/// The mean response time of the result phase, all proxies in one figure; with and without caching
/// on one scale.
fn compared(comparison: &Comparison<'_>) -> [Figure; 2] {
    let phase = comparison
        .runs()
        .next()
        .map_or_else(String::new, |run| result(&run.record).name.clone());
    let with = across(comparison, CACHING, Stroke::Solid, mean_us);
    let without = across(comparison, UNCACHED, Stroke::Dashed, mean_us);
    let y = Axis::linear(
        "mean response time",
        Unit::Time,
        ys(&with).chain(ys(&without)),
    );
    [
        figure(
            comparison,
            "time-caching",
            "Mean response time with caching",
            &format!("In {phase}."),
            y.clone(),
            with,
        ),
        figure(
            comparison,
            "time-no-cache",
            "Mean response time without caching",
            &format!("In {phase}, on the same scale."),
            y,
            without,
        ),
    ]
}

/// A plot for each proxy, all on one scale.
fn each(comparison: &Comparison<'_>) -> Vec<Figure> {
    let lines: Vec<(&ProxyRuns<'_>, Vec<Line>)> = comparison
        .proxies
        .iter()
        .map(|proxy| (proxy, by_phase(proxy)))
        .collect();
    let y = Axis::linear(
        "mean response time",
        Unit::Time,
        lines.iter().flat_map(|(_, lines)| ys(lines)),
    );
    lines
        .into_iter()
        .map(|(proxy, lines)| {
            figure(
                comparison,
                &format!("time-{}", crate::report::file_name(proxy.label)),
                &format!("Mean response time of {}", proxy.label),
                &format!(
                    "By phase, with caching (coloured) and without (grey).{}",
                    paper::beside_latency(comparison, proxy.label)
                ),
                y.clone(),
                lines,
            )
        })
        .collect()
}

fn by_phase(proxy: &ProxyRuns<'_>) -> Vec<Line> {
    let phases = proxy.runs.iter().flat_map(|run| run.record.measured());
    let names = distinct(phases.map(|phase| phase.name.as_str()));
    let last = names.len().saturating_sub(1);
    let mut lines = Vec::new();
    for (which, colour) in [
        (CACHING, palette::series(proxy.colour)),
        (UNCACHED, palette::BESIDE),
    ] {
        for (index, name) in names.iter().enumerate() {
            let mean = |record: &Record| {
                let phase: &Phase = record.phase(name)?;
                phase.response_time.all.mean_us()
            };
            lines.push(Line {
                name: if which.is_caching {
                    (*name).to_owned()
                } else {
                    format!("{name}, no cache")
                },
                colour,
                stroke: if index == last {
                    Stroke::Solid
                } else {
                    Stroke::Dotted
                },
                has_marks: true,
                points: points(proxy, which, mean),
            });
        }
    }
    lines.retain(|line| !line.points.is_empty());
    lines
}

fn ratios(comparison: &Comparison<'_>) -> [Figure; 2] {
    let one = |name: &str,
               title: &str,
               note: &str,
               of: fn(&Phase) -> Option<f64>,
               offered: fn(&Phase) -> Option<f64>| {
        let mut lines = across(comparison, CACHING, Stroke::Solid, |record| {
            of(&together(record))
        });
        lines.extend(offered_line(comparison, offered));
        let y = Axis::linear(&title.to_lowercase(), Unit::Share, ys(&lines));
        figure(comparison, name, title, note, y, lines)
    };
    [
        one(
            "hit-ratio",
            "Hit ratio",
            &format!(
                "Requests that the origin was spared, of all requests of the measured phases.{}",
                paper::beside_figure(comparison, paper::HIT_RATIOS)
            ),
            Phase::hit_ratio,
            Phase::offered_hit_ratio,
        ),
        one(
            "byte-hit-ratio",
            "Byte hit ratio",
            "Bytes that the origin was spared, of all bytes of the measured phases.",
            Phase::byte_hit_ratio,
            Phase::offered_byte_hit_ratio,
        ),
    ]
}

/// What the workload offers: one line, since all proxies get the same requests.
fn offered_line(comparison: &Comparison<'_>, of: fn(&Phase) -> Option<f64>) -> Option<Line> {
    let lines = across(comparison, CACHING, Stroke::Dashed, |record| {
        of(&together(record))
    });
    let line = lines.into_iter().max_by_key(|line| line.points.len())?;
    Some(Line {
        name: "offered".to_owned(),
        colour: palette::BESIDE,
        ..line
    })
}

/// Figures 4 and 9; left out where nothing failed, which the table says too.
fn errors(comparison: &Comparison<'_>) -> Figure {
    let failed = |record: &Record| Some(float(together(record).client.error_count()));
    let mut lines = across(comparison, CACHING, Stroke::Solid, failed);
    for line in across(comparison, UNCACHED, Stroke::Dashed, failed) {
        lines.push(Line {
            name: format!("{}, no cache", line.name),
            ..line
        });
    }
    lines.retain(|line| line.points.iter().any(|point| point.y > 0.0));
    let y = Axis::linear("failed requests", Unit::Count, ys(&lines));
    let note = format!(
        "Proxies without a line failed no request.{}",
        paper::beside_figure(comparison, paper::ERRORS)
    );
    figure(comparison, "errors", "Errors", &note, y, lines)
}

fn cpu(comparison: &Comparison<'_>) -> Figure {
    let used = |record: &Record| metric::mean_used(record, |second| second.cpu_share);
    let lines = across(comparison, CACHING, Stroke::Solid, used);
    let y = Axis::linear("CPU, share of one core", Unit::Share, ys(&lines));
    figure(
        comparison,
        "cpu",
        "CPU time of the proxy",
        "User and system time of its process tree, with caching.",
        y,
        lines,
    )
}

/// A line for each proxy.
pub(super) fn across(
    comparison: &Comparison<'_>,
    which: RunKind,
    stroke: Stroke,
    of: impl Fn(&Record) -> Option<f64> + Copy,
) -> Vec<Line> {
    let lines = comparison.proxies.iter();
    let lines = lines.map(|proxy| proxy.line(stroke, true, points(proxy, which, of)));
    lines.filter(|line| !line.points.is_empty()).collect()
}

fn points(
    proxy: &ProxyRuns<'_>,
    which: RunKind,
    of: impl Fn(&Record) -> Option<f64>,
) -> Vec<Point> {
    let at = |place: f64| -> Option<Point> {
        let run: &RecordFile = proxy.at(which, Some(place))?;
        let repetitions = proxy.repetitions(&run.record).into_iter();
        let repeated = MedianRange::of(repetitions.filter_map(|run| of(&run.record)))?;
        Some(Point {
            x: place,
            y: repeated.median,
            is_valid: run.record.is_valid,
            range: repeated.range,
        })
    };
    places(proxy.of(which)).into_iter().filter_map(at).collect()
}

fn figure(
    comparison: &Comparison<'_>,
    name: &str,
    title: &str,
    note: &str,
    y: Axis,
    lines: Vec<Line>,
) -> Figure {
    let x = Axis::at("clients", &comparison.places());
    Figure::new(name, title, note, x, y, lines)
}
