//! The field `Weir-Bench`: which request a response answers.
//!
//! A client marks every request with an [`Id`] of its own, `Weir-Bench: <phase>-<share>-<number>`,
//! each in lower-case hexadecimal. The origin says in its response which request it answers and
//! which version of the target it sent ([`ResponseMark`]): `Weir-Bench: <id> <version>`, the
//! version in decimal, followed by ` validated` in a 304, and by ` @<time>`: when the origin began
//! to answer, microseconds since 1970 by its wall clock, in decimal. A request without an id, which
//! a proxy made for itself, is answered with `-` in place of one.
//!
//! A stored response keeps the mark it was stored with. So a client knows without the proxy's word
//! what it got: another request's id is a hit, its own id was forwarded, and its own id with
//! `validated` in a 200 is stored content that was validated at the origin (a 304 updates the
//! stored fields, RFC 9111 §3.2). A hit that the origin began after the client's own request was
//! sent is a collapsed request: it waited for another's fetch.
//!
//! Before a run each host of clients sends one request with [`PROBE`] in place of an id. The origin
//! answers that with 200 and counts nothing.

use weir_wire::write;

/// The name of the field.
pub const FIELD: &str = "Weir-Bench";

/// In place of an id where there was none.
const NO_ID: &[u8] = b"-";

/// In place of an id in the request that is sent before the run.
pub const PROBE: &str = "probe";

/// What precedes the time at which the origin began.
const BEGUN: u8 = b'@';

/// What follows the version in a 304.
const VALIDATED: &[u8] = b"validated";

/// One request of one run. No two requests of a run have the same, also not one that is repeated by
/// its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// The phase that the request belongs to, from 0.
    pub phase: u8,
    /// Which of the participants sent it, from 0.
    pub share: u32,
    /// Which of that participant's requests it is, from 0. Numbers may start again with each phase.
    pub number: u64,
}

/// What the origin says about its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResponseMark {
    /// The request it answers; `None` if that had no id, or one that cannot be read.
    pub id: Option<Id>,
    /// The version of the target that was current.
    pub version: u64,
    /// Was it a 304?
    pub is_validated: bool,
    /// When the origin began to answer, microseconds since 1970 by its wall clock; `None` where
    /// there was no id.
    pub begun_us: Option<u64>,
}

impl Id {
    /// Reads the value of a request's field and nothing else.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let mut parts = value.split(|&byte| byte == b'-');
        let (phase, share, number) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        Some(Self {
            phase: u8::try_from(hexadecimal(phase)?).ok()?,
            share: u32::try_from(hexadecimal(share)?).ok()?,
            number: hexadecimal(number)?,
        })
    }

    /// Appends the value of a request's field.
    pub fn write(self, out: &mut Vec<u8>) {
        write::hexadecimal(out, u64::from(self.phase));
        out.push(b'-');
        write::hexadecimal(out, u64::from(self.share));
        out.push(b'-');
        write::hexadecimal(out, self.number);
    }
}

impl ResponseMark {
    /// Reads the value of a response's field and nothing else.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let mut words = value.split(|&byte| byte == b' ');
        let (id, version) = (words.next()?, words.next()?);
        let mut word = words.next();
        let is_validated = word == Some(VALIDATED);
        if is_validated {
            word = words.next();
        }
        let begun_us = match word {
            None => None,
            Some(word) => Some(decimal(word.strip_prefix(&[BEGUN])?)?),
        };
        if words.next().is_some() {
            return None;
        }
        let id = if id == NO_ID {
            None
        } else {
            Some(Id::parse(id)?)
        };
        Some(Self {
            id,
            version: decimal(version)?,
            is_validated,
            begun_us,
        })
    }

    /// Appends the value of a response's field.
    pub fn write(self, out: &mut Vec<u8>) {
        match self.id {
            Some(id) => id.write(out),
            None => out.extend_from_slice(NO_ID),
        }
        out.push(b' ');
        write::decimal(out, self.version);
        if self.is_validated {
            out.push(b' ');
            out.extend_from_slice(VALIDATED);
        }
        if let Some(begun_us) = self.begun_us {
            out.extend_from_slice(&[b' ', BEGUN]);
            write::decimal(out, begun_us);
        }
    }
}

/// One to sixteen digits in lower case; a leading zero is none of ours, except in zero.
fn hexadecimal(text: &[u8]) -> Option<u64> {
    if !(1..=16).contains(&text.len()) || (text.len() > 1 && text[0] == b'0') {
        return None;
    }
    text.iter().try_fold(0, add_digit)
}

/// `value` with a hexadecimal digit in lower case behind it; the caller sees to it that there are
/// at most sixteen.
fn add_digit(value: u64, byte: &u8) -> Option<u64> {
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        _ => return None,
    };
    Some(value << 4 | u64::from(digit))
}

fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || (text.len() > 1 && text[0] == b'0') {
        return None;
    }
    text.iter().try_fold(0_u64, |value, &byte| {
        if !byte.is_ascii_digit() {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check_id(value: &str, expected: Option<(u8, u32, u64)>) {
        let expected = expected.map(|(phase, share, number)| Id {
            phase,
            share,
            number,
        });
        assert_eq!(Id::parse(value.as_bytes()), expected, "{value:?}");
    }

    #[test]
    fn request_id_is_parsed_only_in_its_exact_form() {
        check_id("0-0-0", Some((0, 0, 0)));
        check_id("ff-a-1f", Some((255, 10, 31)));
        check_id("1-ffffffff-ffffffffffffffff", Some((1, u32::MAX, u64::MAX)));
        for value in [
            "",
            "-",
            "1",
            "1-2",
            "1-2-3-4",
            "1-2-",
            "-2-3",
            "100-0-0",
            "1-100000000-0",
            "1-2-10000000000000000",
            "01-2-3",
            "1-2-A",
            "1-2-g",
            " 1-2-3",
            "1-2-3 ",
            "+1-2-3",
            "1-2-3, 1-2-4",
        ] {
            check_id(value, None);
        }
    }

    fn check_answered(value: &str, expected: Option<(Option<u64>, u64, bool, Option<u64>)>) {
        let expected = expected.map(|(number, version, is_validated, begun_us)| ResponseMark {
            id: number.map(|number| Id {
                phase: 1,
                share: 2,
                number,
            }),
            version,
            is_validated,
            begun_us,
        });
        assert_eq!(ResponseMark::parse(value.as_bytes()), expected, "{value:?}");
    }

    #[test]
    fn origin_mark_is_parsed_only_in_its_exact_form() {
        check_answered("1-2-a 17", Some((Some(10), 17, false, None)));
        check_answered("1-2-a 0 validated", Some((Some(10), 0, true, None)));
        check_answered(
            "- 18446744073709551615",
            Some((None, u64::MAX, false, None)),
        );
        check_answered("1-2-a 17 @0", Some((Some(10), 17, false, Some(0))));
        check_answered(
            "1-2-a 0 validated @950",
            Some((Some(10), 0, true, Some(950))),
        );
        for value in [
            "",
            "1-2-a",
            "1-2-a ",
            "1-2-a 18446744073709551616",
            "1-2-a 017",
            "1-2-a 1a",
            "1-2-a  1",
            "1-2-a 1 fresh",
            "1-2-a 1 validated ",
            "1-2-a 1 validated validated",
            "1-2-a 1 950",
            "1-2-a 1 @",
            "1-2-a 1 @950 validated",
            "1-2-a 1 @950 @951",
            "-- 1",
            "x 1",
        ] {
            check_answered(value, None);
        }
    }

    proptest! {
        #[test]
        fn written_id_and_origin_mark_parse_back_unchanged(
            phase: u8, share: u32, number: u64, has_id: bool, version: u64, is_validated: bool,
            begun_us: Option<u64>
        ) {
            let id = Id { phase, share, number };
            let mut text = Vec::new();
            id.write(&mut text);
            prop_assert_eq!(Id::parse(&text), Some(id));
            let answered = ResponseMark { id: has_id.then_some(id), version, is_validated, begun_us };
            text.clear();
            answered.write(&mut text);
            prop_assert_eq!(ResponseMark::parse(&text), Some(answered));
        }
    }
}
