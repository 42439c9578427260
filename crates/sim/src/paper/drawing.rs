//! Pictures as data, and as SVG that takes its colours from the style sheet of its page: one
//! drawing for light and dark ground.
//!
//! SVG is written here by hand, not by `plotters` as for curves of misses: that writes colours into
//! every element, and a page that follows the reader's ground would have to exchange them again.

mod bars;
mod curves;

pub(super) use bars::{Bar, Bars, Group};
pub(super) use curves::{Along, Curve, Curves, Mark};

use serde::Serialize;
use std::fmt::{self, Write as _};
pub(super) use weir_report::escape;

/// A picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum Picture {
    /// Lines over an axis.
    Curves(Curves),
    /// Bars beside each other.
    Bars(Bars),
}

impl Picture {
    /// What it shows, in a few words.
    pub(super) fn title(&self) -> &str {
        match self {
            Self::Curves(curves) => &curves.title,
            Self::Bars(bars) => &bars.title,
        }
    }

    /// What one sees.
    pub(super) fn note(&self) -> &str {
        match self {
            Self::Curves(curves) => &curves.note,
            Self::Bars(bars) => &bars.note,
        }
    }

    /// Names of series, with how they are drawn.
    pub(super) fn legend(&self) -> Vec<(usize, Stroke, String)> {
        match self {
            Self::Curves(curves) => curves.legend(),
            Self::Bars(bars) => bars.legend(),
        }
    }

    /// Whether there is a number of the paper in it.
    pub(super) fn has_paper(&self) -> bool {
        match self {
            Self::Curves(curves) => curves.marks.iter().any(|mark| mark.is_paper),
            Self::Bars(bars) => bars.has_paper(),
        }
    }

    /// The drawing.
    pub(super) fn svg(&self) -> String {
        match self {
            Self::Curves(curves) => curves.svg(),
            Self::Bars(bars) => bars.svg(),
        }
    }
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Stroke {
    Solid,
    Dashed,
}

impl Stroke {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Solid => "solid",
            Self::Dashed => "dashed",
        }
    }
}

/// A drawing under way: elements are closed as they are written, text is escaped.
#[derive(Debug)]
pub(super) struct Svg {
    text: String,
}

/// Where text is held.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// A drawing of this size, pixels, with a title for screen readers.
    pub(super) fn new(width: f64, height: f64, title: &str) -> Self {
        let mut svg = Self {
            text: String::new(),
        };
        svg.put(format_args!(
            "<svg class=\"drawing\" viewBox=\"0 0 {width} {height}\" role=\"img\"><title>{}</title>",
            escape(title)
        ));
        svg
    }

    /// A straight line.
    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.put(format_args!(
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    /// A line through many points.
    pub(super) fn path(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        let mut all = String::new();
        for (x, y) in points {
            let _infallible = write!(all, "{x:.1},{y:.1} ");
        }
        self.put(format_args!(
            "<polyline class=\"{class}\" points=\"{}\"/>",
            all.trim_end()
        ));
    }

    /// A bar, with what a pointer is told.
    pub(super) fn bar(&mut self, class: &str, at: (f64, f64), size: (f64, f64), told: &str) {
        self.put(format_args!(
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\"><title>{}</title></rect>",
            at.0, at.1, size.0.max(0.0), size.1, escape(told)
        ));
    }

    /// A diamond: hollow for the paper's numbers, filled for ours.
    pub(super) fn diamond(&mut self, class: &str, (x, y): (f64, f64), told: &str) {
        let r = 6.0;
        self.put(format_args!(
            "<path class=\"{class}\" d=\"M{:.1} {y:.1}L{x:.1} {:.1}L{:.1} {y:.1}L{x:.1} {:.1}Z\"><title>{}</title></path>",
            x - r,
            y - r,
            x + r,
            y + r,
            escape(told)
        ));
    }

    /// Text at a place.
    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.put(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escape(text)
        ));
    }

    /// The whole of it.
    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    fn put(&mut self, arguments: fmt::Arguments<'_>) {
        // into a string
        let _infallible = self.text.write_fmt(arguments);
    }
}

/// The least of 1, 2, 5 times a power of ten that is not below.
pub(super) fn step(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(f64::MIN_POSITIVE).log10().floor());
    let factor = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|factor| factor * power >= least * 0.999);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn svg_text_is_escaped() {
        let mut svg = Svg::new(10.0, 10.0, "a<b>\"&");
        svg.text("t", (1.0, 2.0), Anchor::Middle, "</text><script>");
        let svg = svg.finish();
        assert!(
            svg.contains("<title>a&lt;b&gt;&quot;&amp;</title>"),
            "{svg}"
        );
        assert!(!svg.contains("<script"), "{svg}");
    }

    #[test]
    fn axis_step_is_one_two_or_five_times_a_power_of_ten() {
        for (least, expected) in [
            (0.9, 1.0),
            (1.0, 1.0),
            (1.2, 2.0),
            (30.0, 50.0),
            (0.06, 0.1),
        ] {
            assert!((step(least) - expected).abs() < 1e-9, "{least}");
        }
    }
}
