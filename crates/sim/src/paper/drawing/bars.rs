//! Bars beside each other, with the paper's numbers as marks on them.

use super::{Anchor, Stroke, Svg, step};
use serde::Serialize;

/// A picture of bars that lie: names have room.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in crate::paper) struct Bars {
    pub(in crate::paper) title: String,
    pub(in crate::paper) note: String,
    /// What goes along.
    pub(in crate::paper) label: String,
    /// What all are compared with.
    pub(in crate::paper) reference: f64,
    pub(in crate::paper) groups: Vec<Group>,
}

/// Bars that belong together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in crate::paper) struct Group {
    pub(in crate::paper) name: String,
    pub(in crate::paper) bars: Vec<Bar>,
}

/// A bar.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in crate::paper) struct Bar {
    pub(in crate::paper) name: String,
    pub(in crate::paper) series: usize,
    pub(in crate::paper) value: f64,
    pub(in crate::paper) paper: Option<f64>,
}

const WIDTH: f64 = 640.0;
/// Names at the left, numbers at the right.
const LEFT: f64 = 205.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 46.0;
/// A bar, and what is between two groups.
const THICK: f64 = 18.0;
const BETWEEN: f64 = 12.0;

impl Bars {
    /// Names of the bars, if there is more than one kind.
    pub(in crate::paper) fn legend(&self) -> Vec<(usize, Stroke, String)> {
        let mut all: Vec<(usize, Stroke, String)> = Vec::new();
        for bar in self.groups.iter().flat_map(|group| &group.bars) {
            if !all.iter().any(|(series, _, _)| *series == bar.series) {
                all.push((bar.series, Stroke::Solid, bar.name.clone()));
            }
        }
        if all.len() < 2 {
            all.clear();
        }
        all
    }

    pub(in crate::paper) fn has_paper(&self) -> bool {
        let mut bars = self.groups.iter().flat_map(|group| &group.bars);
        bars.any(|bar| bar.paper.is_some())
    }

    pub(in crate::paper) fn svg(&self) -> String {
        let count: usize = self.groups.iter().map(|group| group.bars.len()).sum();
        let height = TOP + BOTTOM + count as f64 * THICK + self.groups.len() as f64 * BETWEEN;
        let each = step(self.most() / 6.0);
        let to = (self.most() / each).ceil() * each;
        let x = |value: f64| LEFT + value / to * (WIDTH - LEFT - RIGHT);
        let mut svg = Svg::new(WIDTH, height, &self.title);
        let bottom = height - BOTTOM;
        let mut value = 0.0;
        while value <= to * 1.001 {
            svg.line("grid", (x(value), TOP), (x(value), bottom));
            svg.text(
                "tick",
                (x(value), bottom + 17.0),
                Anchor::Middle,
                &format!("{value:.0}"),
            );
            value += each;
        }
        let mut y = TOP + BETWEEN / 2.0;
        for group in &self.groups {
            let middle = y + group.bars.len() as f64 * THICK / 2.0 + 4.5;
            svg.text("name", (LEFT - 10.0, middle), Anchor::End, &group.name);
            for bar in &group.bars {
                bar.draw(y, &x, &mut svg);
                y += THICK;
            }
            y += BETWEEN;
        }
        let at = x(self.reference);
        svg.line("reference", (at, TOP), (at, bottom));
        svg.text("tick", (at, TOP - 8.0), Anchor::Middle, "no proxy");
        svg.text(
            "label",
            (WIDTH - RIGHT, height - 8.0),
            Anchor::End,
            &self.label,
        );
        svg.finish()
    }

    fn most(&self) -> f64 {
        let bars = self.groups.iter().flat_map(|group| &group.bars);
        let values = bars.flat_map(|bar| [Some(bar.value), bar.paper]);
        values.flatten().fold(self.reference * 1.05, f64::max)
    }
}

impl Bar {
    fn draw(&self, y: f64, x: &dyn Fn(f64) -> f64, svg: &mut Svg) {
        let told = format!("{}: {:.1}", self.name, self.value);
        let (from, to) = (x(0.0), x(self.value));
        svg.bar(
            &format!("bar s{}", self.series),
            (from, y + 1.5),
            (to - from, THICK - 3.0),
            &told,
        );
        let middle = y + THICK / 2.0;
        let text = format!("{:.0}", self.value);
        // at the beginning: the paper's mark may stand at the end
        svg.text("value", (from + 7.0, middle + 4.5), Anchor::Start, &text);
        if let Some(paper) = self.paper {
            let told = format!("{}, the paper: {paper:.1}", self.name);
            svg.diamond("paper ink", (x(paper), middle), &told);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(series: usize, value: f64, paper: Option<f64>) -> Bar {
        Bar {
            name: format!("bar {series}"),
            series,
            value,
            paper,
        }
    }

    #[test]
    fn axis_covers_the_published_number_and_every_bar_is_drawn() {
        let bars = Bars {
            title: "t".to_owned(),
            note: String::new(),
            label: "%".to_owned(),
            reference: 100.0,
            groups: vec![Group {
                name: "g".to_owned(),
                bars: vec![bar(0, 80.0, Some(190.0)), bar(1, 0.0, None)],
            }],
        };
        let svg = bars.svg();
        assert_eq!(svg.matches("<rect").count(), 2);
        assert_eq!(svg.matches("class=\"paper ink\"").count(), 1);
        assert!(svg.contains(">200<"), "the axis goes up to it: {svg}");
        assert_eq!(bars.legend().len(), 2);
    }
}
