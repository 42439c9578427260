//! Curves as a picture.
//!
//! The size of the cache goes along in decades, the miss ratio up from nothing. Lines have their
//! names at their ends; a sample's error is a band around its line.

use super::counts::float;
use super::outcome::{Curve, CurvePoint, Curves, Method};
use weir_report::{Axis, Colour, Figure, Line, Point, Stroke, palette};

/// What goes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordinate {
    /// Requests that miss.
    Requests,
    /// Bytes that miss.
    Bytes,
}

impl Ordinate {
    const fn label(self) -> &'static str {
        match self {
            Self::Requests => "miss ratio",
            Self::Bytes => "byte miss ratio",
        }
    }

    const fn of(self, point: &CurvePoint) -> (f64, Option<f64>) {
        match self {
            Self::Requests => (point.miss_ratio, point.miss_ratio_error),
            Self::Bytes => (point.byte_miss_ratio, point.byte_miss_ratio_error),
        }
    }

    const fn least(self, curves: &Curves) -> f64 {
        match self {
            Self::Requests => curves.least_miss_ratio,
            Self::Bytes => curves.least_byte_miss_ratio,
        }
    }
}

/// The picture. Without points there is one of empty axes.
#[must_use]
pub fn svg(curves: &Curves, ordinate: Ordinate) -> String {
    weir_report::file(&figure(curves, ordinate))
}

/// The picture as lines over two axes.
pub(super) fn figure(curves: &Curves, ordinate: Ordinate) -> Figure {
    let all = curves.curves.iter().enumerate();
    let mut lines: Vec<Line> = all
        .map(|(index, curve)| Line {
            name: curve.name.clone(),
            colour: colour(curve, index),
            stroke: Stroke::Solid,
            has_marks: false,
            points: curve.points.iter().map(|at| point(at, ordinate)).collect(),
        })
        .collect();
    let x = sizes(curves);
    let least = ordinate.least(curves);
    lines.push(Line {
        name: "never evicts".to_owned(),
        colour: palette::BESIDE,
        stroke: Stroke::Dashed,
        has_marks: false,
        points: [x.from, x.to]
            .map(|at| Point::new(10_f64.powf(at), least))
            .into(),
    });
    let ticks = (0..=5).map(|fifth| (f64::from(fifth) / 5.0, format!("{} %", fifth * 20)));
    Figure {
        name: String::new(),
        title: ordinate.label().to_owned(),
        note: String::new(),
        x,
        y: Axis::with_ticks(ordinate.label(), (0.0, 1.0), ticks.collect(), false),
        lines,
    }
}

fn sizes(curves: &Curves) -> Axis {
    let points = curves.curves.iter().flat_map(|curve| &curve.points);
    let places = points.map(|point| float(point.capacity_bytes.max(1)).log10());
    let (from, to) = places.fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), at| {
        (from.min(at), to.max(at))
    });
    let (from, to) = match to - from {
        room if room > 0.0 => (from, to),
        none if none.is_finite() => (from - 0.5, to + 0.5),
        _ => (0.0, 1.0),
    };
    let what = if curves.is_by_count {
        "responses in the cache"
    } else {
        "size of the cache"
    };
    let ticks = ticks(from, to, curves.is_by_count);
    Axis::with_ticks(what, (from, to), ticks, true)
}

fn point(at: &CurvePoint, ordinate: Ordinate) -> Point {
    let (value, error) = ordinate.of(at);
    let edge = |error: f64| (value + error).clamp(0.0, 1.0);
    Point {
        range: error.map(|error| (edge(-error), edge(error))),
        ..Point::new(float(at.capacity_bytes.max(1)), value)
    }
}

fn colour(curve: &Curve, index: usize) -> Colour {
    match curve.method {
        Method::Optimum | Method::Bound => palette::INK,
        _ => palette::series(index),
    }
}

/// Powers of 1024, or of ten, and few enough to be read.
fn ticks(from: f64, to: f64, is_by_count: bool) -> Vec<(f64, String)> {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut all: Vec<(f64, String)> = Vec::new();
    if is_by_count {
        for power in 0..16_u32 {
            all.push((f64::from(power), format!("10^{power}")));
        }
    } else {
        for (thousands, unit) in (0..).zip(UNITS) {
            for count in [1, 4, 16, 64, 256] {
                let at = f64::from(count).log10() + f64::from(thousands) * 1024_f64.log10();
                all.push((at, format!("{count} {unit}")));
            }
        }
    }
    all.retain(|(at, _)| *at >= from && *at <= to);
    let every = all.len().div_ceil(8).max(1);
    all.into_iter().step_by(every).collect()
}
