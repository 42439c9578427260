//! The 1/t law of WPB: how long ago was the request made that is made again?
//!
//! With `T` requests issued, the one made `t` requests ago is chosen with a chance of
//! `(1/t) / (1/1 + ... + 1/T)`. The paper walks the sums; here they are kept in a
//! table and searched, which is the same choice in logarithmic time.

/// The sums `1/1 + 1/2 + ... + 1/t` for every `t` up to a bound.
///
/// Eight bytes a number. The clients of a run share one table, as long as the longest history.
#[derive(Debug)]
pub(super) struct Harmonic {
    sums: Vec<f64>,
}

impl Harmonic {
    /// The sums up to `1/longest`.
    pub(super) fn up_to(longest: usize) -> Self {
        let mut sum = 0.0;
        let mut divisor = 0.0;
        let sums = std::iter::repeat_with(|| {
            divisor += 1.0;
            sum += 1.0 / divisor;
            sum
        });
        Self {
            sums: sums.take(longest).collect(),
        }
    }

    /// The `t` whose part of the sum holds `unit` times the sum over `issued` requests: `H(t-1) <=
    /// unit * H(issued) < H(t)`.
    ///
    /// `unit` is in [0, 1), `issued` at least 1 and at most the table's bound; `t` is in
    /// `1..=issued`.
    pub(super) fn distance(&self, issued: usize, unit: f64) -> usize {
        let sums = &self.sums[..issued];
        let mark = sums.last().copied().unwrap_or(0.0) * unit;
        let before = sums.partition_point(|sum| *sum <= mark);
        // a unit next to 1 may round up to the whole sum
        (before + 1).min(issued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_on_a_border_belongs_to_the_distance_after_it() {
        let table = Harmonic::up_to(3);
        let whole = 1.0 + 0.5 + 1.0 / 3.0;
        for (unit, expected) in [
            (0.0, 1),
            (0.99 / whole, 1),
            (1.0 / whole, 2),
            (1.49 / whole, 2),
            (1.51 / whole, 3),
            (1.0 - f64::EPSILON / 2.0, 3),
        ] {
            assert_eq!(table.distance(3, unit), expected, "unit {unit}");
        }
        assert_eq!(table.distance(1, 0.999), 1);
    }

    #[test]
    fn table_gives_the_same_distance_as_the_loop_of_the_paper() {
        let table = Harmonic::up_to(500);
        for issued in [1_usize, 2, 7, 100, 500] {
            for step in 0..1000 {
                let unit = f64::from(step) / 1000.0;
                assert_eq!(table.distance(issued, unit), walk(issued, unit));
            }
        }
    }

    /// The loop as the paper describes it.
    fn walk(issued: usize, unit: f64) -> usize {
        let terms = || {
            (1..=issued).scan(0.0, |divisor: &mut f64, t| {
                *divisor += 1.0;
                Some((t, 1.0 / *divisor))
            })
        };
        let whole: f64 = terms().map(|(_, term)| term).sum();
        let mark = unit * whole;
        let mut sum = 0.0;
        for (t, term) in terms() {
            sum += term;
            if mark < sum {
                return t;
            }
        }
        issued
    }
}
