//! The field lines of a head, as a module sees and changes them.

mod rule;

pub use rule::{FieldRule, FieldRuleError};

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use weir_semantics::{Known, identify, is_hop_by_hop, is_token};

/// Most field lines of a head that modules have changed.
pub const FIELDS_MAX: usize = 512;

/// Most bytes of all names and values of a head that modules have changed.
pub const SECTION_BYTES_MAX: usize = 64 * 1024;

/// Fields that describe content byte by byte, and those that say what follows it: there are no
/// trailers behind content that modules take.
const OF_BYTES: [&str; 7] = [
    "content-length",
    "trailer",
    "accept-ranges",
    "content-md5",
    "digest",
    "content-digest",
    "repr-digest",
];

/// Bytes of names and values that were replaced or removed, from which on the others are copied
/// together: a module that sets one field again and again takes no more memory.
const UNUSED_BYTES_MAX: usize = 4 * 1024;

/// Field lines in their order. Names are compared without regard to case, and keep their spelling.
///
/// The text of all lines is in two blocks: a head of many lines is made with three allocations.
#[derive(Clone, Default)]
pub struct Fields {
    names: String,
    values: Vec<u8>,
    lines: Vec<Line>,
    is_changed: bool,
}

/// Where a line is in the blocks.
#[derive(Clone, Debug)]
struct Line {
    name: Range<usize>,
    value: Range<usize>,
}

impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        self.is_changed == other.is_changed && self.iter().eq(other.iter())
    }
}

impl Eq for Fields {}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.iter();
        let lines = lines.map(|(name, value)| (name, String::from_utf8_lossy(value)));
        f.debug_map().entries(lines).finish()
    }
}

/// Why a field is not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldError {
    /// The name is no token (RFC 9110 §5.6.2).
    BadName,
    /// The value has a CR, LF or NUL (RFC 9110 §5.5), or a space or tab at one of its ends.
    BadValue,
    /// The field frames the message, is for one connection, or says which way the message took: the
    /// proxy writes it itself. Names with `_` in the place of `-` count as these: some servers read
    /// both alike.
    Reserved,
    /// The head would have more than [`FIELDS_MAX`] lines or [`SECTION_BYTES_MAX`] bytes.
    TooLarge,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName => f.write_str("the field name is not a token (RFC 9110 section 5.6.2)"),
            Self::BadValue => f.write_str(
                "the field value has a CR, LF or NUL, or begins or ends with a space or tab",
            ),
            Self::Reserved => f.write_str("the proxy writes this field itself"),
            Self::TooLarge => write!(
                f,
                "the head would have more than {FIELDS_MAX} field lines or {SECTION_BYTES_MAX} bytes"
            ),
        }
    }
}

impl core::error::Error for FieldError {}

impl Fields {
    /// The lines of a head that was received, or is about to be sent.
    pub fn received<'a>(lines: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut fields = Self::default();
        for (name, value) in lines {
            fields.push(name, value);
        }
        fields
    }

    /// No lines.
    pub(crate) const fn new() -> Self {
        Self {
            names: String::new(),
            values: Vec::new(),
            lines: Vec::new(),
            is_changed: false,
        }
    }

    /// How many lines there are.
    pub(crate) fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Lines were added before these were copied.
    pub(crate) fn note_change(&mut self) {
        self.is_changed = true;
    }

    /// Room for so many lines and bytes of names and values.
    pub(crate) fn with_capacity(lines: usize, names: usize, values: usize) -> Self {
        Self {
            names: String::with_capacity(names),
            values: Vec::with_capacity(values),
            lines: Vec::with_capacity(lines),
            is_changed: false,
        }
    }

    pub(crate) fn push(&mut self, name: &str, value: &[u8]) {
        let line = Line {
            name: self.names.len()..self.names.len() + name.len(),
            value: self.values.len()..self.values.len() + value.len(),
        };
        self.names.push_str(name);
        self.values.extend_from_slice(value);
        self.lines.push(line);
    }

    /// The line at a place.
    pub(crate) fn at(&self, place: usize) -> Option<(&str, &[u8])> {
        self.lines.get(place).map(|line| self.line(line))
    }

    fn line(&self, line: &Line) -> (&str, &[u8]) {
        (
            &self.names[line.name.clone()],
            &self.values[line.value.clone()],
        )
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.lines.iter().map(|line| self.line(line))
    }

    /// The value of the first line with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let mut lines = self.iter();
        lines
            .find(|line| line.0.eq_ignore_ascii_case(name))
            .map(|line| line.1)
    }

    /// The values of all lines with this name.
    pub fn all<'s, 'n>(&'s self, name: &'n str) -> impl Iterator<Item = &'s [u8]> + use<'s, 'n> {
        let lines = self
            .iter()
            .filter(move |line| line.0.eq_ignore_ascii_case(name));
        lines.map(|line| line.1)
    }

    /// Adds a line behind the others.
    ///
    /// # Errors
    ///
    /// It is not added.
    pub fn add(&mut self, name: &str, value: &[u8]) -> Result<(), FieldError> {
        check(name, value)?;
        self.check_room(name.len() + value.len())?;
        self.push(name, value);
        self.is_changed = true;
        Ok(())
    }

    /// Puts one line in the place of all with this name; behind the others if there was none.
    ///
    /// # Errors
    ///
    /// Nothing is changed.
    pub fn set(&mut self, name: &str, value: &[u8]) -> Result<(), FieldError> {
        check(name, value)?;
        let Some(at) = self.place(name) else {
            return self.add(name, value);
        };
        if self.get(name) == Some(value) && self.all(name).nth(1).is_none() {
            return Ok(());
        }
        self.check_room(value.len())?;
        self.replace(at, value);
        let mut place = 0;
        self.retain(|known, _| {
            place += 1;
            place - 1 <= at || !known.eq_ignore_ascii_case(name)
        });
        self.is_changed = true;
        Ok(())
    }

    /// Removes all lines with this name; whether there was one.
    ///
    /// # Errors
    ///
    /// The proxy writes the field itself.
    pub fn remove(&mut self, name: &str) -> Result<bool, FieldError> {
        check(name, b"")?;
        let before = self.lines.len();
        self.retain(|known, _| !known.eq_ignore_ascii_case(name));
        let is_removed = self.lines.len() < before;
        self.is_changed |= is_removed;
        Ok(is_removed)
    }

    /// Removes Content-Encoding: the codings are undone.
    pub(crate) fn remove_codings(&mut self) {
        let is_coding = |name: &str| name.eq_ignore_ascii_case("content-encoding");
        self.retain(|name, _| !is_coding(name));
        self.is_changed = true;
    }

    /// Removes what describes content byte by byte, as that is changed.
    pub(crate) fn forget_content(&mut self) {
        self.retain(|name, _| {
            !OF_BYTES
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known))
        });
        self.is_changed = true;
    }

    /// Removes the length, and what says that trailers follow: the content is framed anew, and they
    /// are dropped.
    pub(crate) fn forget_length(&mut self) {
        let before = self.lines.len();
        self.retain(|name, _| {
            !["content-length", "trailer"]
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known))
        });
        self.is_changed |= self.lines.len() < before;
    }

    /// Gives the line at a place another value.
    fn replace(&mut self, at: usize, value: &[u8]) {
        let start = self.values.len();
        self.values.extend_from_slice(value);
        self.lines[at].value = start..self.values.len();
        self.gather();
    }

    fn retain(&mut self, mut keeps: impl FnMut(&str, &[u8]) -> bool) {
        let (names, values) = (&self.names, &self.values);
        self.lines
            .retain(|line| keeps(&names[line.name.clone()], &values[line.value.clone()]));
        self.gather();
    }

    /// Copies what is used together, if much is not.
    fn gather(&mut self) {
        if self.names.len() + self.values.len() <= UNUSED_BYTES_MAX {
            return;
        }
        let used: usize = self.iter().map(|line| line.0.len() + line.1.len()).sum();
        if self.names.len() + self.values.len() - used > UNUSED_BYTES_MAX {
            let mut gathered = Self::received(self.iter());
            gathered.is_changed = self.is_changed;
            *self = gathered;
        }
    }

    /// Whether a line was added, set or removed.
    #[must_use]
    pub const fn is_changed(&self) -> bool {
        self.is_changed
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.iter()
            .position(|line| line.0.eq_ignore_ascii_case(name))
    }

    fn check_room(&self, more: usize) -> Result<(), FieldError> {
        let bytes: usize = self.iter().map(|line| line.0.len() + line.1.len()).sum();
        if self.lines.len() >= FIELDS_MAX || bytes + more > SECTION_BYTES_MAX {
            return Err(FieldError::TooLarge);
        }
        Ok(())
    }
}

/// Whether a module may write this field with this value.
pub(crate) fn check(name: &str, value: &[u8]) -> Result<(), FieldError> {
    if !is_token(name.as_bytes()) {
        return Err(FieldError::BadName);
    }
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    // all of them are looked at: many at a time, which ends no earlier in most values anyway
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
    if value.iter().fold(false, |found, byte| found | is_end(byte))
        || is_blank(value.first())
        || is_blank(value.last())
    {
        return Err(FieldError::BadValue);
    }
    let hyphenated = name.contains('_').then(|| name.replace('_', "-"));
    if identify(hyphenated.as_deref().unwrap_or(name)).is_some_and(is_reserved) {
        return Err(FieldError::Reserved);
    }
    Ok(())
}

/// Whether the proxy alone writes this field.
const fn is_reserved(known: Known) -> bool {
    is_hop_by_hop(known)
        || matches!(
            known,
            Known::Age
                | Known::CacheStatus
                | Known::CdnLoop
                | Known::ContentLength
                | Known::ContentRange
                | Known::Expect
                | Known::Host
                | Known::MaxForwards
                | Known::ProxyStatus
                | Known::Trailer
                | Known::Via
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields() -> Fields {
        Fields::received([
            ("Host", &b"a"[..]),
            ("X-One", b"1"),
            ("accept", b"*/*"),
            ("x-one", b"2"),
        ])
    }

    fn lines(fields: &Fields) -> Vec<(&str, &[u8])> {
        fields.iter().collect()
    }

    #[test]
    fn fields_are_found_whatever_their_case() {
        let fields = fields();
        assert_eq!(fields.get("X-ONE"), Some(&b"1"[..]));
        assert_eq!(fields.all("x-one").count(), 2);
        assert_eq!(fields.get("missing"), None);
        assert!(!fields.is_changed());
    }

    #[test]
    fn set_field_replaces_all_lines_with_its_name() {
        let mut set = fields();
        assert_eq!(set.set("x-ONE", b"3"), Ok(()));
        assert_eq!(
            lines(&set),
            [("Host", &b"a"[..]), ("X-One", b"3"), ("accept", b"*/*"),]
        );
        assert!(set.is_changed());
        let mut set = fields();
        assert_eq!(set.set("X-New", b"4"), Ok(()));
        assert_eq!(lines(&set)[4], ("X-New", &b"4"[..]));
    }

    #[test]
    fn field_set_to_what_it_is_leaves_the_head_unchanged() {
        let mut set = fields();
        assert_eq!(set.set("Accept", b"*/*"), Ok(()));
        assert!(!set.is_changed());
    }

    #[test]
    fn removed_field_is_gone_in_every_spelling() {
        let mut set = fields();
        assert_eq!(set.remove("X-one"), Ok(true));
        assert_eq!(lines(&set), [("Host", &b"a"[..]), ("accept", b"*/*")]);
        assert_eq!(set.remove("X-one"), Ok(false));
    }

    #[test]
    fn fields_that_frame_a_message_or_name_its_way_are_refused() {
        for name in [
            "Content-Length",
            "transfer-encoding",
            "Connection",
            "TE",
            "Trailer",
            "Upgrade",
            "Keep-Alive",
            "Host",
            "Via",
            "Cache-Status",
            "Age",
            "Content-Range",
            "Expect",
            "Max-Forwards",
            "CDN-Loop",
            "Proxy-Status",
            "Content_Length",
            "transfer_encoding",
        ] {
            let mut set = fields();
            assert_eq!(set.add(name, b"1"), Err(FieldError::Reserved), "{name}");
            assert_eq!(set.set(name, b"1"), Err(FieldError::Reserved), "{name}");
            assert_eq!(set.remove(name), Err(FieldError::Reserved), "{name}");
            assert_eq!(set, fields(), "{name}");
        }
    }

    #[test]
    fn names_and_values_that_could_end_a_line_are_refused() {
        let mut set = fields();
        for name in ["", "a b", "a:", "a\r\nb", "a\n", "ä", "a\0"] {
            assert_eq!(set.add(name, b"1"), Err(FieldError::BadName), "{name:?}");
        }
        for value in [&b"a\r\nb: c"[..], b"a\nb", b"a\rb", b"a\0b", b" a", b"a\t"] {
            assert_eq!(set.add("X", value), Err(FieldError::BadValue), "{value:?}");
            assert_eq!(
                set.set("X-One", value),
                Err(FieldError::BadValue),
                "{value:?}"
            );
        }
        assert_eq!(set, fields());
    }

    #[test]
    fn head_does_not_grow_beyond_its_limits() {
        let mut many = Fields::default();
        let added = (0..10_000)
            .take_while(|_| many.add("X", b"1").is_ok())
            .count();
        assert_eq!(added, FIELDS_MAX);
        let mut large = Fields::default();
        assert_eq!(large.add("X", &[b'a'; SECTION_BYTES_MAX - 1]), Ok(()));
        assert_eq!(large.add("Y", b""), Err(FieldError::TooLarge));
        assert_eq!(large.set("X", &[b'b'; 2]), Err(FieldError::TooLarge));
    }

    #[test]
    fn field_that_is_set_again_and_again_takes_bounded_memory() {
        let mut set = fields();
        for round in 0..10_000 {
            let value = alloc::format!("{round:0>64}");
            assert_eq!(set.set("Accept", value.as_bytes()), Ok(()));
            let bytes = set.names.len() + set.values.len();
            assert!(bytes <= 2 * UNUSED_BYTES_MAX, "{bytes}");
        }
        let last = [&[b'0'; 60][..], b"9999"].concat();
        let expected = [
            ("Host", &b"a"[..]),
            ("X-One", b"1"),
            ("accept", &last),
            ("x-one", b"2"),
        ];
        assert_eq!(lines(&set), expected);
    }

    proptest! {
        #[test]
        fn no_accepted_field_ends_its_line(name in ".{0,8}", value in proptest::collection::vec(any::<u8>(), 0..8)) {
            let mut set = Fields::default();
            if set.add(&name, &value).is_ok() {
                let ends_line = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
                prop_assert!(!value.iter().any(ends_line));
                prop_assert!(is_token(name.as_bytes()));
            }
        }
    }
}
