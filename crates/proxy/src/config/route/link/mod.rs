//! Links to next hops: how many bytes a second and a period may be moved over them.

mod time_zone;
mod window;

pub use time_zone::ZoneName;
pub use window::{DayTimes, LinkWindow, Weekday};

use crate::config::route::Route;
use crate::config::route::parent::Parent;
use crate::config::setting::invalid::Invalid;
use crate::config::setting::{Setting, check_range};
use crate::config::values::byte_size::ByteSize;
use crate::config::values::name::Names;
use crate::config::values::next_hop_url::NextHopUrl;
use crate::config::values::rate::Rate;
use crate::config::values::time::span::Span;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use weir_policy::budget::{
    CountedBytes, Every, LinkRules, OVERHEAD_PERCENT_MAX, PeriodRules, Quota, RESERVE_PERCENT_MAX,
    WhenSpent,
};
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

/// Most links.
const LINKS_MAX: usize = 32;

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

    fn check(&self, key: &str) -> Result<(), Invalid> {
        let at = |name: &str| format!("{key}.{name}");
        let percent = |name: &str, value: Option<u8>, most: u8| {
            value.map_or(Ok(()), |value| check_range(&at(name), &value, &0, &most))
        };
        if let Some(rate) = self.rate {
            rate.check(&at("rate"))?;
        }
        percent("reserve_percent", self.reserve_percent, RESERVE_PERCENT_MAX)?;
        percent(
            "overhead_percent",
            self.overhead_percent,
            OVERHEAD_PERCENT_MAX,
        )?;
        if let Some(bytes) = self.bulk_above {
            let [least, most] = &BULK_ABOVE_RANGE;
            check_range(&at("bulk_above"), &bytes, least, most)?;
        }
        self.check_quota(&at)?;
        window::check(key, &self.windows, self.quota.is_some())
    }

    fn check_quota(&self, at: &impl Fn(&str) -> String) -> Result<(), Invalid> {
        let of_quota = [
            ("period", self.period.is_some()),
            ("period_starts", self.period_starts.is_some()),
            ("when_spent", self.when_spent.is_some()),
            ("slow_rate", self.slow_rate.is_some()),
            ("stale_for", self.stale_for.is_some()),
            ("state_file", self.state_file.is_some()),
        ];
        let (Some(quota), period) = (self.quota, self.period) else {
            return match of_quota.into_iter().find(|(_, is_given)| *is_given) {
                None => Ok(()),
                Some((name, _)) => Err(Invalid::new(
                    at(name),
                    "the link has no quota that it could be of",
                    "add `quota = \"100GiB\"`, or remove it",
                )),
            };
        };
        check_range(&at("quota"), &quota, &QUOTAS[0], &QUOTAS[1])?;
        let Some(period) = period else {
            return Err(Invalid::new(
                at("quota"),
                format!("{quota}, and no period says in which time"),
                "add `period = \"month\"`, or \"week\" or \"day\"",
            ));
        };
        if let Some(starts) = self.period_starts {
            check_range(&at("period_starts"), &starts, &1, &period.starts_max())?;
        }
        if let Some(rate) = self.slow_rate {
            rate.check(&at("slow_rate"))?;
        }
        if let Some(span) = self.stale_for {
            check_range(&at("stale_for"), &span, &Span::ZERO, &STALE_FOR_MAX)?;
        }
        let then = self.when_spent.unwrap_or(WhenSpent::Refuse);
        let needs = [
            ("slow_rate", self.slow_rate.is_some(), WhenSpent::Slow),
            ("stale_for", self.stale_for.is_some(), WhenSpent::Stale),
        ];
        for (name, is_given, needed) in needs {
            if is_given && then != needed {
                return Err(Invalid::new(
                    at(name),
                    format!("it is for `when_spent = \"{needed}\"`, and that is \"{then}\""),
                    "change `when_spent`, or remove it",
                ));
            }
        }
        Ok(())
    }
}

/// Refuses links that mean nothing, names that are not distinct, and next hops that are behind two
/// links or are none.
pub(in crate::config) fn check(
    links: &[Link],
    routes: &[Route],
    parents: &[Parent],
) -> Result<(), Invalid> {
    if links.len() > LINKS_MAX {
        return Err(Invalid::new(
            format!("link[{LINKS_MAX}]"),
            format!(
                "there are {} links, and {LINKS_MAX} are the most",
                links.len()
            ),
            "put next hops behind one link",
        ));
    }
    let of_routes = routes.iter().flat_map(|route| &route.next_hops);
    let of_parents = parents.iter().filter_map(|parent| parent.url.as_ref());
    let known: BTreeSet<&NextHopUrl> = of_routes.chain(of_parents).collect();
    let mut taken: BTreeSet<&NextHopUrl> = BTreeSet::new();
    let mut has_rest = false;
    let mut names = Names::new("link");
    for (index, link) in links.iter().enumerate() {
        let key = format!("link[{index}]");
        names.add(&format!("{key}.name"), &link.name)?;
        for (place, hop) in link.next_hops.iter().enumerate() {
            let key = format!("{key}.next_hops[{place}]");
            if !known.contains(hop) {
                return Err(Invalid::new(
                    key,
                    format!("no route and no parent has the next hop {hop}"),
                    "write it as the [[route]] or [[parent]] does; without `next_hops` the link has all next hops",
                ));
            }
            if !taken.insert(hop) {
                return Err(Invalid::new(
                    key,
                    format!("{hop} is behind a link already"),
                    "name each next hop once",
                ));
            }
        }
        if link.next_hops.is_empty() && std::mem::replace(&mut has_rest, true) {
            return Err(Invalid::new(
                key,
                "an earlier link has all next hops that no link names",
                "add `next_hops` to one of them",
            ));
        }
        link.check(&key)?;
    }
    Ok(())
}

/// The settings of links.
pub(in crate::config) fn settings() -> Vec<Setting> {
    let mut settings = rate_settings();
    settings.extend(quota_settings());
    settings.extend(window::settings());
    settings
}

fn rate_settings() -> Vec<Setting> {
    vec![
        Setting::new::<String>(
            "link[].name",
            &[
                "What messages, the access log and metrics call the link; docs/links.md explains links. A link that keeps its name over a",
                "reload or restart goes on with what it has spent.",
            ],
        ),
        Setting::new::<Vec<NextHopUrl>>(
            "link[].next_hops",
            &[
                "Next hops of routes, and parents, that are reached over the link; each is behind one link. Without it, all that no other link",
                "names: also origins that a forward proxy asks itself, and tunnels to them. Other nodes of a cluster are behind no link.",
            ],
        ),
        Setting::new::<Rate>(
            "link[].rate",
            &[
                "Bytes a second over the link, of those that `count` counts; a tenth of a second's worth at once. Fetches wait, and with them",
                "those that read them as they come; what is stored is sent to clients at any speed. Without it, no bound.",
            ],
        )
        .within(&Rate::MIN, &Rate::MAX),
        Setting::new::<u8>(
            "link[].reserve_percent",
            &[
                "What large fetches leave of `rate` for small ones, percent: a page does not wait for a download. Small are heads, and the first",
                "`bulk_above` of content and of tunnels.",
            ],
        )
        .by_default(&RESERVE_PERCENT)
        .within(&0, &RESERVE_PERCENT_MAX),
        Setting::new::<ByteSize>(
            "link[].bulk_above",
            &["What a response or a tunnel brings beyond so many bytes counts as a large fetch."],
        )
        .by_default(&BULK_ABOVE)
        .within(&BULK_ABOVE_RANGE[0], &BULK_ABOVE_RANGE[1]),
        Setting {
            form: CountedBytes::FORM,
            ..Setting::new::<String>(
                "link[].count",
                &[
                    "Which bytes are counted: those that next hops send, or those that are sent to them, too. Heads, framing, repeated requests and",
                    "probes are, name resolution is not.",
                ],
            )
        }
        .by_default(&CountedBytes::Both),
        Setting::new::<u8>(
            "link[].overhead_percent",
            &[
                "What heads of IP and TCP add to the bytes that are counted for the quota, percent: 52 bytes for each 1448, as on Ethernet.",
            ],
        )
        .by_default(&OVERHEAD_PERCENT)
        .within(&0, &OVERHEAD_PERCENT_MAX),
        Setting::new::<ZoneName>(
            "link[].time_zone",
            &["The clocks and the calendar of `period` and `windows`: a name of the IANA database."],
        )
        .by_default(&ZoneName::default()),
    ]
}

fn quota_settings() -> Vec<Setting> {
    vec![
        Setting::new::<ByteSize>(
            "link[].quota",
            &[
                "Bytes of each `period`. What is spent is on disk before it is spent, in steps, so that it holds over `kill -9`; docs/links.md",
                "says by how much it can be exceeded. Without it, no bound.",
            ],
        )
        .within(&QUOTAS[0], &QUOTAS[1]),
        Setting {
            form: Every::FORM,
            ..Setting::new::<String>(
                "link[].period",
                &["How often the quota is given, by the calendar of `time_zone`. A quota needs it."],
            )
        },
        Setting::new::<u8>(
            "link[].period_starts",
            &["The day on which periods begin: of a month 1 to 28, of a week 1 (Monday) to 7."],
        )
        .by_default(&1_u8)
        .within(&1, &Every::Month.starts_max()),
        Setting {
            form: WhenSpent::FORM,
            ..Setting::new::<String>(
                "link[].when_spent",
                &[
                    "What follows when the quota is spent, until the next period: `slow` fetches on at `slow_rate`, beyond the quota; the others",
                    "fetch nothing, and serve what is stored and fresh; beside that, `stored-only` answers 504, `stale` serves what is stored for",
                    "`stale_for` past its freshness and else answers as `refuse`, and `refuse` answers 429, with the reason and `Retry-After`.",
                ],
            )
        }
        .by_default(&WhenSpent::Refuse),
        Setting::new::<Rate>(
            "link[].slow_rate",
            &["Bytes a second after the quota is spent, with `when_spent = \"slow\"`."],
        )
        .by_default(&SLOW_RATE)
        .within(&Rate::MIN, &Rate::MAX),
        Setting::new::<Span>(
            "link[].stale_for",
            &[
                "How long past its freshness a response is served after the quota is spent, with `when_spent = \"stale\"`. Not what says no-cache,",
                "must-revalidate, proxy-revalidate or s-maxage.",
            ],
        )
        .by_default(&STALE_FOR)
        .within(&Span::ZERO, &STALE_FOR_MAX),
        Setting {
            form: "a path",
            ..Setting::new::<String>(
                "link[].state_file",
                &[
                    "Where it is kept what is spent, 1 KiB. Without it, `weir-link-NAME` in the directory that a service manager gives",
                    "(`STATE_DIRECTORY`), else in the first directory of the store on disk; where there is neither, a quota needs it.",
                ],
            )
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Reads links beside a route to `http://a`, and compares the key at fault.
    fn check(links: serde_json::Value, expected: Option<&str>) {
        let links: Vec<Link> = serde_json::from_value(links).expect("links");
        let route = Route {
            next_hops: vec!["http://a".parse().expect("a URL")],
            ..Route::default()
        };
        let found = super::check(&links, &[route], &[]).err();
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
