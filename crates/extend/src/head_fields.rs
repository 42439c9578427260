//! The field lines of a head that a module is called with, which are copied only if it changes
//! them: most modules let most heads pass.

use crate::fields::Fields;
use core::cell::OnceCell;
use core::ops::{Deref, DerefMut};
use core::slice;
use memchr::memchr;
use weir_semantics::FieldLine;

/// The fields of a head. They are read where the proxy has them; the first change, or the first use
/// as [`Fields`], copies them.
#[derive(Clone, Debug)]
pub struct HeadFields<'h> {
    source: Source<'h>,
    copied: OnceCell<Fields>,
}

/// Where the proxy has the lines.
#[derive(Clone, Copy, Debug)]
enum Source<'h> {
    Lines(&'h [FieldLine<'h>]),
    Section(&'h [u8]),
}

impl<'h> HeadFields<'h> {
    /// Those that were received.
    #[must_use]
    pub const fn of_lines(lines: &'h [FieldLine<'h>]) -> Self {
        Self {
            source: Source::Lines(lines),
            copied: OnceCell::new(),
        }
    }

    /// Those of a field section that the proxy has made: each line is a name, `:`, a space, a value
    /// and CRLF. What is behind an empty line, and a line without `:`, is left out.
    #[must_use]
    pub const fn of_section(section: &'h [u8]) -> Self {
        Self {
            source: Source::Section(section),
            copied: OnceCell::new(),
        }
    }

    /// Names and values in order.
    #[must_use]
    pub fn iter(&self) -> FieldIter<'_> {
        match (self.copied.get(), self.source) {
            (Some(fields), _) => FieldIter(Lines::Copied(fields, 0)),
            (None, Source::Lines(lines)) => FieldIter(Lines::Received(lines.iter())),
            (None, Source::Section(section)) => FieldIter(Lines::Section(section)),
        }
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
    pub fn all<'s, 'n>(
        &'s self,
        name: &'n str,
    ) -> impl Iterator<Item = &'s [u8]> + use<'s, 'n, 'h> {
        let lines = self
            .iter()
            .filter(move |line| line.0.eq_ignore_ascii_case(name));
        lines.map(|line| line.1)
    }

    /// Whether a line was added, set or removed.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.copied.get().is_some_and(Fields::is_changed)
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
        fields
    }
}

impl From<Fields> for HeadFields<'_> {
    fn from(fields: Fields) -> Self {
        Self {
            source: Source::Lines(&[]),
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

/// Names and values of field lines in their order.
#[derive(Clone, Debug)]
pub struct FieldIter<'s>(Lines<'s>);

#[derive(Clone, Debug)]
enum Lines<'s> {
    /// And the place of the next one.
    Copied(&'s Fields, usize),
    Received(slice::Iter<'s, FieldLine<'s>>),
    /// What is left of the section.
    Section(&'s [u8]),
}

impl<'s> Iterator for FieldIter<'s> {
    type Item = (&'s str, &'s [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Lines::Copied(fields, at) => {
                *at += 1;
                fields.at(*at - 1)
            }
            Lines::Received(lines) => lines.next().map(|line| (line.name, line.value)),
            Lines::Section(left) => next_of_section(left),
        }
    }
}

fn next_of_section<'s>(left: &mut &'s [u8]) -> Option<(&'s str, &'s [u8])> {
    loop {
        let end = memchr(b'\n', left)?;
        let (line, rest) = left.split_at(end + 1);
        *left = rest;
        let line = line.trim_ascii_end();
        if line.is_empty() {
            *left = &[];
            return None;
        }
        let Some(colon) = memchr(b':', line) else {
            continue;
        };
        if let Ok(name) = str::from_utf8(&line[..colon]) {
            return Some((name, line[colon + 1..].trim_ascii_start()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(fields.get("missing"), None);
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
    fn fields_that_are_only_read_are_not_copied() {
        let fields = HeadFields::of_lines(&LINES);
        assert!(fields.get("host").is_some() && fields.iter().count() == 3);
        assert!(fields.copied.get().is_none());
    }
}
