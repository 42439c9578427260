//! When the quotas of links would be spent by the traffic of a trace.
//!
//! The run steps the same `policy::budget` as the live proxy: what comes from servers is counted
//! for each link, with the headers of packets. What follows a spent quota is not simulated: all is
//! fetched that would be, so that the answer is how much too small the quota is.

use serde::Serialize;
use std::fmt::{self, Write as _};
use weir_policy::Now;
use weir_policy::budget::{Link, LinkRules, QuotaReport};
use weir_semantics::{Civil, Timestamp};

/// A link with a quota, as a configuration has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSetting {
    /// Its name.
    pub name: String,
    /// Its rules.
    pub rules: LinkRules,
}

/// What a run says of the quota of one link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkForecast {
    /// Its name.
    pub link: String,
    /// Its quota, bytes of a period.
    pub quota_bytes: u64,
    /// Each period of the trace.
    pub periods: Vec<ForecastPeriod>,
    /// How long a quota lasts at the mean rate of the trace, seconds; `None` if nothing was
    /// fetched.
    pub lasts_s: Option<u64>,
}

/// One period of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ForecastPeriod {
    /// Its begin, seconds since 1970 UTC.
    pub begin_unix_s: i64,
    /// Its end.
    pub end_unix_s: i64,
    /// Bytes that were fetched in it.
    pub bytes: u64,
    /// When the quota was spent, if it was.
    pub spent_unix_s: Option<i64>,
}

/// A link through a run.
#[derive(Debug)]
pub(crate) struct Forecast {
    name: String,
    link: Link,
    quota_bytes: u64,
    /// Bytes of the run that were seen.
    seen: u64,
    /// When it began and was looked at last.
    span: (Timestamp, Timestamp),
    periods: Vec<ForecastPeriod>,
}

impl Forecast {
    /// Nothing is spent at `now`; `None` for a link without a quota.
    pub(crate) fn new(setting: &LinkSetting, now: Now) -> Option<Self> {
        let quota_bytes = setting.rules.quota?.bytes;
        let rules = LinkRules {
            // packets are counted with their headers
            overhead_percent: 0,
            ..setting.rules.clone()
        };
        Some(Self {
            name: setting.name.clone(),
            link: Link::new(rules, None, now),
            quota_bytes,
            seen: 0,
            span: (now.wall, now.wall),
            periods: Vec::new(),
        })
    }

    /// So many bytes have come from servers in all.
    pub(crate) fn see(&mut self, now: Now, wire_bytes: u64) {
        let new = wire_bytes.saturating_sub(self.seen);
        self.seen = wire_bytes;
        self.span.1 = now.wall;
        self.link.used(now, new, 0);
        if let Some(quota) = self.link.report(now).quota {
            self.note(now, &quota);
        }
    }

    fn note(&mut self, now: Now, quota: &QuotaReport) {
        let (begin, end) = (quota.period.start.0, quota.period.end.0);
        if self
            .periods
            .last()
            .is_none_or(|last| last.begin_unix_s != begin)
        {
            self.periods.push(ForecastPeriod {
                begin_unix_s: begin,
                end_unix_s: end,
                bytes: 0,
                spent_unix_s: None,
            });
        }
        if let Some(last) = self.periods.last_mut() {
            last.bytes = quota.spent_bytes;
            if last.spent_unix_s.is_none() && quota.spent_bytes >= quota.bytes {
                last.spent_unix_s = Some(now.wall.0);
            }
        }
    }

    pub(crate) fn finish(self) -> LinkForecast {
        let (from, to) = self.span;
        let seconds = u128::from(to.0.abs_diff(from.0));
        let bytes: u128 = self.periods.iter().map(|it| u128::from(it.bytes)).sum();
        let lasts = (u128::from(self.quota_bytes) * seconds).checked_div(bytes);
        LinkForecast {
            link: self.name,
            quota_bytes: self.quota_bytes,
            periods: self.periods,
            lasts_s: lasts
                .filter(|_| seconds > 0)
                .and_then(|it| u64::try_from(it).ok()),
        }
    }
}

/// The forecasts of a run as lines, beside those of the same traffic without caches.
pub(super) fn written(
    run: &[LinkForecast],
    no_caches: &[LinkForecast],
    bytes: fn(u64) -> String,
) -> String {
    let mut text = String::new();
    for link in run {
        let _infallible = write!(text, "{}", Lines(link, bytes));
        let lasts = |link: &LinkForecast| link.lasts_s.map_or("for ever".to_owned(), days);
        let without = no_caches.iter().find(|other| other.link == link.link);
        let without = without.map_or_else(String::new, |other| {
            format!("; {} without caches", lasts(other))
        });
        let _infallible = writeln!(
            text,
            "  a quota lasts {} at the mean of this trace{without}",
            lasts(link)
        );
    }
    text
}

struct Lines<'a>(&'a LinkForecast, fn(u64) -> String);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(link, bytes) = self;
        writeln!(
            f,
            "link {}, {} a period",
            link.link,
            bytes(link.quota_bytes)
        )?;
        for period in &link.periods {
            let (begin, end) = (day(period.begin_unix_s), day(period.end_unix_s));
            let amount = bytes(period.bytes);
            match period.spent_unix_s {
                None => writeln!(f, "  {begin} to {end}  {amount}, not spent in this trace")?,
                Some(at) => writeln!(
                    f,
                    "  {begin} to {end}  {amount}, spent on {} {} UTC",
                    day(at),
                    time(at)
                )?,
            }
        }
        Ok(())
    }
}

const DAY_S: i64 = 86_400;

fn days(seconds: u64) -> String {
    let tenths = seconds / (DAY_S.unsigned_abs() / 10);
    format!("{}.{} days", tenths / 10, tenths % 10)
}

fn day(unix_s: i64) -> String {
    let date = Civil::from_days(unix_s.div_euclid(DAY_S));
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

fn time(unix_s: i64) -> String {
    let minutes = unix_s.rem_euclid(DAY_S) / 60;
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_policy::Tick;
    use weir_policy::budget::{CountedBytes, Every, PeriodRules, Quota, WhenSpent, Zone};
    use weir_semantics::DeltaSeconds;

    /// 2026-11-27 00:00 UTC.
    const FRIDAY: i64 = 20_784 * DAY_S;

    fn at(seconds: i64) -> Now {
        Now {
            wall: Timestamp(FRIDAY + seconds),
            tick: Tick(seconds.unsigned_abs() * 1000),
        }
    }

    #[test]
    fn day_on_which_a_quota_is_spent_is_found_and_the_next_period_begins_anew() {
        let setting = LinkSetting {
            name: "satellite".into(),
            rules: LinkRules {
                rate: None,
                reserve_percent: 0,
                bulk_above: 0,
                quota: Some(Quota {
                    bytes: 1_000_000,
                    period: PeriodRules {
                        every: Every::Month,
                        starts: 1,
                    },
                    then: WhenSpent::Refuse,
                    slow_rate: 1,
                    stale_for: DeltaSeconds(0),
                }),
                count: CountedBytes::Both,
                overhead_percent: 4,
                windows: Box::default(),
                zone: Zone::utc(),
            },
        };
        let mut forecast = Forecast::new(&setting, at(0)).expect("a quota");
        for half_day in 1..=16 {
            let at = at(half_day * DAY_S / 2);
            forecast.see(at, half_day.unsigned_abs() * 200_000);
        }
        let forecast = forecast.finish();
        let amount = |bytes: u64| format!("{bytes} B");
        assert_eq!(
            written(&[forecast], &[], amount),
            "link satellite, 1000000 B a period\n  \
             2026-11-01 to 2026-12-01  1400000 B, spent on 2026-11-29 12:00 UTC\n  \
             2026-12-01 to 2027-01-01  1800000 B, spent on 2026-12-03 00:00 UTC\n  \
             a quota lasts 2.5 days at the mean of this trace\n"
        );
    }
}
