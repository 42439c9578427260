//! Links to next hops: how many bytes a second and a period may be moved over them.

mod check;
mod settings;
mod time_zone;
mod window;

pub(in crate::config) use check::{check, warnings};
pub(in crate::config) use settings::settings;
pub use time_zone::ZoneName;
pub use window::{DayTimes, LinkWindow, Weekday};

use crate::config::values::byte_size::ByteSize;
use crate::config::values::next_hop_url::NextHopUrl;
use crate::config::values::rate::Rate;
use crate::config::values::time::span::Span;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use weir_policy::budget::{CountedBytes, Every, LinkRules, PeriodRules, Quota, WhenSpent};
use weir_semantics::DeltaSeconds;

/// One `[[link]]` table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// What messages, logs and metrics call it.
    pub name: String,
    /// The next hops behind it; empty: all that no other link has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next_hops: Vec<NextHopUrl>,
    /// Bytes a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// What large fetches leave of it, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve_percent: Option<u8>,
    /// What of a response is a large fetch: content beyond so many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk_above: Option<ByteSize>,
    /// Bytes of each period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<ByteSize>,
    /// How often there is a quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Every>,
    /// The day on which periods begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_starts: Option<u8>,
    /// What follows when the quota is spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_spent: Option<WhenSpent>,
    /// Bytes a second then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_rate: Option<Rate>,
    /// How long past its freshness a response is served then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_for: Option<Span>,
    /// Where it is kept what is spent; absent: in the directory of the store or of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_file: Option<PathBuf>,
    /// Which bytes are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<CountedBytes>,
    /// What heads of IP and TCP add to them, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead_percent: Option<u8>,
    /// The calendar of periods and windows.
    #[serde(default, skip_serializing_if = "is_utc")]
    pub time_zone: ZoneName,
    /// Times with a rate of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<LinkWindow>,
}

fn is_utc(zone: &ZoneName) -> bool {
    *zone == ZoneName::default()
}

const RESERVE_PERCENT: u8 = 20;
const BULK_ABOVE: ByteSize = ByteSize::from_mib(1);
const BULK_ABOVE_RANGE: [ByteSize; 2] = [ByteSize::from_kib(16), ByteSize::from_gib(1)];
/// A quota is booked in steps of 64 KiB and more.
const QUOTAS: [ByteSize; 2] = [ByteSize::from_mib(1), ByteSize::from_gib(1 << 20)];
/// A page of text in a second or two.
const SLOW_RATE: Rate = Rate::from_kib(32);
const STALE_FOR: Span = Span::from_days(7);
const STALE_FOR_MAX: Span = Span::from_days(3650);
/// 52 bytes of heads for 1448 of content, as IPv4 has with timestamps on Ethernet.
const OVERHEAD_PERCENT: u8 = 4;

impl Link {
    /// Its rules, as the policy has them; of a valid configuration.
    #[must_use]
    pub fn rules(&self) -> LinkRules {
        let quota = self.quota.zip(self.period);
        LinkRules {
            rate: self.rate.map(Rate::bytes_s),
            reserve_percent: self.reserve_percent.unwrap_or(RESERVE_PERCENT),
            bulk_above: self.bulk_above.unwrap_or(BULK_ABOVE).bytes(),
            quota: quota.map(|(bytes, every)| Quota {
                bytes: bytes.bytes(),
                period: PeriodRules {
                    every,
                    starts: self.period_starts.unwrap_or(1),
                },
                then: self.when_spent.unwrap_or(WhenSpent::Refuse),
                slow_rate: self.slow_rate.unwrap_or(SLOW_RATE).bytes_s(),
                stale_for: DeltaSeconds::from_secs(self.stale_for.unwrap_or(STALE_FOR).as_secs()),
            }),
            count: self.count.unwrap_or(CountedBytes::Both),
            overhead_percent: self.overhead_percent.unwrap_or(OVERHEAD_PERCENT),
            windows: window::rules(&self.windows),
            zone: self.time_zone.zone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::admin::Admin;
    use crate::config::route::Route;
    use crate::config::setting::mistakes::Mistakes;
    use serde_json::json;

    /// Reads links beside a route to `http://a`, and compares the key at fault.
    fn check(links: serde_json::Value, expected: Option<&str>) {
        let links: Vec<Link> = serde_json::from_value(links).expect("links");
        let route = Route {
            next_hops: vec!["http://a".parse().expect("a URL")],
            ..Route::default()
        };
        let mut mistakes = Mistakes::default();
        super::check(&links, &[route], &[], &mut mistakes);
        let found = mistakes.first().err();
        let key = found.as_ref().map(|invalid| &*invalid.key_path);
        assert_eq!(key, expected, "{found:?}");
    }

    #[test]
    fn link_that_means_something_is_accepted() {
        check(json!([{ "name": "a" }]), None);
        check(
            json!([
                { "name": "a", "next_hops": ["http://a"], "rate": "1MiB/s" },
                { "name": "b", "quota": "1GiB", "period": "month", "period_starts": 28 },
            ]),
            None,
        );
    }

    #[test]
    fn name_or_next_hop_that_is_not_distinct_or_not_known_is_refused() {
        check(json!([{ "name": "a b" }]), Some("link[0].name"));
        check(
            json!([{ "name": "a", "next_hops": ["http://a"] }, { "name": "a" }]),
            Some("link[1].name"),
        );
        check(
            json!([{ "name": "a", "next_hops": ["http://b"] }]),
            Some("link[0].next_hops[0]"),
        );
        check(
            json!([{ "name": "a", "next_hops": ["http://a", "http://a:80/"] }]),
            Some("link[0].next_hops[1]"),
        );
        check(json!([{ "name": "a" }, { "name": "b" }]), Some("link[1]"));
    }

    #[test]
    fn what_is_of_a_quota_needs_one_and_a_quota_needs_a_period() {
        check(
            json!([{ "name": "a", "quota": "1GiB" }]),
            Some("link[0].quota"),
        );
        check(
            json!([{ "name": "a", "period": "day" }]),
            Some("link[0].period"),
        );
        check(
            json!([{ "name": "a", "when_spent": "slow" }]),
            Some("link[0].when_spent"),
        );
        let with = |key: &str, value: &str, expected: Option<&str>| {
            check(
                json!([{ "name": "a", "quota": "1GiB", "period": "week", key: value }]),
                expected,
            );
        };
        with("slow_rate", "1KiB/s", Some("link[0].slow_rate"));
        with("stale_for", "1h", Some("link[0].stale_for"));
        with("when_spent", "slow", None);
        let quota = |bytes: &str, expected: Option<&str>| {
            check(
                json!([{ "name": "a", "quota": bytes, "period": "week" }]),
                expected,
            );
        };
        quota("1MiB", None);
        quota("1048575B", Some("link[0].quota"));
        let starts = |day: u8, expected: Option<&str>| {
            check(
                json!([{ "name": "a", "quota": "1MiB", "period": "week", "period_starts": day }]),
                expected,
            );
        };
        starts(7, None);
        starts(8, Some("link[0].period_starts"));
        starts(0, Some("link[0].period_starts"));
    }

    #[test]
    fn window_that_refreshes_what_nothing_knows_to_be_popular_is_a_warning() {
        let window = |more: &str| format!(r#"{{"time": "01:00-05:00"{more}}}"#);
        let (rate, refresh) = (
            window(r#", "rate": "1MiB/s""#),
            window(r#", "refresh": 50"#).replace("01:00-05:00", "05:00-06:00"),
        );
        let links =
            format!(r#"[{{"name": "a"}}, {{"name": "b", "windows": [{rate}, {refresh}]}}]"#);
        let links: Vec<Link> = serde_json::from_str(&links).expect("links");
        let found = |top: bool| {
            let admin = Admin {
                top,
                ..Admin::default()
            };
            let warnings = warnings(&links, &admin).into_iter();
            warnings
                .map(|it| it.key_path.to_string())
                .collect::<Vec<_>>()
        };
        assert!(found(true).is_empty());
        assert_eq!(found(false), ["link[1].windows[1].refresh"]);
    }

    #[test]
    fn windows_that_overlap_or_change_nothing_are_refused() {
        let windows = |windows: serde_json::Value, expected: Option<&str>| {
            check(json!([{ "name": "a", "windows": windows }]), expected);
        };
        windows(json!([{ "time": "22:00-06:00", "rate": "1MiB/s" }]), None);
        windows(
            json!([{ "time": "22:00-06:00" }]),
            Some("link[0].windows[0]"),
        );
        windows(
            json!([{ "time": "22:00-06:00", "free": true }]),
            Some("link[0].windows[0].free"),
        );
        windows(
            json!([
                { "time": "22:00-06:00", "rate": "1MiB/s" },
                { "time": "05:00-08:00", "rate": "2MiB/s" },
            ]),
            Some("link[0].windows[1].time"),
        );
    }
}
