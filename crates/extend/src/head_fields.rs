//! The field lines of a head that a module is called with, which are copied only if it changes
//! them: most modules let most heads pass.

use crate::fields::{FieldError, Fields};
use core::cell::OnceCell;
use core::ops::{Deref, DerefMut};
use core::slice;
use memchr::memchr;
use weir_semantics::FieldLine;

/// The fields of a head. They are read where the proxy has them, and lines that are added are kept
/// beside; the first other change, or the first use as [`Fields`], copies them.
#[derive(Clone, Debug)]
pub struct HeadFields<'h> {
    source: Source<'h>,
    /// Lines behind those of `source`, as long as nothing is copied.
    added: Fields,
    copied: OnceCell<Fields>,
}

/// Where the proxy has the lines.
#[derive(Clone, Copy, Debug)]
enum Source<'h> {
    Lines(&'h [FieldLine<'h>]),
    Section(&'h [u8]),
}

/// Most lines that are kept beside those of the proxy.
const ADDED_MAX: usize = 16;

/// Most bytes of name and value of such a line.
const ADDED_BYTES_MAX: usize = 2 * 1024;

/// A head of at most so many bytes: lines that are added beside it cannot bring it to its limits.
const SMALL_BYTES: usize = 2 * 1024;

/// The same in lines.
const SMALL_LINES: usize = 128;

impl<'h> Source<'h> {
    fn lines(self) -> Lines<'h> {
        match self {
            Self::Lines(lines) => Lines::Received(lines.iter()),
            Self::Section(section) => Lines::Section(section),
        }
    }

    /// Whether it is far below the limits of a head, by a look that costs next to nothing.
    fn is_small(self) -> bool {
        match self {
            Self::Lines(lines) => {
                let sizes = lines.iter().map(|line| line.name.len() + line.value.len());
                lines.len() <= SMALL_LINES && sizes.sum::<usize>() <= SMALL_BYTES
            }
            // a line has a name, `:`, a space and CRLF
            Self::Section(section) => section.len() <= SMALL_BYTES,
        }
    }
}

impl<'h> HeadFields<'h> {
    /// Those that were received.
    #[must_use]
    pub const fn of_lines(lines: &'h [FieldLine<'h>]) -> Self {
        Self {
            source: Source::Lines(lines),
            added: Fields::new(),
            copied: OnceCell::new(),
        }
    }

    /// Those of a field section that the proxy has made: each line is a name, `:`, a space, a value
    /// and CRLF. What is behind an empty line, and a line without `:`, is left out.
    #[must_use]
    pub const fn of_section(section: &'h [u8]) -> Self {
        Self {
            source: Source::Section(section),
            added: Fields::new(),
            copied: OnceCell::new(),
        }
    }

    /// The field section that the proxy has made of these lines, if it has, and nothing was
    /// changed: a copy of it is read by [`Self::of_section`].
    #[must_use]
    pub fn section(&self) -> Option<&'h [u8]> {
        match self.source {
            Source::Section(section) if self.copied.get().is_none() && !self.added.is_changed() => {
                Some(section)
            }
            _ => None,
        }
    }

    /// Names and values in order.
    #[must_use]
    pub fn iter(&self) -> FieldIter<'_> {
        match self.copied.get() {
            Some(fields) => FieldIter(None, (fields, 0)),
            None => FieldIter(Some(self.source.lines()), (&self.added, 0)),
        }
    }

    /// The value of the first line with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// The values of all lines with this name.
    pub fn all<'s, 'n>(
        &'s self,
        name: &'n str,
    ) -> impl Iterator<Item = &'s [u8]> + use<'s, 'n, 'h> {
        let mut lines = self.iter();
        core::iter::from_fn(move || lines.next_named(name))
    }

    /// The values of all lines with this name, and before them those of the lines that the proxy
    /// has, which may be the same or may be removed.
    pub(crate) fn now_and_before<'s>(&'s self, name: &str) -> impl Iterator<Item = &'s [u8]> {
        let now = self.copied.get().unwrap_or(&self.added);
        FieldIter(Some(self.source.lines()), (now, 0))
            .filter(move |line| line.0.eq_ignore_ascii_case(name))
            .map(|line| line.1)
    }

    /// Adds a line behind the others.
    ///
    /// # Errors
    ///
    /// It is not added.
    pub fn add(&mut self, name: &str, value: &[u8]) -> Result<(), FieldError> {
        let is_small = name.len() + value.len() <= ADDED_BYTES_MAX
            && self.added.lines() < ADDED_MAX
            && self.source.is_small();
        if self.copied.get().is_none() && is_small {
            return self.added.add(name, value);
        }
        let fields: &mut Fields = self;
        fields.add(name, value)
    }

    /// The lines that were added, if that is all that was changed.
    #[must_use]
    pub fn only_added(&self) -> Option<&Fields> {
        (self.copied.get().is_none() && self.added.is_changed()).then_some(&self.added)
    }

    /// Whether a line was added, set or removed.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.added.is_changed() || self.copied.get().is_some_and(Fields::is_changed)
    }

    /// The same lines, which nothing else has any more.
    #[must_use]
    pub fn into_owned(mut self) -> HeadFields<'static> {
        HeadFields::from(self.copied.take().unwrap_or_else(|| self.copy()))
    }

    fn copy(&self) -> Fields {
        let size = |(lines, names, values), (name, value): (&str, &[u8])| {
            (lines + 1, names + name.len(), values + value.len())
        };
        let (lines, names, values) = self.iter().fold((0, 0, 0), size);
        // with room for a line or two that a module adds
        let mut fields = Fields::with_capacity(lines + 2, names + 64, values + 128);
        for (name, value) in self.iter() {
            fields.push(name, value);
        }
        if self.added.is_changed() {
            fields.note_change();
        }
        fields
    }
}

impl From<Fields> for HeadFields<'_> {
    fn from(fields: Fields) -> Self {
        Self {
            source: Source::Lines(&[]),
            added: Fields::new(),
            copied: OnceCell::from(fields),
        }
    }
}

impl Deref for HeadFields<'_> {
    type Target = Fields;

    fn deref(&self) -> &Fields {
        self.copied.get_or_init(|| self.copy())
    }
}

impl DerefMut for HeadFields<'_> {
    fn deref_mut(&mut self) -> &mut Fields {
        let _: &Fields = self;
        self.copied.get_mut().expect("they are copied")
    }
}

impl<'s> IntoIterator for &'s HeadFields<'_> {
    type Item = (&'s str, &'s [u8]);
    type IntoIter = FieldIter<'s>;

    fn into_iter(self) -> FieldIter<'s> {
        self.iter()
    }
}

/// Names and values of field lines in their order: those where the proxy has them, and others with
/// the place of the next one.
#[derive(Clone, Debug)]
pub struct FieldIter<'s>(Option<Lines<'s>>, (&'s Fields, usize));

#[derive(Clone, Debug)]
enum Lines<'s> {
    Received(slice::Iter<'s, FieldLine<'s>>),
    /// What is left of the section.
    Section(&'s [u8]),
}

impl<'s> Iterator for FieldIter<'s> {
    type Item = (&'s str, &'s [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let line = match &mut self.0 {
            None => None,
            Some(Lines::Received(lines)) => lines.next().map(|line| (line.name, line.value)),
            Some(Lines::Section(left)) => next_of_section(left),
        };
        if line.is_some() {
            return line;
        }
        self.0 = None;
        let (fields, at) = &mut self.1;
        *at += 1;
        fields.at(*at - 1)
    }
}

impl<'s> FieldIter<'s> {
    /// The value of the next line with this name. Other names are not read as text.
    fn next_named(&mut self, name: &str) -> Option<&'s [u8]> {
        if let Some(Lines::Section(left)) = &mut self.0
            && let Some(value) = next_named_of(left, name.as_bytes())
        {
            return Some(value);
        }
        let line = self.find(|line| line.0.eq_ignore_ascii_case(name));
        line.map(|line| line.1)
    }
}

fn next_of_section<'s>(left: &mut &'s [u8]) -> Option<(&'s str, &'s [u8])> {
    loop {
        let (name, value) = next_line(left)?;
        if let Ok(name) = str::from_utf8(name) {
            return Some((name, value));
        }
    }
}

/// The value of the next line of a section with this name. Where other names end is not looked
/// for: modules ask for several names at each hit.
fn next_named_of<'s>(left: &mut &'s [u8], name: &[u8]) -> Option<&'s [u8]> {
    loop {
        let end = memchr(b'\n', left)?;
        let (line, rest) = left.split_at(end + 1);
        *left = rest;
        let (found, behind) = line.split_at_checked(name.len()).unwrap_or((line, b""));
        if let [b':', value @ ..] = behind
            && found.eq_ignore_ascii_case(name)
            && !name.contains(&b':')
        {
            return Some(value.trim_ascii());
        }
        if line.len() <= 2 && line.trim_ascii_end().is_empty() {
            *left = &[];
            return None;
        }
    }
}

/// Name and value of the next line of a section.
fn next_line<'s>(left: &mut &'s [u8]) -> Option<(&'s [u8], &'s [u8])> {
    loop {
        let end = memchr(b'\n', left)?;
        let (line, rest) = left.split_at(end + 1);
        *left = rest;
        let line = line.trim_ascii_end();
        if line.is_empty() {
            *left = &[];
            return None;
        }
        // names are short
        if let Some(colon) = line.iter().position(|byte| *byte == b':') {
            return Some((&line[..colon], line[colon + 1..].trim_ascii_start()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{FIELDS_MAX, SECTION_BYTES_MAX};
    use alloc::vec;

    const LINES: [FieldLine<'static>; 3] = [
        FieldLine::new("Host", b"a"),
        FieldLine::new("X-One", b"1: 2"),
        FieldLine::new("x-one", b""),
    ];

    const SECTION: &[u8] = b"Host: a\r\nX-One: 1: 2\r\nx-one: \r\n\r\nno: field\r\n";

    fn each() -> [HeadFields<'static>; 3] {
        let copied = LINES.map(|line| (line.name, line.value));
        [
            HeadFields::of_lines(&LINES),
            HeadFields::of_section(SECTION),
            HeadFields::from(Fields::received(copied)),
        ]
    }

    #[test]
    fn lines_are_the_same_whatever_they_are_read_from() {
        let expected = LINES.map(|line| (line.name, line.value));
        for fields in each() {
            assert_eq!(fields.iter().collect::<Vec<_>>(), expected);
            assert_eq!(fields.get("x-ONE"), Some(&b"1: 2"[..]));
            assert_eq!(fields.all("X-ONE").count(), 2);
            for missing in [
                "missing",
                "x",
                "X-One: 1",
                "X-One:",
                "Host: a\r\nX-One",
                "no",
                "",
            ] {
                assert_eq!(fields.get(missing), None, "{missing:?}");
            }
            assert!(!fields.is_changed());
            let owned = fields.into_owned();
            assert_eq!(owned.iter().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn change_is_made_to_a_copy() {
        for mut fields in each() {
            let before = fields.clone();
            assert_eq!(fields.set("X-One", b"3"), Ok(()));
            assert!(fields.is_changed() && !before.is_changed());
            assert_eq!(fields.all("x-one").collect::<Vec<_>>(), [b"3"]);
            assert_eq!(before.get("x-one"), Some(&b"1: 2"[..]));
            let lines: Vec<_> = fields
                .into_owned()
                .iter()
                .map(|line| line.0.len())
                .collect();
            assert_eq!(lines, [4, 5]);
        }
    }

    #[test]
    fn lines_that_are_added_to_a_small_head_are_kept_beside_it() {
        for mut fields in each() {
            assert_eq!(fields.add("X-Two", b"2"), Ok(()));
            assert!(fields.is_changed());
            let is_copied = fields.copied.get().is_some();
            assert_eq!(fields.only_added().is_none(), is_copied);
            assert_eq!(fields.iter().last(), Some(("X-Two", &b"2"[..])));
            assert_eq!(fields.clone().into_owned().iter().count(), 4);
            assert!(fields.clone().into_owned().is_changed());
            // what is copied later has them too
            assert_eq!(fields.set("x-two", b"3"), Ok(()));
            assert_eq!(fields.all("X-Two").collect::<Vec<_>>(), [b"3"]);
            assert!(fields.only_added().is_none());
        }
    }

    #[test]
    fn lines_that_are_added_come_to_the_limits_of_a_head_whatever_it_is_kept_in() {
        for mut fields in each() {
            let lines = fields.iter().count();
            let added = (0..).take_while(|_| fields.add("x", b"y").is_ok()).count();
            assert_eq!(lines + added, FIELDS_MAX);
        }
        let value = vec![b'v'; 1000];
        for mut fields in each() {
            while fields.add("x", &value).is_ok() {}
            let size = fields.iter().map(|line| line.0.len() + line.1.len());
            let size: usize = size.sum();
            assert!(size <= SECTION_BYTES_MAX && size + 1001 > SECTION_BYTES_MAX);
        }
    }

    #[test]
    fn section_is_given_as_long_as_it_is_what_the_lines_are() {
        let [lines, mut section, copied] = each();
        assert_eq!((lines.section(), copied.section()), (None, None));
        assert_eq!(section.section(), Some(SECTION));
        let changed = section.clone().remove("x-one").map(|_| ());
        assert_eq!((changed, section.section()), (Ok(()), Some(SECTION)));
        assert_eq!(section.add("x-two", b"2"), Ok(()));
        assert_eq!(section.section(), None);
    }

    #[test]
    fn fields_that_are_only_read_are_not_copied() {
        let fields = HeadFields::of_lines(&LINES);
        assert!(fields.get("host").is_some() && fields.iter().count() == 3);
        assert!(fields.copied.get().is_none());
    }
}
