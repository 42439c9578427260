//! From numbers with a fraction to whole ones.

/// A type of whole numbers.
pub trait WholeNumber {
    /// The number without its fraction; the nearest of the type where it is beyond it, 0 where it
    /// is not a number.
    fn truncated(number: f64) -> Self;
}

/// The number without its fraction: saturates at the ends of the type, 0 for what is no number.
pub fn whole<N: WholeNumber>(number: f64) -> N {
    N::truncated(number)
}

/// Seconds in whole microseconds; none for less than zero.
#[must_use]
pub fn microseconds(seconds: f64) -> u64 {
    whole(seconds * 1e6)
}

macro_rules! whole_numbers {
    ($($name:ty),+) => { $(
        impl WholeNumber for $name {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a cast from float saturates, as the trait says"
            )]
            fn truncated(number: f64) -> Self {
                number as Self
            }
        }
    )+ };
}

whole_numbers!(u16, u32, u64, usize, i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fraction_is_cut_and_the_type_saturates() {
        assert_eq!([whole::<u64>(2.9), whole(-1.0), whole(f64::NAN)], [2, 0, 0]);
        assert_eq!(whole::<u16>(1e9), u16::MAX);
        assert_eq!(whole::<i64>(-2.9), -2);
    }

    #[test]
    fn microseconds_are_rounded_down_and_never_negative() {
        assert_eq!(microseconds(0.000_001_9), 1);
        assert_eq!(microseconds(4.0 * 3600.0), 14_400_000_000);
        assert_eq!(microseconds(-1.0), 0);
        assert_eq!(microseconds(f64::NAN), 0);
    }
}
