//! Sizes of caches as given: `1%,10%`, `64MiB`, `0.1%..100%:25`.

use std::fmt;
use std::str::FromStr;

/// A list of sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes(Vec<Item>);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Item {
    One(Size),
    /// Each larger than the one before by the same factor.
    Range {
        from: Size,
        to: Size,
        points: u32,
    },
}

/// A size of a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// So many bytes.
    Bytes(u64),
    /// So much of the footprint, percent.
    Percent(f64),
}

/// Points of a range that says nothing.
const POINTS: u32 = 20;

/// Sizes of one list.
pub const SIZES_MAX: usize = 1000;

const UNITS: [(&str, u64); 5] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

impl Sizes {
    /// In bytes, rising, each once; the least is 1 byte.
    #[must_use]
    pub fn of(&self, footprint_bytes: u64) -> Vec<u64> {
        let mut all: Vec<u64> = self
            .0
            .iter()
            .flat_map(|item| item.bytes(footprint_bytes))
            .map(|bytes| bytes.max(1))
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether some are shares of the footprint.
    #[must_use]
    pub fn needs_footprint(&self) -> bool {
        let is_share = |size: &Size| matches!(size, Size::Percent(_));
        self.0.iter().any(|item| match item {
            Item::One(size) => is_share(size),
            Item::Range { from, to, .. } => is_share(from) || is_share(to),
        })
    }
}

impl Size {
    /// In bytes; a share of the footprint is rounded down.
    #[must_use]
    pub fn of(self, footprint_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => {
                whole(super::counts::float(footprint_bytes) * percent / 100.0)
            }
        }
    }
}

impl Item {
    fn bytes(self, footprint_bytes: u64) -> Vec<u64> {
        match self {
            Self::One(size) => vec![size.of(footprint_bytes)],
            Self::Range { from, to, points } => {
                let (from, to) = (
                    from.of(footprint_bytes).max(1),
                    to.of(footprint_bytes).max(1),
                );
                let factor = super::counts::float(to) / super::counts::float(from);
                let middle = (1..points.saturating_sub(1)).map(|step| {
                    let share = f64::from(step) / f64::from(points - 1);
                    whole(super::counts::float(from) * factor.powf(share))
                });
                std::iter::once(from).chain(middle).chain([to]).collect()
            }
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; what is beyond 2^64 saturates"
)]
fn whole(bytes: f64) -> u64 {
    bytes as u64
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let items: Vec<Item> = text.split(',').map(item).collect::<Result<_, _>>()?;
        let points: usize = items
            .iter()
            .map(|item| match item {
                Item::One(_) => 1,
                Item::Range { points, .. } => *points as usize,
            })
            .sum();
        if points > SIZES_MAX {
            return Err(format!(
                "these are {points} sizes, and at most {SIZES_MAX} are taken"
            ));
        }
        Ok(Self(items))
    }
}

fn item(text: &str) -> Result<Item, String> {
    let Some((from, rest)) = text.split_once("..") else {
        return Ok(Item::One(text.parse()?));
    };
    let (to, points) = match rest.split_once(':') {
        None => (rest, POINTS),
        Some((to, points)) => {
            let points = points.trim().parse().ok().filter(|points| *points >= 2);
            (
                to,
                points.ok_or_else(|| {
                    format!("`{text}` has no number of points, at least 2, after `:`")
                })?,
            )
        }
    };
    Ok(Item::Range {
        from: from.parse()?,
        to: to.parse()?,
        points,
    })
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = || {
            format!(
                "`{text}` is no size; sizes are such as `64MiB` or `10%`, ranges such as `0.1%..100%:25`"
            )
        };
        if let Some(number) = text.strip_suffix('%') {
            let percent: f64 = number.trim().parse().map_err(|_| wrong())?;
            if percent.is_finite() && percent > 0.0 {
                return Ok(Self::Percent(percent));
            }
            return Err(wrong());
        }
        let found = UNITS
            .iter()
            .find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
        let (number, unit) = found.unwrap_or((text, 1));
        let number: u64 = number.trim().parse().map_err(|_| wrong())?;
        number
            .checked_mul(unit)
            .filter(|bytes| *bytes > 0)
            .map(Self::Bytes)
            .ok_or_else(wrong)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Bytes(bytes) => {
                let (unit, of) = UNITS
                    .iter()
                    .find(|(_, of)| bytes.is_multiple_of(*of))
                    .unwrap_or(&("B", 1));
                write!(f, "{}{unit}", bytes / of)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_list_is_parsed_to_its_numbers_of_bytes() {
        let check = |text: &str, expected: &[u64]| {
            let sizes: Sizes = text.parse().unwrap();
            assert_eq!(sizes.of(561_277_707), expected, "{text}");
        };
        check("1%, 10%", &[5_612_777, 56_127_770]);
        check("100%", &[561_277_707]);
        check("64MiB,1KiB,7,7B", &[7, 1024, 64 << 20]);
        check("1KiB..4KiB:3", &[1024, 2048, 4096]);
        check("0.0000000001%", &[1]);
        assert!("1%".parse::<Sizes>().unwrap().needs_footprint());
        assert!(!"1..5".parse::<Sizes>().unwrap().needs_footprint());
        assert_eq!("1%..100%".parse::<Sizes>().unwrap().of(1_000_000).len(), 20);
    }

    #[test]
    fn invalid_size_is_refused() {
        for text in [
            "",
            "0",
            "0%",
            "-1%",
            "x",
            "1MB",
            "1..",
            "1..5:1",
            "1..5:x",
            "1%..100%:5000",
            "NaN%",
        ] {
            assert!(text.parse::<Sizes>().is_err(), "{text}");
        }
    }

    #[test]
    fn size_round_trips_as_text() {
        for size in [Size::Bytes(64 << 20), Size::Bytes(1001), Size::Percent(0.1)] {
            assert_eq!(size.to_string().parse(), Ok(size));
        }
    }
}
