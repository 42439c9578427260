//! Time zones, by their names in the IANA database: the system's, else the one built in.

use crate::config::values::text::{BadValue, Form, text_value};
use jiff::Timestamp as Instant;
use jiff::tz::TimeZone;
use std::fmt;
use weir_policy::budget::Zone;
use weir_semantics::Timestamp;

/// A time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneName {
    name: Box<str>,
    zone: TimeZone,
}

/// Changes of the offset from here on are not looked at, seconds since 1970: the year 2100.
const LAST_CHANGE: i64 = 4_102_444_800;

impl ZoneName {
    /// Its offsets from 1970 to 2100.
    pub(super) fn zone(&self) -> Zone {
        let begin = Instant::UNIX_EPOCH;
        let changes = self.zone.following(begin);
        let changes = changes.map(|change| {
            let at = Timestamp(change.timestamp().as_second());
            (at, change.offset().seconds())
        });
        let changes = changes.take_while(|change| change.0.0 < LAST_CHANGE);
        Zone::new(self.zone.to_offset(begin).seconds(), changes.collect())
    }
}

impl Default for ZoneName {
    /// Coordinated Universal Time.
    fn default() -> Self {
        Self {
            name: UTC.into(),
            zone: TimeZone::UTC,
        }
    }
}

impl std::str::FromStr for ZoneName {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        if text == UTC {
            return Ok(Self::default());
        }
        let zone = TimeZone::get(text).ok();
        let name = zone.as_ref().and_then(|zone| zone.iana_name());
        match (name.map(Box::from), zone) {
            (Some(name), Some(zone)) => Ok(Self { name, zone }),
            _ => Err(BadValue::new(format!(
                "`{text}` is no time zone: a name of the IANA database is expected, such as `Europe/Berlin`"
            ))),
        }
    }
}

impl fmt::Display for ZoneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Form for ZoneName {
    const FORM: &'static str = "a time zone, such as \"Europe/Berlin\" or \"UTC\"";
}

text_value!(ZoneName);

const UTC: &str = "UTC";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_has_the_offsets_of_its_name() {
        let berlin: ZoneName = "Europe/Berlin".parse().expect("in every database");
        let zone = berlin.zone();
        let hours = |at: i64| (zone.local_s(Timestamp(at)) - at) / 3600;
        // 2026-03-29 and 2026-10-25, 01:00 UTC
        assert_eq!(hours(1_774_746_000 - 1), 1);
        assert_eq!(hours(1_774_746_000), 2);
        assert_eq!(hours(1_792_890_000 - 1), 2);
        assert_eq!(hours(1_792_890_000), 1);
        assert_eq!(ZoneName::default().zone(), Zone::utc());
    }

    #[test]
    fn name_that_is_in_no_database_is_refused() {
        for text in ["", "Europe/Atlantis", "CEST-1", "+01:00", "../UTC"] {
            assert!(text.parse::<ZoneName>().is_err(), "{text}");
        }
    }
}
