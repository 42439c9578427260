//! Curves as a picture: SVG, by `plotters`.
//!
//! The size of the cache goes along in decades, the miss ratio up from nothing. Lines have their
//! names at their ends; a sample's error is a band around its line.

use super::counts::float;
use super::outcome::{Curve, CurvePoint, Curves, Method};
use plotters::backend::SVGBackend;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::types::RangedCoordf64;
use plotters::element::{PathElement, Polygon, Text};
use plotters::prelude::{Cartesian2d, IntoDrawingArea};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, RGBColor, TextStyle};

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

/// Width and height, pixels.
const SIZE: (u32, u32) = (760, 420);

/// Okabe and Ito's (2008), which people with any colour vision tell apart.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 140, 105),
    RGBColor(184, 84, 147),
    RGBColor(196, 138, 0),
    RGBColor(90, 60, 160),
];
const INK: RGBColor = RGBColor(28, 32, 38);
const MUTED: RGBColor = RGBColor(92, 100, 110);
const GRID: RGBColor = RGBColor(225, 229, 234);
const GROUND: RGBColor = RGBColor(255, 255, 254);

/// Room around the plot: above, right (names of lines), below, left; pixels.
const MARGINS: (i32, i32, i32, i32) = (34, 150, 44, 56);

/// Between the names of lines, pixels.
const NAME_GAP: i32 = 15;

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The picture. Without points there is a picture that says so.
#[must_use]
pub fn svg(curves: &Curves, ordinate: Ordinate) -> String {
    let mut text = String::new();
    let drawn = draw(curves, ordinate, &mut text);
    match drawn {
        Ok(()) => text,
        // drawing into a string fails only where plotters would be wrong about itself
        Err(error) => format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"60\"><text x=\"10\" y=\"30\">cannot be drawn: {error:?}</text></svg>"
        ),
    }
}

fn draw(curves: &Curves, ordinate: Ordinate, text: &mut String) -> Outcome {
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&GROUND)?;
    let sizes = || {
        let points = curves.curves.iter().flat_map(|curve| &curve.points);
        points.map(|point| log10(point.capacity_bytes))
    };
    let (from, to) = sizes().fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), at| {
        (from.min(at), to.max(at))
    });
    if from > to {
        let style = style(INK, HPos::Left, VPos::Top);
        root.draw(&Text::new("no size and no curve", (20, 20), style))?;
        root.present()?;
        return Ok(());
    }
    let room = if to > from { 0.0 } else { 0.5 };
    let (top, right, bottom, left) = MARGINS;
    let mut chart = ChartBuilder::on(&root)
        .margin_top(top)
        .margin_right(right)
        .margin_bottom(bottom)
        .margin_left(left)
        .build_cartesian_2d(from - room..to + room, 0.0..1.0)?;
    axes(&chart, &root, (from - room, to + room), curves, ordinate)?;
    for (index, curve) in curves.curves.iter().enumerate() {
        line(&mut chart, curve, ordinate, colour(curve, index))?;
    }
    names(&chart, &root, curves, ordinate, to + room)?;
    root.present()?;
    Ok(())
}

type Root<'b> = plotters::drawing::DrawingArea<SVGBackend<'b>, plotters::coord::Shift>;

fn axes(
    chart: &Chart<'_, '_>,
    root: &Root<'_>,
    (from, to): (f64, f64),
    curves: &Curves,
    ordinate: Ordinate,
) -> Outcome {
    let place = |x: f64, y: f64| chart.backend_coord(&(x, y));
    for fifth in 0..=5 {
        let value = f64::from(fifth) / 5.0;
        let ends = vec![place(from, value), place(to, value)];
        let (x, y) = ends[0];
        root.draw(&PathElement::new(ends, GRID))?;
        let label = format!("{:.0} %", value * 100.0);
        let style = style(MUTED, HPos::Right, VPos::Center);
        root.draw(&Text::new(label, (x - 6, y), style))?;
    }
    for (at, label) in ticks(from, to, curves.is_by_count) {
        let (x, y) = place(at, 0.0);
        root.draw(&PathElement::new(vec![(x, y), (x, y + 4)], MUTED))?;
        let style = style(MUTED, HPos::Center, VPos::Top);
        root.draw(&Text::new(label, (x, y + 7), style))?;
    }
    let least = ordinate.least(curves);
    let ends = vec![place(from, least), place(to, least)];
    root.draw(&PathElement::new(ends, MUTED.mix(0.5)))?;
    let style = |anchor| style(INK, anchor, VPos::Top);
    let (x, _) = place(from, 1.0);
    root.draw(&Text::new(ordinate.label(), (x - 44, 8), style(HPos::Left)))?;
    let what = if curves.is_by_count {
        "responses in the cache"
    } else {
        "size of the cache"
    };
    let (x, y) = place(to, 0.0);
    root.draw(&Text::new(what, (x, y + 24), style(HPos::Right)))?;
    Ok(())
}

fn line(chart: &mut Chart<'_, '_>, curve: &Curve, ordinate: Ordinate, colour: RGBColor) -> Outcome {
    let place = |point: &CurvePoint| (log10(point.capacity_bytes), ordinate.of(point).0);
    let edge = |point: &CurvePoint, side: f64| {
        let (value, error) = ordinate.of(point);
        let at = (value + side * error.unwrap_or(0.0)).clamp(0.0, 1.0);
        (log10(point.capacity_bytes), at)
    };
    let has_error = curve
        .points
        .iter()
        .any(|point| ordinate.of(point).1.is_some());
    if has_error && curve.points.len() > 1 {
        let upper = curve.points.iter().map(|point| edge(point, 1.0));
        let lower = curve.points.iter().rev().map(|point| edge(point, -1.0));
        let band: Vec<(f64, f64)> = upper.chain(lower).collect();
        chart.draw_series([Polygon::new(band, colour.mix(0.15))])?;
    }
    let path: Vec<(f64, f64)> = match curve.points.as_slice() {
        // a lonely point would not be seen
        [one] => {
            let (x, y) = place(one);
            vec![(x - 0.05, y), (x + 0.05, y)]
        }
        all => all.iter().map(place).collect(),
    };
    chart.draw_series([PathElement::new(path, colour.stroke_width(2))])?;
    Ok(())
}

/// Beside the ends of the lines, moved apart where they would lie on each other.
fn names(
    chart: &Chart<'_, '_>,
    root: &Root<'_>,
    curves: &Curves,
    ordinate: Ordinate,
    to: f64,
) -> Outcome {
    let mut wanted: Vec<(i32, i32, String, RGBColor)> = Vec::new();
    for (index, curve) in curves.curves.iter().enumerate() {
        if let Some(last) = curve.points.last() {
            let (x, y) = chart.backend_coord(&(to, ordinate.of(last).0));
            wanted.push((y, x, curve.name.clone(), colour(curve, index)));
        }
    }
    let (x, y) = chart.backend_coord(&(to, ordinate.least(curves)));
    wanted.push((y, x, "never evicts".to_owned(), MUTED));
    wanted.sort_by_key(|(y, ..)| *y);
    // from below upwards: the ends of curves lie low
    let mut limit = i32::MAX;
    for (y, x, name, colour) in wanted.into_iter().rev() {
        let y = y.min(limit);
        limit = y - NAME_GAP;
        let style = style(colour, HPos::Left, VPos::Center);
        root.draw(&Text::new(name, (x + 8, y), style))?;
    }
    Ok(())
}

fn colour(curve: &Curve, index: usize) -> RGBColor {
    match curve.method {
        Method::Optimum | Method::Bound => INK,
        _ => COLOURS[index % COLOURS.len()],
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

fn log10(bytes: u64) -> f64 {
    float(bytes.max(1)).log10()
}

fn style(colour: RGBColor, horizontal: HPos, vertical: VPos) -> TextStyle<'static> {
    ("sans-serif", 15.0)
        .into_font()
        .color(&colour)
        .pos(Pos::new(horizontal, vertical))
}
