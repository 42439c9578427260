//! Several measurements of one thing.

/// Least, median and most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
}

/// `None` of nothing.
pub(crate) fn spread(mut numbers: Vec<f64>) -> Option<Spread> {
    numbers.sort_by(f64::total_cmp);
    let (least, most) = (*numbers.first()?, *numbers.last()?);
    let half = numbers.len() / 2;
    let median = if numbers.len() % 2 == 1 {
        numbers[half]
    } else {
        f64::midpoint(numbers[half - 1], numbers[half])
    };
    Some(Spread {
        least,
        median,
        most,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(numbers: &[f64], expected: Option<(f64, f64, f64)>) {
        let found =
            spread(numbers.to_vec()).map(|spread| (spread.least, spread.median, spread.most));
        assert_eq!(found, expected, "{numbers:?}");
    }

    #[test]
    fn median_is_the_middle_value_or_the_mean_of_the_two_middle_ones() {
        check(&[], None);
        check(&[3.0], Some((3.0, 3.0, 3.0)));
        check(&[9.0, 1.0, 2.0], Some((1.0, 2.0, 9.0)));
        check(&[9.0, 1.0, 2.0, 4.0], Some((1.0, 3.0, 9.0)));
    }
}
