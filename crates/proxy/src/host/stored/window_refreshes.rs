//! Validates popular stored responses in time windows of links, so that they are fresh when clients
//! ask for them.
//!
//! On the first worker, the most requested first: few at a time, one from each next hop. One that
//! does not answer, or trickles, is left alone for the rest of a look. What is popular is known by
//! its URL alone, from the heavy hitters. The request has no field of a client, and what it brings
//! is judged as what any such request brings.

use super::calls::{Caller, StoredCalls};
use super::refetch::Refresh;
use crate::host::worker_task;
use crate::worker::core::Worker;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::JoinSet;
use weir_extend::{Fields, ListenerMode, StoredError, StoredTarget};
use weir_measure::Metric;
use weir_measure::live::{TopBy, TopOf};
use weir_net::next_hops::HopKey;
use weir_net::workers::Stage;
use weir_policy::fetch::{RefreshedTargets, has_place};
use weir_policy::{Digest, KeyHasher};

/// How often it looks whether a window is open.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// After a look at what is popular it does not look again for so long: the sketches of all workers
/// are merged for it.
const REST: Duration = Duration::from_secs(30);

/// A popular response that may be validated.
struct Popular {
    /// The next hop, as far as it is known before one is chosen.
    hop: Option<HopKey>,
    key: Digest,
    target: StoredTarget,
}

/// Validates from now on until a shutdown begins; on the first worker. To be called once on each.
pub(crate) fn spawn(worker: &Rc<Worker>) {
    worker_task::spawn_on_first(worker, Stage::Draining, run);
}

async fn run(worker: &Rc<Worker>) {
    let calls = StoredCalls::new(Rc::downgrade(worker), Caller::Operator);
    let mut refreshed = RefreshedTargets::default();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let most = worker.shared.links.refreshes();
        if most > 0 {
            look(worker, &calls, &mut refreshed, most).await;
            tokio::time::sleep(REST).await;
        }
    }
}

/// Looks at the `most` most popular responses, once each.
async fn look(
    worker: &Rc<Worker>,
    calls: &StoredCalls,
    refreshed: &mut RefreshedTargets,
    most: u16,
) {
    refreshed.forget_old(worker.now().tick);
    let settings = worker.settings();
    let popular = worker.shared.tops.table(
        TopOf::Urls,
        TopBy::Requests,
        most.into(),
        &settings.config.admin,
    );
    let mut waiting = VecDeque::new();
    for row in popular.rows {
        for mode in [ListenerMode::Forward, ListenerMode::Gateway] {
            let mut hasher = KeyHasher::new(worker.shared.store.secret());
            hasher.number(mode as u64);
            hasher.part(row.name.as_bytes());
            let key = hasher.finish();
            if !refreshed.is_due(key) {
                continue;
            }
            let target = StoredTarget {
                mode,
                url: row.name.clone(),
                fields: Fields::default(),
            };
            let hop = calls.first_hop(&target);
            waiting.push_back(Popular { hop, key, target });
        }
    }
    refresh_all(worker, calls, refreshed, waiting).await;
}

/// Looks at each of those that are `waiting`.
async fn refresh_all(
    worker: &Worker,
    calls: &StoredCalls,
    refreshed: &mut RefreshedTargets,
    mut waiting: VecDeque<Popular>,
) {
    let mut under_way = JoinSet::new();
    let mut hops: Vec<Option<HopKey>> = Vec::new();
    loop {
        let has_place = |popular: &Popular| has_place(hops.iter(), &popular.hop);
        if let Some(at) = waiting.iter().position(has_place)
            && let Some(Popular { hop, key, target }) = waiting.remove(at)
        {
            hops.push(hop.clone());
            let refresh = calls.refresh(target);
            under_way.spawn_local(async move { (hop, key, refresh.await) });
            continue;
        }
        let Some(ended) = under_way.join_next().await else {
            return;
        };
        // one that panicked is counted where it did, and its next hop is left alone
        let Ok((hop, key, result)) = ended else {
            continue;
        };
        hops.retain(|other| *other != hop);
        match result {
            Ok(Refresh::Done) => {
                let counters = worker.shared.common_counters();
                counters.add_shared(Metric::WindowRefreshes, 1);
            }
            Ok(Refresh::NoWindow) => continue,
            Err(StoredError::Timeout | StoredError::Unreachable) => {
                waiting.retain(|popular| popular.hop != hop);
            }
            // one that cannot be had is tried again an hour later
            Ok(Refresh::NotNeeded) | Err(_) => {}
        }
        refreshed.note(worker.now().tick, key);
    }
}
