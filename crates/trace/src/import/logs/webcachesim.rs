//! webcachesim's traces: `time id size` a line, in whole numbers; features that follow are not
//! looked at.
//!
//! Times are in seconds and often counted from the trace's beginning. Ids are hidden like any other
//! name.

use crate::Row;
use crate::import::damage::{Damage, Place, reason};
use crate::import::items::NoRow;
use crate::import::logs::log::LineReader;
use crate::import::logs::number::{shown, unix_us, unsigned};
use crate::import::logs::size;
use crate::import::settings::Settings;

/// Reads its lines.
pub(crate) struct Webcachesim;

impl LineReader for Webcachesim {
    fn read(&mut self, line: &[u8], place: Place, settings: &Settings<'_>) -> Result<Row, NoRow> {
        let mut fields = line
            .split(u8::is_ascii_whitespace)
            .filter(|field| !field.is_empty());
        let (Some(time), Some(id), Some(size)) = (fields.next(), fields.next(), fields.next())
        else {
            let what = "there are fewer than the three fields time, id and size";
            return Err(Damage::item(place, reason::FIELDS, what).into());
        };
        let arrival_us = unix_us(time).ok_or_else(|| {
            let what = format!("time `{}` is not a number of seconds", shown(time));
            Damage::item(place, reason::TIME, what)
        })?;
        if unsigned(id).is_none() {
            let what = format!("id `{}` is not a number", shown(id));
            return Err(Damage::item(place, reason::NUMBER, what).into());
        }
        Ok(Row {
            arrival_us,
            target: settings.hide.target(id),
            target_text: settings
                .hide
                .keeps_names()
                .then(|| String::from_utf8_lossy(id).into_owned()),
            received_bytes: Some(size::logged(size, place, settings.missing_size, None)?),
            ..Row::default()
        })
    }
}

#[cfg(test)]
mod tests;
