//! Links that mean nothing, or that contradict each other or the next hops.

use super::{BULK_ABOVE_RANGE, Link, QUOTAS, STALE_FOR_MAX, window};
use crate::config::admin::Admin;
use crate::config::route::Route;
use crate::config::route::parent::Parent;
use crate::config::setting::check_range;
use crate::config::setting::invalid::Invalid;
use crate::config::setting::mistakes::Mistakes;
use crate::config::values::name::Names;
use crate::config::values::next_hop_url::NextHopUrl;
use crate::config::values::time::span::Span;
use std::collections::BTreeSet;
use weir_measure::history::series::LINKS_MAX;
use weir_policy::budget::{OVERHEAD_PERCENT_MAX, RESERVE_PERCENT_MAX, WhenSpent};

/// Refuses links that mean nothing, names that are not distinct, and next hops that are behind two
/// links or are none.
pub(in crate::config) fn check(
    links: &[Link],
    routes: &[Route],
    parents: &[Parent],
    mistakes: &mut Mistakes,
) {
    if links.len() > LINKS_MAX {
        mistakes.note(Err(Invalid::new(
            format!("link[{LINKS_MAX}]"),
            format!(
                "there are {} links, and {LINKS_MAX} are the most",
                links.len()
            ),
            "put next hops behind one link",
        )));
    }
    let of_routes = routes.iter().flat_map(|route| &route.next_hops);
    let of_parents = parents.iter().filter_map(|parent| parent.url.as_ref());
    let known: BTreeSet<&NextHopUrl> = of_routes.chain(of_parents).collect();
    let mut taken: BTreeSet<&NextHopUrl> = BTreeSet::new();
    let mut has_rest = false;
    let mut names = Names::new("link");
    for (index, link) in links.iter().enumerate() {
        let key = format!("link[{index}]");
        mistakes.note(names.add(&format!("{key}.name"), &link.name));
        for (place, hop) in link.next_hops.iter().enumerate() {
            let key = format!("{key}.next_hops[{place}]");
            mistakes.note(check_next_hop(key, known.contains(hop), taken.insert(hop)));
        }
        if link.next_hops.is_empty() && std::mem::replace(&mut has_rest, true) {
            mistakes.note(Err(Invalid::new(
                &*key,
                "an earlier link has all next hops that no link names",
                "add `next_hops` to one of them",
            )));
        }
        link.check(&key, mistakes);
    }
    mistakes.note(check_http2(links, routes));
}

/// A link counts and paces connections, each of which has one request: refuses next hops behind one
/// that can be spoken to by HTTP/2 alone.
fn check_http2(links: &[Link], routes: &[Route]) -> Result<(), Invalid> {
    let is_behind = |hop: &NextHopUrl| {
        let with_it = |link: &Link| link.next_hops.is_empty() || link.next_hops.contains(hop);
        links.iter().any(with_it)
    };
    for (index, route) in routes.iter().enumerate() {
        let in_clear = |hop: &&NextHopUrl| !hop.tls && route.has_http2(hop);
        if let Some(hop) = route
            .next_hops
            .iter()
            .filter(in_clear)
            .find(|hop| is_behind(hop))
        {
            return Err(Invalid::new(
                format!("route[{index}].http2"),
                format!("{hop} is behind a link, and is spoken to by HTTP/1.1"),
                "remove `http2`, or the link",
            ));
        }
    }
    Ok(())
}

/// Windows that have popular responses validated where nothing is known to be popular.
pub(in crate::config) fn warnings(links: &[Link], admin: &Admin) -> Vec<Invalid> {
    if admin.top {
        return Vec::new();
    }
    let windows = |(link, of): (usize, &Link)| {
        let windows = of.windows.iter().enumerate();
        let refreshing = windows.filter(|(_, window)| window.refresh.is_some());
        let keys = refreshing.map(|(at, _)| format!("link[{link}].windows[{at}].refresh"));
        keys.collect::<Vec<_>>()
    };
    let keys = links.iter().enumerate().flat_map(windows);
    let worded = keys.map(|key| {
        Invalid::new(
            key,
            "with `admin.top = false` no response is known to be popular: none is validated",
            "set `admin.top` to true, or remove `refresh`",
        )
    });
    worded.collect()
}

/// The messages do not repeat the URL: the line of the file that is shown beside them does, as it
/// is written there.
fn check_next_hop(key: String, is_known: bool, is_new: bool) -> Result<(), Invalid> {
    if !is_known {
        return Err(Invalid::new(
            key,
            "no route and no parent has this next hop",
            "write it as the [[route]] or [[parent]] does; without `next_hops` the link has all next hops",
        ));
    }
    if !is_new {
        return Err(Invalid::new(
            key,
            "this next hop is behind a link already",
            "name each next hop once",
        ));
    }
    Ok(())
}

impl Link {
    fn check(&self, key: &str, mistakes: &mut Mistakes) {
        let at = |name: &str| format!("{key}.{name}");
        if let Some(rate) = self.rate {
            mistakes.note(rate.check(&at("rate")));
        }
        for (name, value, most) in [
            ("reserve_percent", self.reserve_percent, RESERVE_PERCENT_MAX),
            (
                "overhead_percent",
                self.overhead_percent,
                OVERHEAD_PERCENT_MAX,
            ),
        ] {
            if let Some(value) = value {
                mistakes.note(check_range(&at(name), &value, &0, &most));
            }
        }
        if let Some(bytes) = self.bulk_above {
            let [least, most] = &BULK_ABOVE_RANGE;
            mistakes.note(check_range(&at("bulk_above"), &bytes, least, most));
        }
        mistakes.note(self.check_quota(&at));
        mistakes.note(window::check(key, &self.windows, self.quota.is_some()));
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
