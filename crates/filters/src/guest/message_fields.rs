//! The fields of one message as a filter reads and changes them.
//!
//! Most filters let most responses pass without a look at their fields. Those of a response are
//! therefore kept as the proxy has them, and are read into a map when the filter asks for one. A
//! field that a filter adds is kept beside them.

use crate::pairs_of_head::{Refused, put_response_fields};
use weir_extend::HeadFields;
use weir_wasm::{Pairs, PairsError};

/// Fields that are kept beside the others, until they are all copied.
const ADDED_MAX: usize = 16;

/// The size of such a field, bytes.
const ADDED_BYTES_MAX: usize = 512;

/// A field section that is kept as it is, bytes: it has room for a filter whatever is in it.
pub(crate) const UNREAD_BYTES_MAX: usize = 16 * 1024;

/// The same in lines.
pub(crate) const UNREAD_LINES_MAX: usize = 128;

/// The fields of one message.
#[derive(Debug, Default)]
pub(crate) struct MessageFields {
    phase: Phase,
    /// Of an unread response: its status, field section and lines.
    status: u16,
    section: Vec<u8>,
    lines: usize,
    /// Those that the filter added, unless there is a `before`.
    added: Pairs,
    /// All of them, once they are read.
    all: Pairs,
    /// As they were, once the filter can have done more than to add some.
    before: Option<Pairs>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// There are none yet.
    #[default]
    Absent,
    Unread,
    Read,
}

/// What a filter has done to the fields of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'f> {
    None,
    /// It has added these, with names in lower case.
    Added(&'f Pairs),
    /// They were these, and are these now.
    Made(&'f Pairs, &'f Pairs),
}

impl MessageFields {
    /// The same room, and nothing in it.
    pub(crate) fn clear(&mut self) {
        self.phase = Phase::Absent;
        self.section.clear();
        self.added.clear();
        self.all.clear();
        self.before = None;
    }

    /// The fields are there: an empty map to put them into.
    pub(crate) fn begin(&mut self) -> &mut Pairs {
        self.clear();
        self.phase = Phase::Read;
        &mut self.all
    }

    /// The fields of a response are there, with so many `lines`, at most [`UNREAD_LINES_MAX`]. The
    /// section has at most [`UNREAD_BYTES_MAX`].
    pub(crate) fn keep(&mut self, status: u16, section: &[u8], lines: usize) {
        self.clear();
        self.phase = Phase::Unread;
        self.section.extend_from_slice(section);
        (self.status, self.lines) = (status, lines);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match self.phase {
            Phase::Absent => 0,
            // with the status
            Phase::Unread => 1 + self.lines + self.added.len(),
            Phase::Read => self.all.len(),
        }
    }

    /// All of them, if they are there.
    pub(crate) fn read(&mut self) -> Option<&Pairs> {
        if self.phase == Phase::Unread && self.read_section().is_err() {
            // it has room for all that can be added beside it
            debug_assert!(false, "the fields have no room");
            return None;
        }
        (self.phase == Phase::Read).then_some(&self.all)
    }

    fn read_section(&mut self) -> Result<(), Refused> {
        self.all.clear();
        let section = HeadFields::of_section(&self.section);
        put_response_fields(self.status, &section, &mut self.all)?;
        for (name, value) in self.added.iter() {
            self.all.add(name, value)?;
        }
        self.phase = Phase::Read;
        Ok(())
    }

    /// All of them to change, if they are there.
    pub(crate) fn change(&mut self) -> Option<&mut Pairs> {
        self.read()?;
        if self.before.is_none() {
            let given = self.all.len() - self.added.len();
            let before = Pairs::of(self.all.iter().take(given));
            self.before = Some(before.ok()?);
        }
        Some(&mut self.all)
    }

    /// Adds a field. They are there.
    ///
    /// # Errors
    ///
    /// There is no room for it.
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) -> Result<(), PairsError> {
        let is_small = name.len() + value.len() <= ADDED_BYTES_MAX && self.added.len() < ADDED_MAX;
        if self.before.is_none() && is_small {
            if self.phase == Phase::Read {
                self.all.add(name, value)?;
            }
            return self.added.add_in_lower_case(name, value);
        }
        match self.change() {
            Some(all) => all.add(name, value),
            None => Ok(()),
        }
    }

    /// What the filter has done to them.
    pub(crate) fn changes(&self) -> Change<'_> {
        match &self.before {
            Some(before) if *before != self.all => Change::Made(before, &self.all),
            None if !self.added.is_empty() => Change::Added(&self.added),
            Some(_) | None => Change::None,
        }
    }

    /// Those that were read, as the filter was given them.
    pub(crate) fn given(&self) -> Option<Pairs> {
        match &self.before {
            Some(before) => Some(before.clone()),
            None if self.phase == Phase::Read => {
                let given = self.all.len() - self.added.len();
                Pairs::of(self.all.iter().take(given)).ok()
            }
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTION: &[u8] = b"Host: b\r\nX-A: 1\r\nx-a: 2\r\n";

    /// The fields of one response, unread and read.
    fn each() -> [MessageFields; 2] {
        let mut unread = MessageFields::default();
        unread.keep(200, SECTION, 3);
        let mut read = MessageFields::default();
        let section = HeadFields::of_section(SECTION);
        put_response_fields(200, &section, read.begin()).expect("room");
        [unread, read]
    }

    fn text(pairs: Option<&Pairs>) -> String {
        let pairs = pairs.into_iter().flat_map(Pairs::iter);
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let lines = pairs.map(|(name, value)| format!("{}={}", text(name), text(value)));
        lines.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn fields_are_the_same_whether_they_were_read_or_not() {
        for mut fields in each() {
            assert!(matches!(fields.changes(), Change::None));
            assert_eq!(fields.add(b"X-B", b"3"), Ok(()));
            assert!(
                matches!(fields.changes(), Change::Added(added) if text(Some(added)) == "x-b=3")
            );
            assert_eq!(
                text(fields.read()).to_lowercase(),
                ":status=200 x-a=1 x-a=2 x-b=3"
            );
            assert_eq!((fields.add(b"x-c", b"4"), fields.len()), (Ok(()), 5));
            assert!(matches!(fields.changes(), Change::Added(added) if added.len() == 2));
            let given = fields.given();
            assert_eq!(text(given.as_ref()), ":status=200 x-a=1 x-a=2");
        }
    }

    #[test]
    fn other_changes_are_told_with_what_was_before_without_what_was_added() {
        for mut fields in each() {
            assert_eq!(fields.add(b"x-b", b"3"), Ok(()));
            assert!(fields.change().expect("fields").remove(b"x-a"));
            assert_eq!(fields.add(b"x-c", b"4"), Ok(()));
            let Change::Made(before, after) = fields.changes() else {
                panic!("{fields:?}");
            };
            assert_eq!(text(Some(before)), ":status=200 x-a=1 x-a=2");
            assert_eq!(text(Some(after)), ":status=200 x-b=3 x-c=4");
        }
    }

    #[test]
    fn what_is_added_comes_to_the_limits_of_a_map_and_is_not_lost() {
        for mut fields in each() {
            let added = (0..).take_while(|_| fields.add(b"x", b"y").is_ok()).count();
            assert_eq!(added + 3, weir_wasm::PAIRS_MAX);
            assert_eq!(fields.read().map(Pairs::len), Some(weir_wasm::PAIRS_MAX));
            assert!(matches!(fields.changes(), Change::Made(before, _) if before.len() == 3));
        }
    }

    #[test]
    fn room_of_a_message_has_nothing_of_the_one_before() {
        for mut fields in each() {
            assert_eq!(fields.add(b"x-b", b"3"), Ok(()));
            fields.clear();
            assert_eq!((fields.len(), fields.read()), (0, None));
            assert!(fields.change().is_none() && matches!(fields.changes(), Change::None));
        }
    }
}
