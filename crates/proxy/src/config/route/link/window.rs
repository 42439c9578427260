//! Time windows of a link.

use crate::config::setting::invalid::Invalid;
use crate::config::setting::{Setting, check_range};
use crate::config::values::rate::Rate;
use crate::config::values::text::{BadValue, Form, choice, text_value};
use serde::{Deserialize, Serialize};
use std::fmt;
use weir_policy::budget::{Days, TimeWindow, WINDOWS_MAX};

/// One of the `windows` of a `[[link]]` table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkWindow {
    /// From when until when.
    pub time: DayTimes,
    /// The days on which it begins; empty: each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<Weekday>,
    /// Bytes a second in it; absent for that of the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Whether bytes in it are not of the quota.
    #[serde(default, skip_serializing_if = "is_false")]
    pub free: bool,
    /// Whether parts of fetches that were paused are completed in it, and not at other times.
    #[serde(default, skip_serializing_if = "is_false")]
    pub complete: bool,
    /// How many popular stored responses are validated in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<u16>,
}

/// Popular responses that a window may have validated.
const REFRESH_RANGE: [u16; 2] = [1, 500];

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_false(value: &bool) -> bool {
    !*value
}

choice! {
    /// A day of the week.
    pub enum Weekday {
        /// Monday.
        Monday = "mon",
        /// Tuesday.
        Tuesday = "tue",
        /// Wednesday.
        Wednesday = "wed",
        /// Thursday.
        Thursday = "thu",
        /// Friday.
        Friday = "fri",
        /// Saturday.
        Saturday = "sat",
        /// Sunday.
        Sunday = "sun",
    }
}

impl Form for Vec<Weekday> {
    const FORM: &'static str = "a list of days, such as [\"sat\", \"sun\"]";
}

/// Two times of local clocks, in minutes after midnight: `22:00-06:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayTimes {
    begin_min: u16,
    /// On the next day if it is before the begin; 24 hours are midnight.
    end_min: u16,
}

const DAY_MIN: u16 = 24 * 60;

impl std::str::FromStr for DayTimes {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let times = text.split_once('-');
        let times = times.and_then(|(begin, end)| Some((minutes(begin)?, minutes(end)?)));
        let Some((begin_min, end_min)) = times else {
            if let Some((times, zone)) = text.split_once(' ')
                && times.parse::<Self>().is_ok()
            {
                return Err(BadValue::new(format!(
                    "`{text}` is no time window: the time zone is that of the link, `time_zone = \"{}\"`",
                    zone.trim().escape_debug()
                ))
                .suggesting(times));
            }
            return Err(BadValue::new(format!(
                "`{text}` is no time window: two times of the day are expected, such as `22:00-06:00`"
            )));
        };
        let problem = if begin_min == end_min {
            "it ends when it begins"
        } else if begin_min == DAY_MIN {
            "it begins at the end of the day; 00:00 is the begin of one"
        } else if end_min == 0 {
            return Err(BadValue::new(format!(
                "`{text}` is no time window: it ends before it begins"
            ))
            .suggesting(format!("{}-24:00", &text[..5])));
        } else {
            return Ok(Self { begin_min, end_min });
        };
        Err(BadValue::new(format!(
            "`{text}` is no time window: {problem}"
        )))
    }
}

/// A time of the day up to 24:00, in minutes after midnight.
fn minutes(text: &str) -> Option<u16> {
    let bytes = text.as_bytes();
    let [h, hh, b':', m, mm] = bytes else {
        return None;
    };
    let two = |tens: &u8, ones: &u8| {
        let digit = |byte: &u8| byte.is_ascii_digit().then(|| u16::from(byte - b'0'));
        Some(digit(tens)? * 10 + digit(ones)?)
    };
    let (hours, minutes) = (two(h, hh)?, two(m, mm)?);
    let all = hours * 60 + minutes;
    (minutes < 60 && all <= DAY_MIN).then_some(all)
}

impl fmt::Display for DayTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = |minutes: u16| (minutes / 60, minutes % 60);
        let (begin, end) = (parts(self.begin_min), parts(self.end_min));
        write!(f, "{:02}:{:02}-{:02}:{:02}", begin.0, begin.1, end.0, end.1)
    }
}

impl Form for DayTimes {
    const FORM: &'static str = "two times of the day, such as \"22:00-06:00\"";
}

text_value!(DayTimes);

impl LinkWindow {
    fn rules(&self) -> TimeWindow {
        let days = self.days.iter();
        let days = days.fold(Days::NONE, |days, day| days.with(*day as u8));
        TimeWindow {
            begin_min: self.time.begin_min,
            end_min: self.time.end_min,
            days: if self.days.is_empty() {
                Days::ALL
            } else {
                days
            },
            rate: self.rate.map(Rate::bytes_s),
            free: self.free,
            complete: self.complete,
            refresh: self.refresh.unwrap_or(0),
        }
    }
}

/// The rules of windows.
pub(super) fn rules(windows: &[LinkWindow]) -> Box<[TimeWindow]> {
    windows.iter().map(LinkWindow::rules).collect()
}

/// The settings about them.
pub(super) fn settings() -> Vec<Setting> {
    vec![
        Setting::new::<DayTimes>(
            "link[].windows[].time",
            &[
                "Times of the day with a rate of their own, by the clocks of `time_zone`, as in `windows = [{ time = \"22:00-06:00\", rate = \"5MiB/s\" }]`.",
                "An end before the begin is on the next day. A time that clocks skip is when they are moved. At most 16, which do not overlap.",
            ],
        ),
        Setting::new::<Vec<Weekday>>(
            "link[].windows[].days",
            &["The days on which the window begins. Without them, each."],
        ),
        Setting::new::<Rate>(
            "link[].windows[].rate",
            &["Bytes a second in the window. Without it, that of the link."],
        )
        .within(&Rate::MIN, &Rate::MAX),
        Setting {
            form: "true or false",
            ..Setting::new::<bool>(
                "link[].windows[].free",
                &["Whether bytes in the window are not of the quota, as where nights cost nothing."],
            )
        }
        .by_default(&false),
        Setting {
            form: "true or false",
            ..Setting::new::<bool>(
                "link[].windows[].complete",
                &["Whether fetches that were paused are completed in the window. If a window of a link says so, they begin again in such windows alone; without one, whenever the link has room."],
            )
        }
        .by_default(&false),
        Setting::new::<u16>(
            "link[].windows[].refresh",
            &[
                "How many of the stored responses that are requested most are validated in the window if they are stale, or will be within an hour. Without it, none.",
                "It takes `admin.top`. One is validated at a time, at most once an hour, without any field of a client.",
            ],
        )
        .within(&REFRESH_RANGE[0], &REFRESH_RANGE[1]),
    ]
}

/// Refuses windows that contradict each other or the link, whose key is `link`.
pub(super) fn check(link: &str, windows: &[LinkWindow], has_quota: bool) -> Result<(), Invalid> {
    if windows.len() > WINDOWS_MAX {
        return Err(Invalid::new(
            format!("{link}.windows"),
            format!("{} are more than the maximum, {WINDOWS_MAX}", windows.len()),
            "join some of them",
        ));
    }
    let compiled = rules(windows);
    for (index, window) in windows.iter().enumerate() {
        let key = format!("{link}.windows[{index}]");
        if let Some(rate) = window.rate {
            rate.check(&format!("{key}.rate"))?;
        }
        if window.free && !has_quota {
            return Err(Invalid::new(
                format!("{key}.free"),
                "the link has no quota that bytes could be of",
                "remove it, or add `quota` and `period`",
            ));
        }
        if let Some(refresh) = window.refresh {
            let [least, most] = &REFRESH_RANGE;
            check_range(&format!("{key}.refresh"), &refresh, least, most)?;
        }
        let has_work = window.complete || window.refresh.is_some();
        if window.rate.is_none() && !window.free && !has_work {
            return Err(Invalid::new(
                key,
                "the window changes nothing",
                "give it a `rate`, `free`, `complete` or `refresh`, or remove it",
            ));
        }
        let mut earlier = compiled[..index].iter();
        if let Some(other) = earlier.position(|other| other.overlaps(&compiled[index])) {
            return Err(Invalid::new(
                format!("{key}.time"),
                format!(
                    "{} overlaps the window {} before it",
                    window.time, windows[other].time
                ),
                "have one end when the other begins",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_window_is_two_different_times_of_the_day() {
        let check = |text: &str, expected: Option<&str>| {
            let parsed = text.parse::<DayTimes>();
            let found = parsed.as_ref().ok().map(ToString::to_string);
            assert_eq!(found.as_deref(), expected, "{text}: {parsed:?}");
        };
        for text in ["22:00-06:00", "00:00-24:00", "12:30-12:31", "23:59-00:01"] {
            check(text, Some(text));
        }
        for text in [
            "",
            "22:00",
            "22-06",
            "06:00-06:00",
            "24:00-06:00",
            "22:00-00:00",
            "22:60-23:00",
            "22:00-24:01",
            "9:00-10:00",
            "22:00-06:00 ",
            "é2:00-06:0",
        ] {
            check(text, None);
        }
    }
}
