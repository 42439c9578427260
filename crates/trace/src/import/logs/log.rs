//! Logs with a transaction a line.

use crate::Row;
use crate::import::Import;
use crate::import::damage::{Damage, Dropped, Place, reason};
use crate::import::logs::lines::{LINE_BYTES_MAX, Line, Lines};
use crate::import::settings::Settings;
use std::io::BufRead;

/// How a line of one kind of log is read.
pub(crate) trait LineReader {
    /// The row; or, where the line is no transaction, the reason why ([`reason`]).
    fn read(&mut self, line: &[u8], place: Place, settings: &Settings<'_>) -> Result<Row, NoRow>;
}

/// Why a line makes no row.
pub(crate) enum NoRow {
    /// It is well-formed, and no transaction of the kind that is wanted.
    Dropped(&'static str),
    /// It cannot be read.
    Damage(Damage),
}

impl From<Damage> for NoRow {
    fn from(damaged: Damage) -> Self {
        Self::Damage(damaged)
    }
}

/// A log that is being read.
pub(crate) struct Log<'a, R, L> {
    lines: Lines<R>,
    reader: L,
    settings: Settings<'a>,
    dropped: Dropped,
    is_over: bool,
}

impl<'a, R: BufRead, L: LineReader> Log<'a, R, L> {
    pub(crate) fn new(source: R, reader: L, settings: Settings<'a>) -> Self {
        Self {
            lines: Lines::new(source),
            reader,
            settings,
            dropped: Dropped::default(),
            is_over: false,
        }
    }
}

impl<R: BufRead, L: LineReader> Import for Log<'_, R, L> {
    fn dropped(&self) -> &Dropped {
        &self.dropped
    }
}

impl<R: BufRead, L: LineReader> Iterator for Log<'_, R, L> {
    type Item = Result<Row, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_over {
            let place = Place::Line(self.lines.number() + 1);
            let line = match self.lines.next() {
                Ok(Some(Line::Whole(line))) => line,
                Ok(Some(Line::TooLong)) => {
                    let what = format!("it is longer than {LINE_BYTES_MAX} bytes");
                    return Some(Err(Damage::item(place, reason::TOO_LONG, what)));
                }
                Ok(None) => break,
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(Damage::unread(place, &error)));
                }
            };
            let content = line.trim_ascii();
            if content.is_empty() || content.starts_with(b"#") {
                self.dropped.count(reason::BLANK);
                continue;
            }
            match self.reader.read(line, place, &self.settings) {
                Ok(row) => return Some(Ok(row)),
                Err(NoRow::Dropped(reason)) => self.dropped.count(reason),
                Err(NoRow::Damage(damaged)) => return Some(Err(damaged)),
            }
        }
        self.is_over = true;
        None
    }
}
