//! What happened second by second: rate, hit ratio, slow responses, connections, and what the proxy
//! used.

use crate::report::comparison::{Comparison, clients};
use crate::report::source::RecordFile;
use weir_measure::float;
use weir_measure::record::{Record, Second, UsageSecond};
use weir_report::{Axis, Figure, Line, Point, Stroke, Unit, digits, palette, xs, ys};

/// Points of a line; seconds of longer runs are put together.
const POINTS_MAX: usize = 240;

/// How some seconds become one point.
#[derive(Clone, Copy)]
enum Fold {
    Mean,
    Most,
}

/// What the clients saw.
pub(in crate::report) fn clients_side(comparison: &Comparison<'_>) -> Vec<Figure> {
    let of = |read: fn(&Second) -> Option<f64>, fold| {
        lines(comparison, move |record| {
            series(&record.series, |second| second.at_s, read, fold)
        })
    };
    let mut rates = of(|second| Some(float(second.responses)), Fold::Mean);
    rates.extend(offered(comparison));
    vec![
        figure(
            comparison,
            "rate",
            "Responses a second",
            "responses a second",
            Unit::Count,
            rates,
        ),
        figure(
            comparison,
            "hits-over-time",
            "Hits over time",
            "share of responses that were hits",
            Unit::Share,
            of(
                |second| {
                    (second.responses > 0).then(|| float(second.hits) / float(second.responses))
                },
                Fold::Mean,
            ),
        ),
        logarithmic(
            comparison,
            "p99-over-time",
            "99 % answered within",
            of(
                |second| (second.p99_us > 0).then(|| float(second.p99_us)),
                Fold::Most,
            ),
        ),
        figure(
            comparison,
            "connections",
            "Connections of the clients",
            "connections open",
            Unit::Count,
            of(|second| Some(float(second.connections_open)), Fold::Mean),
        ),
    ]
}

/// What the proxy's processes used.
pub(in crate::report) fn usage(comparison: &Comparison<'_>) -> Vec<Figure> {
    let of = |read: fn(&UsageSecond) -> f64, fold| {
        lines(comparison, move |record| {
            let read = |second: &UsageSecond| Some(read(second));
            series(&record.usage, |second| second.at_s, read, fold)
        })
    };
    let mut figures = vec![
        figure(
            comparison,
            "cpu-over-time",
            "CPU time of the proxy",
            "CPU, share of one core",
            Unit::Share,
            of(|second| second.cpu_share, Fold::Mean),
        ),
        figure(
            comparison,
            "memory-over-time",
            "Memory of the proxy",
            "resident memory",
            Unit::Bytes,
            of(|second| float(second.rss_bytes), Fold::Most),
        ),
        figure(
            comparison,
            "disk-over-time",
            "Disk writes of the proxy",
            "written",
            Unit::BytesPerSecond,
            of(|second| float(second.written_bytes), Fold::Mean),
        ),
        figure(
            comparison,
            "disk-reads-over-time",
            "Disk reads of the proxy",
            "read",
            Unit::BytesPerSecond,
            of(|second| float(second.read_bytes), Fold::Mean),
        ),
    ];
    // a flat line at zero says less than its absence
    figures.retain(|figure| ys(&figure.lines).any(|value| value > 0.0));
    figures
}

/// The load of an open loop's schedule, by phase; nothing for a closed loop, which has none.
fn offered(comparison: &Comparison<'_>) -> Option<Line> {
    let chosen = comparison.chosen();
    let (_, run) = chosen.first()?;
    let record = &run.record;
    if clients(record).is_some() && !crate::report::is_open_loop(record) {
        return None;
    }
    let mut at = 0.0;
    let mut points = Vec::new();
    for phase in record.phases.iter().filter(|phase| phase.seconds > 0.0) {
        let rate = float(phase.offered_requests) / phase.seconds;
        points.push(Point::new(at, rate));
        at += phase.seconds;
        points.push(Point::new(at, rate));
    }
    Some(Line {
        name: "offered".to_owned(),
        colour: palette::BESIDE,
        stroke: Stroke::Dashed,
        has_marks: false,
        points,
    })
}

fn lines(comparison: &Comparison<'_>, of: impl Fn(&Record) -> Vec<Point>) -> Vec<Line> {
    let chosen = comparison.chosen().into_iter();
    let lines = chosen.map(|(proxy, run)| proxy.line(Stroke::Solid, false, of(&run.record)));
    lines.filter(|line| !line.points.is_empty()).collect()
}

fn series<S>(
    seconds: &[S],
    at: impl Fn(&S) -> f64,
    of: impl Fn(&S) -> Option<f64>,
    fold: Fold,
) -> Vec<Point> {
    let together = seconds.len().div_ceil(POINTS_MAX).max(1);
    let point = |some: &[S]| {
        let first = some.first()?;
        let values: Vec<f64> = some.iter().filter_map(&of).collect();
        let count = u32::try_from(values.len())
            .ok()
            .filter(|count| *count > 0)?;
        let value = match fold {
            Fold::Mean => values.iter().sum::<f64>() / f64::from(count),
            Fold::Most => values.iter().copied().fold(0.0, f64::max),
        };
        Some(Point::new(at(first), value))
    };
    seconds.chunks(together).filter_map(point).collect()
}

fn figure(
    comparison: &Comparison<'_>,
    name: &str,
    title: &str,
    what: &str,
    unit: Unit,
    lines: Vec<Line>,
) -> Figure {
    let x = Axis::along("seconds since the start", xs(&lines));
    let y = Axis::linear(what, unit, ys(&lines));
    Figure::new(name, title, &note(comparison), x, y, lines)
}

fn logarithmic(comparison: &Comparison<'_>, name: &str, title: &str, lines: Vec<Line>) -> Figure {
    Figure {
        y: Axis::logarithmic("99th percentile of each second", Unit::Time, ys(&lines)),
        ..figure(comparison, name, title, "", Unit::Time, lines)
    }
}

/// Which runs these are, where there are several of each proxy.
fn note(comparison: &Comparison<'_>) -> String {
    if !comparison.is_sweep() {
        return String::new();
    }
    let chosen: Vec<&RecordFile> = comparison
        .chosen()
        .into_iter()
        .map(|(_, run)| run)
        .collect();
    let number = chosen.first().and_then(|run| clients(&run.record));
    number.map_or_else(String::new, |number| {
        format!("The runs with {} clients.", digits(number))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downsampled_series_keeps_its_slowest_second() {
        let seconds: Vec<(f64, f64)> = (0..1000)
            .map(|at| (f64::from(at), if at == 777 { 9.0 } else { 1.0 }))
            .collect();
        let most = series(&seconds, |s| s.0, |s| Some(s.1), Fold::Most);
        assert!(most.len() <= POINTS_MAX, "{}", most.len());
        assert_eq!(most.iter().filter(|point| point.y > 8.0).count(), 1);
        let mean = series(&seconds, |s| s.0, |s| Some(s.1), Fold::Mean);
        assert!(mean.iter().all(|point| point.y < 3.0));
    }

    #[test]
    fn second_without_a_response_has_no_point() {
        let seconds = [(0.0, None), (1.0, Some(5.0))];
        let points = series(&seconds, |s| s.0, |s| s.1, Fold::Most);
        assert_eq!(points, [Point::new(1.0, 5.0)]);
    }
}
