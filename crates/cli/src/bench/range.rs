//! Numbers of clients: `8..96:8`, `8,16,64`.

use std::str::FromStr;

/// The numbers, in the order they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(super) numbers: Vec<u32>,
}

/// More points than a figure shows.
const NUMBERS_MAX: usize = 1000;

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = match text.split_once("..") {
            Some((from, rest)) => progression(from, rest)?,
            None => text.split(',').map(number).collect::<Result<Vec<_>, _>>()?,
        };
        refuse_too_many(numbers.len())?;
        Ok(Self { numbers })
    }
}

fn progression(from: &str, rest: &str) -> Result<Vec<u32>, String> {
    let (to, step) = match rest.split_once(':') {
        Some((to, step)) => (number(to)?, number(step)?),
        None => (number(rest)?, 1),
    };
    let from = number(from)?;
    if from > to {
        return Err(format!(
            "{from} is more than {to}; did you mean `{to}..{from}`?"
        ));
    }
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    // counted before they are written down: a slip of the finger makes billions
    refuse_too_many((to - from) as usize / step + 1)?;
    Ok((from..=to).step_by(step).collect())
}

fn refuse_too_many(points: usize) -> Result<(), String> {
    if points > NUMBERS_MAX {
        return Err(format!(
            "these are {points} points, and at most {NUMBERS_MAX} are drawn"
        ));
    }
    Ok(())
}

fn number(text: &str) -> Result<u32, String> {
    match text.trim().parse() {
        Ok(0) => Err("the least is 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err(format!(
            "`{text}` is no number; a range is such as `8..96:8`, a list such as `8,16,64`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_includes_its_end_and_a_bad_range_is_refused_with_the_reason() {
        let check = |text: &str, expected: Result<&[u32], &str>| {
            let found = text.parse::<Range>().map(|range| range.numbers);
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        };
        check("8..24:8", Ok(&[8, 16, 24]));
        check("8..23:8", Ok(&[8, 16]));
        check("2..4", Ok(&[2, 3, 4]));
        check("64", Ok(&[64]));
        check("8, 16,64", Ok(&[8, 16, 64]));
        check("8..4", Err("did you mean `4..8`?"));
        check("8..96:0", Err("the least is 1"));
        check("0", Err("the least is 1"));
        check("8-96", Err("`8-96` is no number"));
        check("1..4000000000", Err("at most 1000"));
    }
}
