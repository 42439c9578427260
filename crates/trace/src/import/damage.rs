//! Damage in a source, and counts of what was left out.

use std::collections::BTreeMap;
use std::fmt;

/// Where in a source something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line; the first is 1.
    Line(u64),
    /// A record of fixed length; the first is 1.
    Record(u64),
    /// An entry of a HAR; the first is 1.
    Entry(u64),
    /// A packet of a capture; the first is 1.
    Packet(u64),
    /// A byte of the uncompressed source; the first is 0.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Record(number) => write!(f, "record {number}"),
            Self::Entry(number) => write!(f, "entry {number}"),
            Self::Packet(number) => write!(f, "packet {number}"),
            Self::Byte(offset) => write!(f, "byte {offset}"),
        }
    }
}

/// An item that cannot be read, with its place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where.
    pub place: Place,
    /// What is wrong there, with the value: a fragment.
    pub what: String,
    /// The kind of damage, one of [`reason`]: under which it is counted if the caller continues.
    pub reason: &'static str,
    /// What the caller can pass to go on: a fragment, if there is more than [`Damage::HINT_SKIP`].
    pub hint: Option<String>,
    /// Whether there may be more behind it. Where the structure of the source is lost, or it cannot
    /// be read any more, there is not.
    pub goes_on: bool,
}

impl Damage {
    /// What helps against any damage.
    pub const HINT_SKIP: &str =
        "use `--on-damage skip` to leave out what cannot be read; it is counted";

    /// Damage to one item; the next one can be read.
    pub(crate) fn item(place: Place, reason: &'static str, what: impl Into<String>) -> Self {
        Self {
            place,
            what: what.into(),
            reason,
            hint: None,
            goes_on: true,
        }
    }

    /// Damage that ends the source.
    pub(crate) fn end(place: Place, reason: &'static str, what: impl Into<String>) -> Self {
        Self {
            goes_on: false,
            ..Self::item(place, reason, what)
        }
    }

    /// The source could not be read on: the device, or the compressed stream, which is damaged or
    /// cut off.
    pub(crate) fn unread(place: Place, error: &std::io::Error) -> Self {
        let cut = error.kind() == std::io::ErrorKind::UnexpectedEof;
        let what = if cut {
            format!("the compressed stream is cut off: {error}")
        } else {
            error.to_string()
        };
        let reason = if cut { reason::CUT_OFF } else { reason::UNREAD };
        Self::end(place, reason, what)
    }

    /// The same with something else to do about it than to skip it.
    pub(crate) fn hinted(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &str {
        self.hint.as_deref().unwrap_or(Self::HINT_SKIP)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

impl std::error::Error for Damage {}

/// Why something is no row: the words that counts go by.
pub mod reason {
    /// A line without anything in it, or a comment.
    pub const BLANK: &str = "blank";
    /// The request is no HTTP: noise on the port, an ICP query, an error before a request was
    /// understood.
    pub const NOT_HTTP: &str = "not-http";
    /// A URL that no request goes out for: `data:`, `blob:`, `about:`, an extension's.
    pub const NO_REQUEST: &str = "no-request";
    /// Answered by the browser's own cache: nothing went over a network.
    pub const BROWSER_CACHE: &str = "browser-cache";
    /// The size is missing, and such items are skipped.
    pub const MISSING_SIZE: &str = "missing-size";
    /// A request of a proxy that none of its clients was waiting for.
    pub const NEXT_HOP: &str = "next-hop-without-client";
    /// Damage: a line or entry longer than we hold.
    pub const TOO_LONG: &str = "damaged-too-long";
    /// Damage: fields are missing.
    pub const FIELDS: &str = "damaged-fields";
    /// Damage: a time that is none.
    pub const TIME: &str = "damaged-time";
    /// Damage: a status code that is none.
    pub const STATUS: &str = "damaged-status";
    /// Damage: a size that is no number.
    pub const SIZE: &str = "damaged-size";
    /// Damage: another number that is none.
    pub const NUMBER: &str = "damaged-number";
    /// Damage: not the JSON it should be.
    pub const JSON: &str = "damaged-json";
    /// Damage: a packet or block of a capture that contradicts itself.
    pub const PACKET: &str = "damaged-packet";
    /// Damage: the source ends in the middle of an item.
    pub const CUT_OFF: &str = "damaged-cut-off";
    /// Damage: the source could not be read on.
    pub const UNREAD: &str = "damaged-unread";
}

/// How much was left out, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped(BTreeMap<&'static str, u64>);

impl Dropped {
    /// One more.
    pub fn count(&mut self, reason: &'static str) {
        self.count_many(reason, 1);
    }

    /// So many more.
    pub fn count_many(&mut self, reason: &'static str, count: u64) {
        if count > 0 {
            *self.0.entry(reason).or_default() += count;
        }
    }

    /// All that the other one has, too.
    pub fn add(&mut self, other: &Self) {
        for (reason, count) in other.iter() {
            self.count_many(reason, count);
        }
    }

    /// In the order of the words.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(reason, count)| (*reason, *count))
    }

    /// All reasons together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}
