//! Lines over an axis, with the paper's points where it has any.

use super::{Anchor, Stroke, Svg, step};
use serde::Serialize;

/// A picture of lines.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in crate::paper) struct Curves {
    pub(in crate::paper) title: String,
    pub(in crate::paper) note: String,
    pub(in crate::paper) along: Along,
    /// What goes along, and up.
    pub(in crate::paper) labels: [String; 2],
    pub(in crate::paper) lines: Vec<Curve>,
    pub(in crate::paper) marks: Vec<Mark>,
}

/// What the horizontal axis is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::paper) enum Along {
    /// Time, seconds, in decades.
    Time,
    /// From 0 to 100 %.
    Percent,
    /// From 0 to a number, with a tick at each `step`.
    Count {
        /// The end.
        to: u32,
        /// Between two ticks.
        step: u32,
    },
}

/// A line; points from left to right.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in crate::paper) struct Curve {
    pub(in crate::paper) name: String,
    pub(in crate::paper) series: usize,
    pub(in crate::paper) stroke: Stroke,
    pub(in crate::paper) points: Vec<(f64, f64)>,
}

/// A single number in the picture: at a height, or else on the axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in crate::paper) struct Mark {
    pub(in crate::paper) name: String,
    pub(in crate::paper) series: usize,
    pub(in crate::paper) is_paper: bool,
    pub(in crate::paper) x: f64,
    pub(in crate::paper) y: Option<f64>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 330.0;
/// Room around the plot: above, right, below, left.
const MARGINS: [f64; 4] = [34.0, 26.0, 48.0, 48.0];

/// What is left of a line when its thin ends are cut off, as a share of its height.
const THIN: f64 = 0.01;

/// Values to places.
struct Scale {
    from: f64,
    to: f64,
    top: f64,
    along: Along,
}

impl Scale {
    fn of(curves: &Curves) -> Self {
        let heights = curves.lines.iter().flat_map(|line| &line.points);
        let marked = curves.marks.iter().filter_map(|mark| mark.y);
        let most = heights
            .clone()
            .map(|point| point.1)
            .chain(marked)
            .fold(0.0_f64, f64::max);
        let each = step(most.max(1e-9) / 5.0);
        let top = (most / each).ceil() * each;
        let (from, to) = match curves.along {
            Along::Percent => (0.0, 100.0),
            Along::Count { to, .. } => (0.0, f64::from(to)),
            Along::Time => {
                let seen = heights
                    .filter(|point| point.0 > 0.0 && point.1 >= most * THIN)
                    .map(|point| point.0)
                    .chain(curves.marks.iter().map(|mark| mark.x));
                let (least, most) = seen.fold((f64::INFINITY, 0.0_f64), |(least, most), x| {
                    (least.min(x), most.max(x))
                });
                if least >= most {
                    (-2.0, 2.0)
                } else {
                    (least.log10() - 0.05, most.log10() + 0.05)
                }
            }
        };
        Self {
            from,
            to,
            top: if top > 0.0 { top } else { 1.0 },
            along: curves.along,
        }
    }

    fn x(&self, value: f64) -> f64 {
        let at = match self.along {
            Along::Percent | Along::Count { .. } => value,
            Along::Time => value.max(1e-9).log10(),
        };
        let share = ((at - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        MARGINS[3] + share * (WIDTH - MARGINS[1] - MARGINS[3])
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - MARGINS[2] - value / self.top * (HEIGHT - MARGINS[0] - MARGINS[2])
    }

    fn is_seen(&self, value: f64) -> bool {
        self.along != Along::Time || (value > 0.0 && (self.from..=self.to).contains(&value.log10()))
    }

    /// Places on the horizontal axis that are named.
    fn ticks(&self) -> Vec<(f64, String)> {
        match self.along {
            Along::Percent => (0..=5_u32)
                .map(|fifth| f64::from(fifth * 20))
                .map(|at| (at, format!("{at:.0} %")))
                .collect(),
            Along::Count { to, step } => (0..=to)
                .step_by(usize::try_from(step.max(1)).unwrap_or(1))
                .map(|at| (f64::from(at), at.to_string()))
                .collect(),
            Along::Time => {
                let decades = self.to - self.from;
                let within: &[f64] = if decades < 2.0 {
                    &[1.0, 2.0, 5.0]
                } else {
                    &[1.0]
                };
                let all = (-6..=6_i32)
                    .flat_map(|power| within.iter().map(move |factor| factor * 10_f64.powi(power)));
                all.filter(|at| self.is_seen(*at))
                    .map(|at| (at, time(at)))
                    .collect()
            }
        }
    }
}

/// A round time, of seconds.
fn time(s: f64) -> String {
    let (value, unit) = match s {
        s if s >= 0.999 => (s, "s"),
        s if s >= 0.000_999 => (s * 1e3, "ms"),
        _ => (s * 1e6, "µs"),
    };
    format!("{value:.0} {unit}")
}

impl Curves {
    pub(in crate::paper) fn legend(&self) -> Vec<(usize, Stroke, String)> {
        let lines = self.lines.iter();
        lines
            .map(|line| (line.series, line.stroke, line.name.clone()))
            .collect()
    }

    pub(in crate::paper) fn svg(&self) -> String {
        let scale = Scale::of(self);
        let mut svg = Svg::new(WIDTH, HEIGHT, &self.title);
        self.axes(&scale, &mut svg);
        for line in &self.lines {
            let points = line.points.iter().filter(|point| scale.is_seen(point.0));
            svg.path(
                &format!("line {} s{}", line.stroke.as_str(), line.series),
                points.map(|(x, y)| (scale.x(*x), scale.y(*y))),
            );
        }
        for mark in &self.marks {
            let class = if mark.is_paper { "paper" } else { "ours" };
            let at = (scale.x(mark.x), scale.y(mark.y.unwrap_or(0.0)));
            svg.diamond(&format!("{class} s{}", mark.series), at, &mark.name);
        }
        svg.finish()
    }

    fn axes(&self, scale: &Scale, svg: &mut Svg) {
        let (left, right) = (MARGINS[3], WIDTH - MARGINS[1]);
        let each = step(scale.top / 5.0);
        let mut value = 0.0;
        while value <= scale.top * 1.001 {
            let y = scale.y(value);
            svg.line("grid", (left, y), (right, y));
            svg.text("tick", (left - 7.0, y + 4.0), Anchor::End, &number(value));
            value += each;
        }
        let bottom = scale.y(0.0);
        svg.line("axis", (left, bottom), (right, bottom));
        for (at, name) in scale.ticks() {
            let x = scale.x(at);
            svg.line("axis", (x, bottom), (x, bottom + 4.0));
            svg.text("tick", (x, bottom + 18.0), Anchor::Middle, &name);
        }
        let [along, up] = &self.labels;
        svg.text("label", (6.0, 16.0), Anchor::Start, up);
        svg.text("label", (right, HEIGHT - 8.0), Anchor::End, along);
    }
}

/// Without digits that say nothing.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves(points: Vec<(f64, f64)>, along: Along) -> Curves {
        Curves {
            title: "t".to_owned(),
            note: String::new(),
            along,
            labels: ["along".to_owned(), "up".to_owned()],
            lines: vec![Curve {
                name: "a".to_owned(),
                series: 0,
                stroke: Stroke::Dashed,
                points,
            }],
            marks: Vec::new(),
        }
    }

    #[test]
    fn empty_or_single_point_chart_contains_no_nan_or_infinity() {
        let count = Along::Count { to: 10, step: 2 };
        for along in [Along::Time, Along::Percent, count] {
            for points in [vec![], vec![(0.0, 0.0)], vec![(1.0, 5.0)]] {
                let svg = curves(points, along).svg();
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            }
        }
    }

    #[test]
    fn count_axis_has_a_tick_at_each_step() {
        let along = Along::Count { to: 10, step: 5 };
        let ticks = Scale::of(&curves(vec![(4.0, 1.0)], along)).ticks();
        let expected = [(0.0, "0"), (5.0, "5"), (10.0, "10")];
        assert_eq!(ticks, expected.map(|(at, name)| (at, name.to_owned())));
    }

    #[test]
    fn time_axis_is_logarithmic_with_a_unit_at_each_decade() {
        let mut all = curves(vec![(0.01, 1.0), (1.0, 4.0), (100.0, 1.0)], Along::Time);
        all.marks.push(Mark {
            name: "m".to_owned(),
            series: 1,
            is_paper: true,
            x: 10.0,
            y: None,
        });
        let names: Vec<String> = Scale::of(&all)
            .ticks()
            .into_iter()
            .map(|tick| tick.1)
            .collect();
        assert_eq!(names, ["10 ms", "100 ms", "1 s", "10 s", "100 s"]);
        let svg = all.svg();
        assert_eq!(svg.matches("class=\"paper s1\"").count(), 1);
        assert_eq!(svg.matches("line dashed s0").count(), 1);
        let scale = Scale::of(&all);
        let place = (scale.x(1.0) - scale.x(0.01)) - (scale.x(100.0) - scale.x(1.0));
        assert!(place.abs() < 1e-6);
    }
}
