//! An axis: from where to where, and which places on it are named.

use super::unit::{Unit, digits};

/// An axis. Values are in the axis's own coordinates: the logarithm of the value where
/// [`Axis::logarithmic`] made it.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is on it, with its unit.
    pub label: String,
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Places that are named.
    pub ticks: Vec<(f64, String)>,
    is_logarithmic: bool,
}

/// How many ticks are wished for.
const TICKS: f64 = 5.0;

/// What is called zero on a logarithmic axis: one microsecond, one byte.
const LOG_LEAST: f64 = 1.0;

impl Axis {
    /// From `from` to `to` in its own coordinates, with these places named; `is_logarithmic`: the
    /// coordinates are logarithms to base 10.
    #[must_use]
    pub fn with_ticks(
        what: &str,
        (from, to): (f64, f64),
        ticks: Vec<(f64, String)>,
        is_logarithmic: bool,
    ) -> Self {
        Self {
            label: what.to_owned(),
            from,
            to,
            ticks,
            is_logarithmic,
        }
    }

    /// From zero, or from what is below it, to the largest of `values`.
    pub fn linear(what: &str, unit: Unit, values: impl Iterator<Item = f64>) -> Self {
        let (least, most) = values
            .filter(|value| value.is_finite())
            .fold((0.0_f64, 0.0_f64), |(least, most), value| {
                (least.min(value), most.max(value))
            });
        let most = if most <= least { least + 1.0 } else { most };
        let scale = unit.scale(most);
        let step = step((most - least) / scale.divisor / TICKS) * scale.divisor;
        let from = (least / step).floor() * step;
        // a line at the upper edge may touch it, and not be cut
        let to = (most / step - 0.02).ceil() * step;
        let ticks = multiples(from, to, step)
            .map(|value| (value, digits(value / scale.divisor)))
            .collect();
        Self::with_ticks(&labelled(what, scale.name), (from, to), ticks, false)
    }

    /// Decades, named with their units; what is below one is one.
    pub fn logarithmic(what: &str, unit: Unit, values: impl Iterator<Item = f64>) -> Self {
        let (least, most) = values
            .filter(|value| value.is_finite() && *value > 0.0)
            .fold((f64::INFINITY, LOG_LEAST), |(least, most), value| {
                (least.min(value.max(LOG_LEAST)), most.max(value))
            });
        let least = if least > most { LOG_LEAST } else { least };
        let decades = (most / least).log10();
        let within: &[f64] = if decades <= 2.5 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let places: Vec<f64> = multiples(least.log10().floor(), most.log10().ceil() + 1.0, 1.0)
            .flat_map(|exponent| {
                within
                    .iter()
                    .map(move |factor| factor * 10_f64.powf(exponent))
            })
            .collect();
        let below = places.iter().rposition(|place| *place <= least * 1.001);
        let above = places.iter().position(|place| *place >= most * 0.999);
        let (first, last) = (below.unwrap_or(0), above.unwrap_or(places.len() - 1));
        // one place alone is no axis
        let last = last.max(first + 1).min(places.len() - 1);
        let ticks: Vec<(f64, String)> = places[first..=last]
            .iter()
            .map(|place| (place.log10(), unit.write(*place)))
            .collect();
        let ends = (places[first].log10(), places[last].log10());
        Self::with_ticks(what, ends, ticks, true)
    }

    /// From zero to the largest of `values` and no further: for what goes along, not up.
    pub fn along(what: &str, values: impl Iterator<Item = f64>) -> Self {
        let most = values.fold(0.0_f64, f64::max);
        let mut axis = Self::linear(what, Unit::Count, std::iter::once(most));
        if most > 0.0 {
            axis.to = most;
            axis.ticks.retain(|(place, _)| *place <= most);
        }
        axis
    }

    /// Exactly these places, from the first to the last, with some room beside them.
    pub fn at(what: &str, places: &[f64]) -> Self {
        let from = places.iter().copied().fold(f64::INFINITY, f64::min);
        let to = places.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let room = if to > from { (to - from) * 0.03 } else { 0.5 };
        let every = places.len().div_ceil(12).max(1);
        let ticks = places
            .iter()
            .step_by(every)
            .map(|&place| (place, digits(place)))
            .collect();
        Self::with_ticks(what, (from - room, to + room), ticks, false)
    }

    /// Shares of all from the least up, stretched toward one: 0, 90, 99, 99.9 %, as HDR histograms
    /// are drawn.
    pub fn percentiles(what: &str, count: u64) -> Self {
        let to = crate::unit::float(count.max(10)).log10();
        let ticks = multiples(0.0, to, 1.0)
            .map(|nines| (nines, share_of_nines(nines)))
            .collect();
        Self::with_ticks(what, (0.0, to), ticks, false)
    }

    /// Where a value is on it.
    pub fn place(&self, value: f64) -> f64 {
        if self.is_logarithmic {
            return value.max(LOG_LEAST).log10();
        }
        value
    }
}

/// Where a quantile is on an axis of [`Axis::percentiles`].
pub fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

fn share_of_nines(nines: f64) -> String {
    let share = 100.0 - 10_f64.powf(2.0 - nines);
    let places = (nines - 2.0).max(0.0);
    if places < 1.0 {
        return format!("{share:.0}\u{a0}%");
    }
    let text = format!("{share:.6}");
    format!(
        "{}\u{a0}%",
        text.trim_end_matches('0').trim_end_matches('.')
    )
}

fn labelled(what: &str, unit: &str) -> String {
    match (what, unit) {
        (what, "") => what.to_owned(),
        ("", unit) => unit.to_owned(),
        (what, unit) => format!("{what}, {unit}"),
    }
}

/// The least of 1, 2, 2.5, 5 times a power of ten that is not below.
fn step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0]
        .into_iter()
        .find(|factor| factor * power >= least * 0.999)
        .unwrap_or(10.0);
    factor * power
}

/// `from`, `from + step` ... up to `to`.
fn multiples(from: f64, to: f64, step: f64) -> impl Iterator<Item = f64> {
    (0_u32..100)
        .map(move |index| f64::from(index).mul_add(step, from))
        .take_while(move |value| *value <= to + step * 0.01)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: &Axis) -> Vec<String> {
        axis.ticks
            .iter()
            .map(|(_, name)| name.replace('\u{a0}', " "))
            .collect()
    }

    #[test]
    fn linear_axis_has_round_tick_values() {
        let axis = Axis::linear("time", Unit::Time, [812_000.0, 3_210_000.0].into_iter());
        assert_eq!(names(&axis), ["0", "1", "2", "3", "4"]);
        assert_eq!(axis.label, "time, s");
        let axis = Axis::linear("hit ratio", Unit::Share, [0.243].into_iter());
        assert_eq!(names(&axis), ["0", "5", "10", "15", "20", "25"]);
        let axis = Axis::linear("", Unit::Count, std::iter::empty());
        assert_eq!(names(&axis), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
    }

    #[test]
    fn linear_axis_includes_negative_values() {
        let axis = Axis::linear("hit ratio", Unit::Share, [-0.03, 0.2].into_iter());
        assert!(axis.from <= -0.03 && axis.to >= 0.2, "{axis:?}");
    }

    #[test]
    fn decade_ticks_are_named_in_the_unit_that_fits_each() {
        let values = [350.0, 2_000_000.0].into_iter();
        let axis = Axis::logarithmic("time", Unit::Time, values);
        assert_eq!(
            names(&axis),
            ["100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s"]
        );
        assert!((axis.place(100.0) - axis.from).abs() < 1e-9);
    }

    #[test]
    fn logarithmic_axis_within_one_decade_has_several_ticks() {
        let axis = Axis::logarithmic("time", Unit::Time, [330_000.0, 610_000.0].into_iter());
        assert_eq!(names(&axis), ["200 ms", "500 ms", "1 s"]);
        let axis = Axis::logarithmic("time", Unit::Time, [1000.0].into_iter());
        assert_eq!(names(&axis), ["1 ms", "2 ms"]);
        let axis = Axis::logarithmic("time", Unit::Time, std::iter::empty());
        assert_eq!(names(&axis), ["1 µs", "2 µs"]);
    }

    #[test]
    fn percentile_axis_ticks_are_successive_nines() {
        let axis = Axis::percentiles("requests", 38_400);
        assert_eq!(names(&axis), ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        assert!((nines(0.99) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn sweep_axis_has_a_tick_at_each_measured_value() {
        let axis = Axis::at("clients", &[8.0, 24.0, 48.0]);
        assert_eq!(names(&axis), ["8", "24", "48"]);
        assert!(axis.from < 8.0 && axis.to > 48.0);
    }
}
