//! The importer of `oracleGeneral` ([`crate::oracle_general`]). A row's place is counted from 0.
//! Ids are hidden like any other name: they may identify a person.

use super::damage::{Damage, Place, reason};
use super::items::{ItemSource, NoRow};
use super::settings::Settings;
use crate::Row;
use crate::oracle_general::{RECORD_BYTES, ReadError, Record, Records};
use std::io::Read;

/// The records of a file.
pub(crate) struct OracleGeneral<'a, R> {
    records: Records<R>,
    settings: Settings<'a>,
}

impl<'a, R: Read> OracleGeneral<'a, R> {
    pub(crate) fn new(source: R, settings: Settings<'a>) -> Self {
        Self {
            records: Records::new(source),
            settings,
        }
    }

    fn damaged(&self, error: &ReadError) -> Damage {
        match error {
            ReadError::Source(error) => {
                Damage::unread(Place::Record(self.records.count() + 1), error)
            }
            ReadError::CutOff { record, bytes } => {
                let what = format!("the end comes after {bytes} of its {RECORD_BYTES} bytes");
                Damage::end(Place::Record(*record), reason::CUT_OFF, what)
            }
        }
    }
}

impl<R: Read> ItemSource for OracleGeneral<'_, R> {
    fn next_item(&mut self) -> Option<Result<Row, NoRow>> {
        Some(match self.records.next_record().transpose()? {
            Ok(record) => Ok(row(&record, &self.settings)),
            Err(error) => Err(self.damaged(&error).into()),
        })
    }
}

fn row(record: &Record, settings: &Settings<'_>) -> Row {
    let id = record.id.to_string();
    Row {
        arrival_us: i64::from(record.time_s) * 1_000_000,
        target: settings.hide.target(id.as_bytes()),
        target_text: settings.hide.keeps_names().then_some(id),
        received_bytes: Some(u64::from(record.size)),
        next_access: settings.is_whole_trace.then(|| record.next_place()),
        ..Row::default()
    }
}

/// Whether it may be such a file: nothing in it says so, but times that never fall, and next places
/// that lie ahead.
pub(crate) fn looks_like(head: &[u8], is_all: bool) -> bool {
    let (records, rest) = head.as_chunks::<RECORD_BYTES>();
    // text can pass all that follows; records cannot be all text: a next place is -1, or small
    // enough to have zero bytes
    if head
        .iter()
        .all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
    {
        return false;
    }
    if records.is_empty() || (is_all && !rest.is_empty() && records.len() < 2) {
        return false;
    }
    let mut before_s = 0;
    (1_i64..).zip(records).all(|(number, record)| {
        let record = Record::from_bytes(record);
        let rises = record.time_s >= before_s;
        before_s = record.time_s;
        rises && (record.next_place() == -1 || record.next > number)
    })
}

#[cfg(test)]
mod tests {
    use super::super::items::Items;
    use super::super::tests::{Open, all, everyway};
    use super::*;

    fn record(time_s: u32, id: u64, size: u32, next: i64) -> Vec<u8> {
        let record = Record {
            time_s,
            id,
            size,
            next,
        };
        record.to_bytes().to_vec()
    }

    fn three() -> Vec<u8> {
        [
            record(5, 7, 512, 3),
            record(5, u64::MAX, u32::MAX, i64::MAX),
            record(6, 7, 512, -1),
        ]
        .concat()
    }

    #[test]
    fn next_access_is_zero_based_and_minus_1_without_a_next_request() {
        let found = everyway(&three());
        let rows: Vec<_> = found.into_iter().map(Result::unwrap).collect();
        let next: Vec<_> = rows.iter().map(|row| row.next_access.unwrap()).collect();
        assert_eq!(next, [2, -1, -1]);
        assert_eq!(rows[0].target, rows[2].target);
        assert_eq!(rows[0].target_text.as_deref(), Some("7"));
        assert_eq!(rows[2].arrival_us, 6_000_000);
        assert_eq!(rows[1].received_bytes, Some(u64::from(u32::MAX)));
        assert_eq!(rows[1].method, None);
    }

    #[test]
    fn next_access_is_absent_when_the_file_is_not_the_whole_trace() {
        let settings = Settings {
            is_whole_trace: false,
            ..Settings::new(&Open)
        };
        for row in Items::new(OracleGeneral::new(&three()[..], settings)) {
            assert_eq!(row.unwrap().next_access, None);
        }
    }

    #[test]
    fn truncated_record_is_reported_and_ends_the_reading() {
        let found = all(&three()[..50], Some(super::super::Format::OracleGeneral));
        assert_eq!(found.len(), 3);
        let damaged = found[2].as_ref().unwrap_err();
        assert_eq!(damaged.place, Place::Record(3));
        assert_eq!(damaged.reason, reason::CUT_OFF);
        assert!(!damaged.goes_on);
    }

    #[test]
    fn detection_requires_whole_ordered_binary_records() {
        assert!(looks_like(&three(), true));
        assert!(!looks_like(b"", true));
        assert!(!looks_like(&three()[..23], true));
        let falls = [record(6, 1, 1, -1), record(5, 1, 1, -1)].concat();
        assert!(!looks_like(&falls, true));
        // a text that rises from record to record
        let text = b"aaaaaaaaaaaaaaaaaaaaaaa\nbbbbbbbbbbbbbbbbbbbbbbb\n";
        assert!(!looks_like(text, true) && !looks_like(&text[..47], false));
        let mut binary = text.to_vec();
        binary[5] = 0;
        assert!(looks_like(&binary, true));
        let behind = [record(6, 1, 1, -1), record(6, 1, 1, 2)].concat();
        assert!(!looks_like(&behind, true));
    }
}
