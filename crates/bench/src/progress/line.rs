//! The line itself.

use std::fmt;
use std::time::Duration;

/// What is on it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) phase: String,
    /// Of the last seconds.
    pub(super) responses: u64,
    /// At least 1.
    pub(super) seconds: u64,
    /// Of the last seconds.
    pub(super) hits: u64,
    pub(super) p99_us: u64,
    /// Since the start.
    pub(super) errors: u64,
    /// Since the start.
    pub(super) wrong: u64,
    pub(super) passed: Duration,
    /// `None` where it is not known.
    pub(super) left: Option<Duration>,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<9} {:>7}/s",
            self.phase,
            self.responses / self.seconds.max(1)
        )?;
        match self.responses {
            0 => write!(f, "   no response")?,
            responses => {
                let permille = self.hits * 1000 / responses;
                write!(
                    f,
                    "   hit ratio {}.{} %   p99 {}",
                    permille / 10,
                    permille % 10,
                    Time(self.p99_us)
                )?;
            }
        }
        write!(f, "   errors {}", self.errors)?;
        if self.wrong > 0 {
            write!(f, "   WRONG {}", self.wrong)?;
        }
        match self.left {
            Some(left) => write!(f, "   {} left", Clock(left)),
            None => write!(f, "   {} passed", Clock(self.passed)),
        }
    }
}

/// Microseconds with the unit that fits.
struct Time(u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            us @ 0..1000 => write!(f, "{us} us"),
            us @ 1000..10_000_000 => write!(f, "{} ms", us / 1000),
            us => write!(f, "{} s", us / 1_000_000),
        }
    }
}

/// `1:05`, `2:03:04`.
struct Clock(Duration);

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        match hours {
            0 => write!(f, "{minutes}:{seconds:02}"),
            hours => write!(f, "{hours}:{minutes:02}:{seconds:02}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_line_shows_rate_ratio_quantile_and_time_with_units() {
        let line = Line {
            phase: "phase-2".into(),
            responses: 15_239,
            seconds: 10,
            hits: 3672,
            p99_us: 312_400,
            errors: 0,
            wrong: 0,
            passed: Duration::from_secs(7384),
            left: Some(Duration::from_secs(102)),
        };
        let expected = "phase-2      1523/s   hit ratio 24.0 %   p99 312 ms   errors 0   1:42 left";
        assert_eq!(line.to_string(), expected);
        let line = Line {
            responses: 0,
            errors: 4,
            wrong: 1,
            left: None,
            ..line
        };
        let expected = "phase-2         0/s   no response   errors 4   WRONG 1   2:03:04 passed";
        assert_eq!(line.to_string(), expected);
        assert_eq!(Time(999).to_string(), "999 us");
        assert_eq!(Time(10_000_000).to_string(), "10 s");
    }
}
