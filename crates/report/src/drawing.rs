//! Figures as SVG, by `plotters`.
//!
//! Text stays text, lines are named at their ends, colours are exchanged on dark ground by a style
//! sheet ([`palette`]). `plotters` draws on whole units: a drawing has [`FINE`] of
//! them for each pixel it is meant for, or lines would look like stairs.

use super::figure::{Figure, Line, Point, Stroke};
use super::palette::{self, Colour};
use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::element::{Circle, PathElement, Polygon, Text};
use plotters::prelude::{Cartesian2d, ChartBuilder, ChartContext, DrawingArea, IntoDrawingArea};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, RGBColor, TextStyle};

/// Size of a drawing, pixels.
const WIDTH: i32 = 600;
const HEIGHT: i32 = 340;

/// Units of a pixel.
const FINE: i32 = 4;

const FONT: i32 = 13;

/// What `plotters` divides the size of a font by when it writes SVG.
const FONT_FACTOR: f64 = 1.24;

/// Width of a character on average, as a share of the font's size; a guess that is rather too wide.
const CHARACTER: f64 = 0.56;

/// Longest name at the end of a line, characters.
const NAME_MAX: usize = 24;

/// Least distance of names, pixels.
const NAME_GAP: i32 = 16;

/// Room above the plot (name of the vertical axis) and below it (ticks and name of the other one),
/// pixels.
const TOP: i32 = 30;
const BOTTOM: i32 = 44;

type Root<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The drawing for the page: its colours on dark ground come from the page's style sheet.
pub fn inline(figure: &Figure) -> String {
    let head = format!(
        "<svg class=\"drawing\" viewBox=\"0 0 {} {}\" role=\"img\"><title>{}</title>",
        WIDTH * FINE,
        HEIGHT * FINE,
        crate::html::escape(&figure.title)
    );
    with_head(figure, &head)
}

/// The drawing as a file of its own.
pub fn file(figure: &Figure) -> String {
    let head = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {} {}\" role=\"img\">\
         <title>{}</title><style>@media (prefers-color-scheme: dark){{{}}}</style>",
        WIDTH * FINE,
        HEIGHT * FINE,
        crate::html::escape(&figure.title),
        palette::dark_rules("")
    );
    with_head(figure, &head)
}

fn with_head(figure: &Figure, head: &str) -> String {
    let mut svg = String::new();
    // drawing into a string fails only where plotters would be wrong about itself; the page then
    // says which figure is missing
    if let Err(error) = draw(figure, &mut svg) {
        return format!(
            "{head}<text x=\"40\" y=\"80\" font-size=\"52\">{}</text></svg>",
            crate::html::escape(&format!("this figure cannot be drawn: {error}"))
        );
    }
    let body = svg.find("<svg").and_then(|at| svg[at..].split_once('>'));
    let body = body.map_or("", |(_, body)| body).trim();
    // plotters has no dashes in SVG: a width that nothing else has stands for them
    let body = body
        .replace(
            &dash_mark(Stroke::Dashed),
            "stroke-width=\"8\" stroke-dasharray=\"30 20\"",
        )
        .replace(
            &dash_mark(Stroke::Dotted),
            "stroke-width=\"8\" stroke-dasharray=\"1 18\" stroke-linecap=\"round\"",
        )
        .replace("<polyline ", "<polyline stroke-linejoin=\"round\" ");
    format!("{head}{body}\n")
}

const fn line_width(stroke: Stroke) -> u32 {
    match stroke {
        Stroke::Solid => 8,
        Stroke::Dashed => 9,
        Stroke::Dotted => 10,
    }
}

fn dash_mark(stroke: Stroke) -> String {
    format!("stroke-width=\"{}\"", line_width(stroke))
}

fn draw(figure: &Figure, svg: &mut String) -> Outcome {
    let size = (units_u32(WIDTH), units_u32(HEIGHT));
    let root = SVGBackend::with_string(svg, size).into_drawing_area();
    let left = widest(figure.y.ticks.iter().map(|(_, name)| name.as_str())) + 14;
    let right = widest(figure.lines.iter().map(|line| line.name.as_str())) + 34;
    let mut chart = ChartBuilder::on(&root)
        .margin_left(left * FINE)
        .margin_right(right * FINE)
        .margin_top(TOP * FINE)
        .margin_bottom(BOTTOM * FINE)
        .build_cartesian_2d(figure.x.from..figure.x.to, figure.y.from..figure.y.to)?;
    axes(figure, &root, &chart)?;
    for line in &figure.lines {
        lines(figure, line, &mut chart)?;
    }
    names(figure, &root, &chart)?;
    root.present()?;
    Ok(())
}

/// Grid, ticks and the names of both axes.
fn axes(figure: &Figure, root: &Root<'_>, chart: &Chart<'_, '_>) -> Outcome {
    let grid = palette::GRID.light.stroke_width(3);
    let axis = palette::BESIDE.light.stroke_width(4);
    let (left, bottom) = chart.backend_coord(&(figure.x.from, figure.y.from));
    let (right, _) = chart.backend_coord(&(figure.x.to, figure.y.from));
    for (place, name) in &figure.y.ticks {
        let (_, y) = chart.backend_coord(&(figure.x.from, *place));
        root.draw(&PathElement::new(vec![(left, y), (right, y)], grid))?;
        let style = text(palette::MUTED.light, HPos::Right, VPos::Center);
        root.draw(&Text::new(name.clone(), (left - 7 * FINE, y), style))?;
    }
    root.draw(&PathElement::new(
        vec![(left, bottom), (right, bottom)],
        axis,
    ))?;
    for (place, name) in &figure.x.ticks {
        let (x, _) = chart.backend_coord(&(*place, figure.y.from));
        let tick = vec![(x, bottom), (x, bottom + 4 * FINE)];
        root.draw(&PathElement::new(tick, axis))?;
        let style = text(palette::MUTED.light, HPos::Center, VPos::Top);
        root.draw(&Text::new(name.clone(), (x, bottom + 7 * FINE), style))?;
    }
    let style = text(palette::INK.light, HPos::Left, VPos::Top);
    root.draw(&Text::new(
        figure.y.label.clone(),
        (3 * FINE, 5 * FINE),
        style,
    ))?;
    let style = text(palette::INK.light, HPos::Right, VPos::Top);
    let place = (right, (HEIGHT - 17) * FINE);
    root.draw(&Text::new(figure.x.label.clone(), place, style))?;
    Ok(())
}

fn lines(figure: &Figure, line: &Line, chart: &mut Chart<'_, '_>) -> Outcome {
    let place = |point: &Point| (figure.x.place(point.x), figure.y.place(point.y));
    let style = line.colour.light.stroke_width(line_width(line.stroke));
    let path: Vec<(f64, f64)> = line.points.iter().map(place).collect();
    if !line.has_marks {
        band(figure, line, chart)?;
    }
    if path.len() > 1 {
        chart.draw_series([PathElement::new(path, style)])?;
    }
    // a lonely point would not be seen without a mark
    if line.has_marks || line.points.len() == 1 {
        for point in &line.points {
            if let Some((least, most)) = point.range.filter(|_| line.has_marks) {
                let x = figure.x.place(point.x);
                let path = vec![(x, figure.y.place(least)), (x, figure.y.place(most))];
                let style = line.colour.light.stroke_width(line_width(Stroke::Dotted));
                chart.draw_series([PathElement::new(path, style)])?;
            }
            mark(place(point), line.colour, point.is_valid, chart)?;
        }
    }
    Ok(())
}

/// The ranges of a line's points, as a surface behind it.
fn band(figure: &Figure, line: &Line, chart: &mut Chart<'_, '_>) -> Outcome {
    let ranges = line.points.iter().filter_map(|point| {
        let (least, most) = point.range?;
        let x = figure.x.place(point.x);
        Some(((x, figure.y.place(least)), (x, figure.y.place(most))))
    });
    let (mut surface, mut upper): (Vec<_>, Vec<_>) = ranges.unzip();
    if surface.len() > 1 {
        upper.reverse();
        surface.append(&mut upper);
        chart.draw_series([Polygon::new(surface, line.colour.light.mix(0.15))])?;
    }
    Ok(())
}

fn mark(place: (f64, f64), colour: Colour, is_valid: bool, chart: &mut Chart<'_, '_>) -> Outcome {
    let size = 4 * FINE;
    if is_valid {
        chart.draw_series([Circle::new(place, size, colour.light.filled())])?;
        return Ok(());
    }
    chart.draw_series([
        Circle::new(place, size, palette::GROUND.light.filled()),
        Circle::new(place, size, colour.light.stroke_width(7)),
    ])?;
    Ok(())
}

/// Names beside the ends of their lines, moved apart where they would lie on each other.
fn names(figure: &Figure, root: &Root<'_>, chart: &Chart<'_, '_>) -> Outcome {
    let (right, bottom) = chart.backend_coord(&(figure.x.to, figure.y.from));
    let mut wanted: Vec<(i32, &Line)> = figure
        .lines
        .iter()
        .filter_map(|line| {
            let last = line.points.last()?;
            let (_, y) = chart.backend_coord(&(figure.x.from, figure.y.place(last.y)));
            Some((y, line))
        })
        .collect();
    wanted.sort_by_key(|(y, _)| *y);
    let heights = apart(wanted.iter().map(|(y, _)| *y), NAME_GAP * FINE, bottom);
    for (y, (_, line)) in heights.into_iter().zip(wanted) {
        let path = vec![(right + 6 * FINE, y), (right + 18 * FINE, y)];
        let style = line.colour.light.stroke_width(line_width(line.stroke));
        root.draw(&PathElement::new(path, style))?;
        let style = text(palette::INK.light, HPos::Left, VPos::Center);
        root.draw(&Text::new(
            shortened(&line.name),
            (right + 22 * FINE, y),
            style,
        ))?;
    }
    Ok(())
}

/// Heights in rising order, moved down as far as needed to be `gap` apart, and up again from
/// `lowest`.
fn apart(wanted: impl Iterator<Item = i32>, gap: i32, lowest: i32) -> Vec<i32> {
    let mut heights: Vec<i32> = Vec::new();
    for height in wanted {
        let least = heights.last().map_or(i32::MIN, |last| last + gap);
        heights.push(height.max(least));
    }
    let mut limit = lowest;
    for height in heights.iter_mut().rev() {
        *height = (*height).min(limit);
        limit = *height - gap;
    }
    heights
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME_MAX {
        return name.to_owned();
    }
    let kept: String = name.chars().take(NAME_MAX - 1).collect();
    format!("{}…", kept.trim_end())
}

fn text(colour: RGBColor, horizontal: HPos, vertical: VPos) -> TextStyle<'static> {
    let size = f64::from(FONT * FINE) * FONT_FACTOR;
    ("sans-serif", size)
        .into_font()
        .color(&colour)
        .pos(Pos::new(horizontal, vertical))
}

/// The width of the longest of some names, pixels.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a name has a few dozen characters at most"
)]
fn widest<'a>(names: impl Iterator<Item = &'a str>) -> i32 {
    let longest = names
        .map(|name| name.chars().count().min(NAME_MAX))
        .max()
        .unwrap_or_default();
    (longest as f64 * CHARACTER * f64::from(FONT)) as i32
}

fn units_u32(pixels: i32) -> u32 {
    u32::try_from(pixels * FINE).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::axis::Axis;
    use super::super::unit::Unit;
    use super::*;

    fn figure(name: &str) -> Figure {
        let line = |stroke| Line {
            name: name.to_owned(),
            colour: palette::series(0),
            stroke,
            has_marks: true,
            points: vec![Point::new(8.0, 1e6), Point::new(16.0, 2e6)],
        };
        Figure {
            name: "a".to_owned(),
            title: format!("title {name}"),
            note: String::new(),
            x: Axis::at("clients", &[8.0, 16.0]),
            y: Axis::linear("response time", Unit::Time, [2e6].into_iter()),
            lines: vec![line(Stroke::Solid), line(Stroke::Dashed)],
        }
    }

    #[test]
    fn proxy_name_is_escaped_in_the_drawing() {
        let hostile = "</text><script>\"&'";
        for svg in [inline(&figure(hostile)), file(&figure(hostile))] {
            assert!(!svg.contains("<script"), "{svg}");
            assert!(svg.contains("&lt;script&gt;"), "{svg}");
        }
    }

    #[test]
    fn dashed_line_is_drawn_with_a_dash_array() {
        let svg = inline(&figure("a"));
        assert_eq!(svg.matches("stroke-dasharray").count(), 2, "{svg}");
        assert!(!svg.contains("stroke-width=\"9\""), "{svg}");
    }

    #[test]
    fn invalid_run_point_is_drawn_with_an_extra_circle() {
        let mut one = figure("a");
        let circles = |figure: &Figure| inline(figure).matches("<circle").count();
        let before = circles(&one);
        one.lines[0].points[0].is_valid = false;
        assert_eq!(circles(&one), before + 1);
    }

    #[test]
    fn repetition_range_is_drawn_as_a_separate_line() {
        let mut one = figure("a");
        let lines = |figure: &Figure| inline(figure).matches("<polyline").count();
        let before = lines(&one);
        one.lines[0].points[0].range = Some((0.5e6, 1.5e6));
        assert_eq!(lines(&one), before + 1);
    }

    #[test]
    fn overlapping_line_names_are_spread_apart() {
        assert_eq!(apart([10, 11, 50].into_iter(), 16, 100), [10, 26, 50]);
        assert_eq!(apart([90, 95, 99].into_iter(), 16, 100), [68, 84, 100]);
        assert_eq!(apart(std::iter::empty(), 16, 100), [0; 0]);
    }

    #[test]
    fn inline_drawing_has_no_http_reference() {
        assert!(!inline(&figure("a")).contains("http"));
    }
}
