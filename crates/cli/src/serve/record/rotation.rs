//! When another file is begun.

use crate::messages::Failure;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use weir_proxy::config::{ByteSize, Span};

/// What is lost at most when the process is killed, as long as there is nothing else to end a file:
/// an hour.
const TIME_DEFAULT: Span = Span::from_hours(1);
/// A few million requests: what a program takes into memory on a small machine.
const SIZE_DEFAULT: ByteSize = ByteSize::from_mib(256);

/// Less would make a file of each row group.
const SIZE_MIN: ByteSize = ByteSize::from_mib(1);
/// What is kept in memory of the file that is being written grows with it: 5 MB for 1 GiB.
const SIZE_MAX: ByteSize = ByteSize::from_gib(64);
const TIME_MIN: Span = Span::from_secs(1);
const TIME_MAX: Span = Span::from_days(30);

/// A limit on one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rotate {
    /// So many bytes.
    Size(ByteSize),
    /// So long.
    Time(Span),
}

impl FromStr for Rotate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let size: Result<ByteSize, _> = text.parse();
        let time: Result<Span, _> = text.parse();
        match (size, time) {
            (Ok(size), _) => Ok(Self::Size(size)),
            (_, Ok(time)) => Ok(Self::Time(time)),
            _ => Err(format!(
                "`{text}` is neither a size, such as 256MiB, nor a time, such as 1h"
            )),
        }
    }
}

/// The limits on a file: the first that is reached ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rotation {
    size: ByteSize,
    time: Span,
}

impl Rotation {
    /// The limits that were given, and the default where none was.
    ///
    /// # Errors
    ///
    /// One is out of range.
    pub(super) fn of(given: &[Rotate]) -> Result<Self, Failure> {
        let mut rotation = Self {
            size: SIZE_DEFAULT,
            time: TIME_DEFAULT,
        };
        for limit in given {
            match *limit {
                Rotate::Size(size) if (SIZE_MIN..=SIZE_MAX).contains(&size) => {
                    rotation.size = size;
                }
                Rotate::Time(time) if (TIME_MIN..=TIME_MAX).contains(&time) => {
                    rotation.time = time;
                }
                Rotate::Size(size) => return Err(out_of_range(&size, &SIZE_MIN, &SIZE_MAX)),
                Rotate::Time(time) => return Err(out_of_range(&time, &TIME_MIN, &TIME_MAX)),
            }
        }
        Ok(rotation)
    }

    /// Bytes after which a file is finished.
    pub(super) fn bytes(&self) -> u64 {
        self.size.bytes()
    }

    /// How long a file is written to.
    pub(super) fn time(&self) -> Duration {
        self.time.as_duration()
    }
}

impl fmt::Display for Rotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} or {}", self.size, self.time)
    }
}

fn out_of_range(
    given: &dyn fmt::Display,
    least: &dyn fmt::Display,
    most: &dyn fmt::Display,
) -> Failure {
    Failure::usage(
        format!("cannot use `{given}` for `--record-rotate`"),
        format!("it is not between {least} and {most}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &[&str], expected: Result<&str, &str>) {
        let limits: Result<Vec<Rotate>, String> = given.iter().map(|text| text.parse()).collect();
        let found = limits
            .and_then(|limits| Rotation::of(&limits).map_err(|failure| failure.cause))
            .map(|rotation| rotation.to_string());
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(found, expected, "{given:?}");
    }

    #[test]
    fn rotation_takes_a_size_and_a_time_limit_each_with_default_and_bounds() {
        check(&[], Ok("256MiB or 1h"));
        check(&["1GiB"], Ok("1GiB or 1h"));
        check(&["10min"], Ok("256MiB or 10min"));
        check(&["1d", "1MiB"], Ok("1MiB or 1d"));
        check(&["1s"], Ok("256MiB or 1s"));
        check(&["999ms"], Err("it is not between 1s and 30d"));
        check(&["1023KiB"], Err("it is not between 1MiB and 64GiB"));
        check(&["65GiB"], Err("it is not between 1MiB and 64GiB"));
        check(
            &["hourly"],
            Err("`hourly` is neither a size, such as 256MiB, nor a time, such as 1h"),
        );
    }
}
