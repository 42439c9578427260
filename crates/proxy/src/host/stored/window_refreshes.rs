//! Validates popular stored responses in time windows of links, so that they are fresh when clients
//! ask for them.
//!
//! On the first worker, one response after the other, the most requested first. What is popular is
//! known by its URL alone, from the heavy hitters. The request has no field of a client, and what
//! it brings is judged as what any such request brings.

use super::calls::{Caller, StoredCalls};
use super::refetch::Refresh;
use crate::host::worker_task;
use crate::worker::core::Worker;
use std::rc::Rc;
use std::time::Duration;
use weir_extend::{Fields, ListenerMode, StoredTarget};
use weir_measure::Metric;
use weir_measure::live::{TopBy, TopOf};
use weir_net::workers::Stage;
use weir_policy::KeyHasher;
use weir_policy::fetch::RefreshedTargets;

/// How often it looks whether a window is open.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// After a look at what is popular it does not look again for so long: the sketches of all workers
/// are merged for it.
const REST: Duration = Duration::from_secs(30);

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
            match calls.refresh(target).await {
                Ok(Refresh::Done) => {
                    let counters = worker.shared.common_counters();
                    counters.add_shared(Metric::WindowRefreshes, 1);
                }
                Ok(Refresh::NoWindow) => continue,
                // one that cannot be had is tried again an hour later
                Ok(Refresh::NotNeeded) | Err(_) => {}
            }
            refreshed.note(worker.now().tick, key);
        }
    }
}
