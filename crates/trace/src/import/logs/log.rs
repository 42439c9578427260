//! Logs with a transaction a line.

use crate::Row;
use crate::import::damage::{Damage, Place, reason};
use crate::import::items::{ItemSource, NoRow};
use crate::import::logs::lines::{LINE_BYTES_MAX, Line, Lines};
use crate::import::settings::Settings;
use std::io::BufRead;

/// How a line of one kind of log is read.
pub(crate) trait LineReader {
    /// The row; or, where the line is no transaction, the reason why ([`reason`]).
    fn read(&mut self, line: &[u8], place: Place, settings: &Settings<'_>) -> Result<Row, NoRow>;
}

/// A log that is being read.
pub(crate) struct Log<'a, R, L> {
    lines: Lines<R>,
    reader: L,
    settings: Settings<'a>,
}

impl<'a, R: BufRead, L: LineReader> Log<'a, R, L> {
    pub(crate) fn new(source: R, reader: L, settings: Settings<'a>) -> Self {
        Self {
            lines: Lines::new(source),
            reader,
            settings,
        }
    }
}

impl<R: BufRead, L: LineReader> ItemSource for Log<'_, R, L> {
    fn next_item(&mut self) -> Option<Result<Row, NoRow>> {
        let place = Place::Line(self.lines.number() + 1);
        let line = match self.lines.next() {
            Ok(Some(Line::Whole(line))) => line,
            Ok(Some(Line::TooLong)) => {
                let what = format!("it is longer than {LINE_BYTES_MAX} bytes");
                return Some(Err(Damage::item(place, reason::TOO_LONG, what).into()));
            }
            Ok(None) => return None,
            Err(error) => return Some(Err(Damage::unread(place, &error).into())),
        };
        let content = line.trim_ascii();
        Some(if content.is_empty() || content.starts_with(b"#") {
            Err(NoRow::Dropped(reason::BLANK))
        } else {
            self.reader.read(line, place, &self.settings)
        })
    }
}
