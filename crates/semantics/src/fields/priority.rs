//! `Priority`: how urgent a client finds a response (RFC 9218 §4).

use crate::fields::structured::{BareItem, read_dictionary};

/// How urgent a response is to its client: 0 is the most, 7 the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Urgency(u8);

impl Urgency {
    /// How many there are.
    pub const COUNT: usize = 8;

    /// The least.
    pub const LEAST: Self = Self(7);

    /// The urgency that the value of a `Priority` field says; the default for one that does not
    /// parse, or says none (§4.1).
    #[must_use]
    pub fn of(value: &[u8]) -> Self {
        let mut said = None;
        let read = read_dictionary(value, &mut |key, item| {
            if key == b"u" {
                said = Some(item);
            }
        });
        match (read, said) {
            (Ok(()), Some(BareItem::Integer(urgency))) => {
                let urgency = usize::try_from(urgency).ok();
                urgency.and_then(Self::new).unwrap_or_default()
            }
            _ => Self::default(),
        }
    }

    /// The urgency with this number; `None` beyond 7.
    #[must_use]
    pub fn new(number: usize) -> Option<Self> {
        let number = u8::try_from(number).ok()?;
        (number <= Self::LEAST.0).then_some(Self(number))
    }

    /// As a number, to 7.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Default for Urgency {
    fn default() -> Self {
        Self(3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgency_is_what_the_field_says_or_three() {
        for (value, expected) in [
            ("u=0", 0),
            ("u=7, i", 7),
            ("i, u=5;x=1", 5),
            ("u=1, u=2", 2),
            ("", 3),
            ("i", 3),
            ("u", 3),
            ("u=8", 3),
            ("u=-1", 3),
            ("u=1.0", 3),
            ("u=\"1\"", 3),
            ("u=1,", 3),
            ("U=1", 3),
            ("u=99999999999", 3),
        ] {
            assert_eq!(Urgency::of(value.as_bytes()).index(), expected, "{value}");
        }
    }
}
