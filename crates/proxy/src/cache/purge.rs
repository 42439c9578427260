//! Purges a target at this node: for an unsafe request, an operator, or another node.

use crate::cluster::purges::PurgedTarget;
use crate::cluster::purges::valid_since_file::{Demand, ValidSinceFile};
use crate::config::Mode;
use crate::request::key::keys_of;
use crate::worker::shared::Shared;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout_at;
use weir_measure::Metric;
use weir_policy::Digest;
use weir_semantics::{
    Authority, Form, HostName, Method, PurgeOutcome, Scheme, Target, canonical_target,
};
use weir_store::Purge;

/// The target that a URL names; its host is written into `host`.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn purge_target<'a>(url: &'a str, host: &'a mut HostName) -> Result<Target<'a>, String> {
    let nowhere = Authority::parse("localhost").map_err(|error| error.to_string())?;
    let target = canonical_target(Method::Get, url, &[], false, &nowhere, Scheme::Http, host);
    let (target, form) = target.map_err(|error| error.to_string())?;
    if form != Form::Absolute {
        return Err("a whole URL is needed, such as http://www.example.com/page".into());
    }
    Ok(target)
}

/// Forgets `key`, here and on disk. The store first: a request that comes between the two and finds
/// the response in flight sees that it is outdated there.
pub(crate) fn forget(shared: &Shared, key: Digest) -> Purge {
    let purge = shared.store.purge(key);
    shared.collapsed.forget(key);
    purge
}

/// Purges `what`, and fetches it from the origin alone for so long. The purges may be acknowledged
/// once they are durable.
///
/// # Errors
///
/// What is wrong with its URL.
pub(crate) fn apply(
    shared: &Shared,
    what: &PurgedTarget,
    hold: Duration,
) -> Result<Vec<Purge>, String> {
    let (url, modes): (&str, &[Mode]) = match what {
        PurgedTarget::Invalidated { mode, url } => (url, &[*mode]),
        PurgedTarget::Url(url) => (url, &[Mode::Forward, Mode::Gateway]),
        PurgedTarget::All => {
            hold_all(shared, hold);
            let purge = shared.store.purge_all();
            shared.collapsed.forget_all();
            return Ok(vec![purge]);
        }
        PurgedTarget::Validate => {
            hold_all(shared, hold);
            let kept = validate_all(shared);
            let written = kept.map(|(file, demand)| Purge::lasting(file.demand(demand)));
            return Ok(written.into_iter().collect());
        }
    };
    let mut host = HostName::EMPTY;
    let target = purge_target(url, &mut host)?;
    let (settings, secret) = (shared.settings.load(), shared.store.secret());
    let keys = |mode: &Mode| keys_of(&settings.operator_rules, *mode, &target, secret);
    let purge = |key| {
        hold_key(shared, key, hold);
        forget(shared, key)
    };
    Ok(modes.iter().flat_map(keys).map(purge).collect())
}

/// Has all that was stored by now validated at its next use. What is in flight is from before, too:
/// the node that sends it may not have dropped what was purged, and its head may arrive later. What
/// is returned says what that is, and which file is to keep it for the next process, where there is
/// a store on disk.
pub(crate) fn validate_all(shared: &Shared) -> Option<(Arc<ValidSinceFile>, Demand)> {
    let now = shared.clock().now();
    let valid_since = &shared.settings.load().membership.valid_since;
    valid_since.missed(now.tick);
    shared.store.outdate_in_flight();
    shared.collapsed.forget_all();
    let demand = Demand {
        ticket: shared.store.validate_on_disk()?,
        then: now.wall,
    };
    let file = valid_since.file.get()?;
    Some((Arc::clone(file), demand))
}

/// Has `key` fetched from the origin alone for so long.
pub(crate) fn hold_key(shared: &Shared, key: Digest, hold: Duration) {
    if !hold.is_zero() {
        let now = Instant::now();
        shared.cluster_purges.holds.hold(now, key, now + hold);
    }
}

fn hold_all(shared: &Shared, hold: Duration) {
    if !hold.is_zero() {
        shared.cluster_purges.holds.hold_all(Instant::now() + hold);
    }
}

/// Waits until `purges` survive a crash, until then at most.
pub(crate) async fn outcome(shared: &Shared, purges: Vec<Purge>, until: Instant) -> PurgeOutcome {
    let removed = purges.iter().map(|purge| purge.removed as u64).sum();
    let mut is_durable = true;
    for purge in purges {
        let durable = timeout_at(until.into(), purge.durable()).await;
        if !matches!(durable, Ok(Ok(()))) {
            let counters = shared.common_counters();
            counters.add_shared(Metric::PurgesNotDurable, 1);
            is_durable = false;
        }
    }
    PurgeOutcome {
        removed,
        is_durable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_of_which_nothing_can_be_stored_is_refused() {
        let check = |url: &str, expected: Option<&str>| {
            let mut host = HostName::EMPTY;
            let found = purge_target(url, &mut host).err();
            match (&found, expected) {
                (None, None) => {}
                (Some(why), Some(part)) => assert!(why.contains(part), "{why}"),
                _ => panic!("{url}: {found:?}"),
            }
        };
        check("http://a.example/x", None);
        check("https://a.example/x", None);
        check("/x", Some("a whole URL is needed"));
    }
}
