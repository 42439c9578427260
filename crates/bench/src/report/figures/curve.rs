//! Percentile curves, as HDR histograms are drawn: the share of requests on an axis stretched
//! toward one, so that the slow ones are seen.

use crate::report::comparison::{Comparison, ProxyRuns, result};
use crate::report::modem::BEHIND_LINKS;
use weir_measure::float;
use weir_measure::record::{Histogram, Record};
use weir_report::{Axis, Figure, Line, Point, Stroke, Unit, nines, ys};

/// Points of a curve; more would not be seen.
const POINTS_MAX: f64 = 120.0;

/// One of all responses, one of hits alone.
pub(in crate::report) fn figures(comparison: &Comparison<'_>) -> Vec<Figure> {
    let all = figure(
        comparison,
        "percentiles",
        "Response time by percentile",
        |record| &result(record).response_time.all,
    );
    let hits = figure(
        comparison,
        "percentiles-hits",
        "Response time of hits by percentile",
        |record| &result(record).response_time.hit,
    );
    vec![all, hits]
}

fn figure(
    comparison: &Comparison<'_>,
    name: &str,
    title: &str,
    of: impl Fn(&Record) -> &Histogram,
) -> Figure {
    let chosen = comparison.chosen();
    let mut lines: Vec<Line> = chosen
        .iter()
        .map(|(proxy, run)| line(proxy, of(&run.record)))
        .collect();
    // clients with links of their own, beside the same ones without
    let linked = comparison.proxies.iter().filter_map(|proxy| {
        let run = proxy.at(BEHIND_LINKS, None)?;
        Some((proxy, run))
    });
    if !comparison.kind().has_link {
        lines.extend(linked.map(|(proxy, run)| Line {
            name: format!("{}, slow link", proxy.label),
            stroke: Stroke::Dashed,
            ..line(proxy, of(&run.record))
        }));
    }
    lines.retain(|line| !line.points.is_empty());
    let phase = chosen
        .first()
        .map_or("", |(_, run)| result(&run.record).name.as_str());
    let most = chosen.iter().map(|(_, run)| of(&run.record).count).max();
    let note = format!("In {phase}. At 99 %: how long the fastest 99 of 100 took at most.");
    let x = Axis::percentiles("share of requests", most.unwrap_or_default());
    let y = Axis::logarithmic("response time", Unit::Time, ys(&lines));
    Figure::new(name, title, &note, x, y, lines)
}

fn line(proxy: &ProxyRuns<'_>, histogram: &Histogram) -> Line {
    proxy.line(Stroke::Solid, false, curve(histogram))
}

/// Up to the last but one of the values: what the slowest of all took belongs to no share.
fn curve(histogram: &Histogram) -> Vec<Point> {
    if histogram.count < 2 {
        return Vec::new();
    }
    let most = nines(1.0 - 1.0 / float(histogram.count));
    let places = (0_u32..=120).map(|index| f64::from(index) / POINTS_MAX * most);
    let points = places.filter_map(|place| {
        let quantile = 1.0 - 10_f64.powf(-place);
        let value = histogram.quantile_us(quantile)?;
        Some(Point::new(place, float(value)))
    });
    points.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_curve_extends_to_the_slowest_requests() {
        let histogram = Histogram {
            count: 1000,
            sum: 0,
            min: 10,
            max: 5000,
            buckets: vec![(10, 990), (5000, 10)],
            ..Histogram::default()
        };
        let curve = curve(&histogram);
        let (first, last) = (curve.first().copied(), curve.last().copied());
        assert_eq!(first, Some(Point::new(0.0, 10.0)));
        assert!(last.is_some_and(|point| (point.x - 3.0).abs() < 1e-9 && point.y > 4999.0));
        let at_99 = curve.iter().rfind(|point| point.x <= 1.99);
        assert_eq!(at_99.map(|point| point.y), Some(10.0));
    }

    #[test]
    fn empty_histogram_has_no_curve() {
        assert_eq!(curve(&Histogram::default()), []);
    }
}
