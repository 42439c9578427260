//! Forgetting what is outdated: by an unsafe request (RFC 9111 §4.4), or as the next hop's response
//! shows.

use crate::cache::purge::{forget, hold_key};
use crate::exchange::state::RequestState;
use crate::fetch::storable_head::StorableHead;
use crate::request::key::{key_by_rule, keys_of};
use crate::send::heads::stored_fields;
use crate::settings::Settings;
use crate::worker::core::Worker;
use crate::worker::shared::Shared;
use std::sync::Arc;
use std::time::Duration;
use weir_measure::Metric;
use weir_policy::Digest;
use weir_semantics::{Authority, HostName, Method, Target, canonical_target, lines_named};
use weir_store::{Purge, StoredResponse};
use weir_wire::{LineBuffer, ResponseHead};

/// What a response invalidates. The client may hear of the change once that is
/// [settled](super::settling::Settling).
#[derive(Default)]
pub(crate) struct Invalidation {
    pub(super) purges: Vec<Purge>,
    /// What the other nodes of the cluster are to be told.
    pub(super) targets: Vec<InvalidTarget>,
}

/// A target that is invalidated.
pub(super) struct InvalidTarget {
    /// The keys under which something may be stored of it.
    pub(super) keys: Vec<Digest>,
    /// As a reference has it; `None` for the target of the request.
    pub(super) url: Option<String>,
}

/// The longest URL that is invalidated since `Location` or `Content-Location` names it, bytes. The
/// RFC leaves these to the cache; longer ones would fill what waits for other nodes.
const NAMED_URL_BYTES_MAX: usize = 8192;

impl Invalidation {
    /// Whether there is nothing to wait for.
    pub(crate) const fn is_none(&self) -> bool {
        self.purges.is_empty() && self.targets.is_empty()
    }

    /// `purge`, too.
    pub(crate) fn add(&mut self, purge: Purge) {
        self.purges.push(purge);
    }
}

/// Forgets the target, and what Location and Content-Location name, one each, if they have the same
/// origin: a response could otherwise empty other sites' caches. The other nodes of the cluster are
/// to be told.
pub(crate) fn run(
    worker: &Worker,
    exchange: &RequestState,
    response: &ResponseHead<'_, '_>,
    invalidation: &mut Invalidation,
) {
    let (rules, secret) = (
        &exchange.settings.operator_rules,
        worker.shared.store.secret(),
    );
    let target = exchange.request.target();
    let by_rule = key_by_rule(rules, exchange.request.mode, &target, secret);
    let mut targets = vec![InvalidTarget {
        keys: [exchange.key].into_iter().chain(by_rule).collect(),
        url: None,
    }];
    for name in ["location", "content-location"] {
        // both are fields with one value (RFC 9110 §8.7, §10.2.2)
        for value in lines_named(response.fields, name).take(1) {
            targets.extend(target_of_reference(exchange, value, worker));
        }
    }
    let keys = targets
        .iter()
        .flat_map(|target| target.keys.iter().copied());
    let keys: Vec<Digest> = keys.collect();
    let purges = forget_all(&worker.shared, &exchange.settings, &keys);
    let removed: usize = purges.iter().map(|purge| purge.removed).sum();
    worker.counters().add(Metric::Invalidated, removed as u64);
    invalidation.purges.extend(purges);
    if exchange.settings.config.cluster.exists() {
        invalidation.targets.extend(targets);
    }
}

/// Forgets `keys` here. In a cluster they are held from now on for as long as members are waited
/// for, and their patience, and no shorter.
pub(super) fn forget_all(shared: &Shared, settings: &Settings, keys: &[Digest]) -> Vec<Purge> {
    hold_all(shared, settings, keys);
    let forgotten = keys.iter().map(|key| forget(shared, *key));
    forgotten.collect()
}

pub(super) fn hold_all(shared: &Shared, settings: &Settings, keys: &[Digest]) {
    let config = &settings.config.cluster;
    if config.exists() {
        let patience = config.peer_timeout.as_duration();
        for key in keys {
            hold_key(shared, *key, patience * 2);
        }
    }
}

/// Forgets `stored` alone: what the next hop sent shows that it is outdated, or that it is not for
/// others any more.
pub(crate) fn one(worker: &Worker, exchange: &RequestState, stored: &Arc<StoredResponse>) -> Purge {
    let mut lines = LineBuffer::new();
    let fields = stored_fields(&stored.head, &mut lines);
    let vary = StorableHead::vary_of(worker, exchange, fields);
    let selecting = vary.map(|(_, selecting)| selecting);
    let store = &worker.shared.store;
    store.purge_one(exchange.key, stored, selecting)
}

/// How long an answer waits for the disk to write down what it invalidates, and an operator for a
/// purge: a rotating disk under load takes a second.
pub(crate) const DURABLE_WAIT: Duration = Duration::from_secs(5);

/// The target that a reference names, with its URL where other nodes are to be told.
fn target_of_reference(
    exchange: &RequestState,
    value: &[u8],
    worker: &Worker,
) -> Option<InvalidTarget> {
    let value = Some(value).filter(|value| value.len() <= NAMED_URL_BYTES_MAX)?;
    let reference = std::str::from_utf8(value).ok()?;
    let reference = reference.split('#').next()?;
    let default = Authority {
        host: *exchange.request.host,
        port: Some(exchange.request.port),
    };
    let resolved;
    let raw = if reference.starts_with('/') && !reference.starts_with("//")
        || reference.contains("://")
    {
        reference
    } else if reference.starts_with("//") {
        resolved = format!("{}:{reference}", exchange.request.scheme.as_str());
        &resolved
    } else {
        resolved = resolve_relative(exchange, reference);
        &resolved
    };
    let scheme = exchange.request.scheme;
    let mut slot = HostName::EMPTY;
    let (target, _): (Target<'_>, _) =
        canonical_target(Method::Get, raw, &[], false, &default, scheme, &mut slot).ok()?;
    let same_origin = *target.host == *exchange.request.host
        && target.port == exchange.request.port
        && target.scheme == scheme;
    // a relative one has the path of the request before it
    let is_short = target.path_and_query.len() <= NAMED_URL_BYTES_MAX;
    (same_origin && is_short).then(|| {
        let rules = &exchange.settings.operator_rules;
        let secret = worker.shared.store.secret();
        let keys = keys_of(rules, exchange.request.mode, &target, secret);
        let is_told = exchange.settings.config.cluster.exists();
        let url = is_told.then(|| {
            let mut url = format!("{}://", scheme.as_str()).into_bytes();
            target.write_authority(&mut url);
            url.extend_from_slice(target.path_and_query.as_bytes());
            String::from_utf8_lossy(&url).into_owned()
        });
        InvalidTarget {
            keys: keys.collect(),
            url,
        }
    })
}

/// A relative reference against the target's path (RFC 3986 §5.2.3, without dot segments: they are
/// rare here and missing one keeps a response that its own freshness still bounds).
fn resolve_relative(exchange: &RequestState, reference: &str) -> String {
    let path = exchange.request.path_and_query();
    let path = path.split('?').next().unwrap_or("/");
    // without a path of its own it has that of the request (RFC 3986 §5.2.2)
    if reference.starts_with('?') {
        return format!("{path}{reference}");
    }
    let folder = path.rfind('/').map_or("/", |at| &path[..=at]);
    format!("{folder}{reference}")
}
