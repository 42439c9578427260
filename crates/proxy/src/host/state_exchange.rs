//! Asks the other nodes of the cluster how they are, and tells them how this one is: at intervals,
//! and at once when the state of this one changes, or something suggests that one is not as it is
//! known. On the first worker.
//!
//! So a node that has failed, hangs, is back or drains is known without a request of a client that
//! has to find out; and so is one that was restarted, which has forgotten what it knew of purges.

use super::{member_message, worker_task};
use crate::cluster::{Cluster, Membership, STATE, STATE_TARGET, node_health};
use crate::modules::own_work::OwnWork;
use crate::settings::Settings;
use crate::worker::core::Worker;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};
use weir_extend::FetchError;
use weir_measure::Metric;
use weir_net::workers::Stage;
use weir_policy::route::Place;
use weir_semantics::FieldLine;

/// Tells and asks from now on until a shutdown cuts what is under way: that this node ends is told,
/// too. To be called once on each worker.
pub(crate) fn spawn(worker: &Rc<Worker>) {
    worker_task::spawn_on_first(worker, Stage::Cut, run);
}

async fn run(worker: &Rc<Worker>) {
    let membership = Arc::clone(&worker.settings().membership);
    let mut reloads = worker.shared.reloaded.subscribe();
    let mut began = Instant::now();
    let mut asking = Asking::default();
    loop {
        let settings = worker.settings();
        let interval = settings.config.cluster.state_interval;
        let is_on = settings.config.cluster.has_state_messages();
        drop(settings);
        let hinted = membership.to_ask.due().map(Instant::from_std);
        tokio::select! {
            () = sleep_until(began + interval.as_duration()), if is_on => {}
            () = membership.state_changed() => {}
            () = membership.to_ask.added() => {
                asking.ask_noted(worker, &membership);
                continue;
            }
            () = sleep_until(hinted.unwrap_or(began)), if hinted.is_some() => {
                asking.ask_noted(worker, &membership);
                continue;
            }
            Some(_) = asking.tasks.join_next() => {
                asking.ask_noted(worker, &membership);
                continue;
            }
            // the interval may be another one
            Ok(()) = reloads.changed() => continue,
        }
        began = Instant::now();
        let settings = worker.settings();
        // they may have been changed meanwhile
        let is_on = settings.config.cluster.has_state_messages();
        if let Some(cluster) = settings.cluster().filter(|_| is_on) {
            for name in cluster.others() {
                membership.to_ask.add(name);
            }
        }
        asking.ask_noted(worker, &membership);
    }
}

/// The messages under way: one to each member at a time, and one that hangs keeps nothing from the
/// others.
#[derive(Default)]
struct Asking {
    // at most as many as there may be members
    tasks: JoinSet<()>,
    by_name: BTreeMap<String, AbortHandle>,
}

impl Asking {
    /// Asks the members that are to be asked, but for those that have not answered the last message
    /// yet: their turn is when they have.
    fn ask_noted(&mut self, worker: &Rc<Worker>, membership: &Membership) {
        self.by_name.retain(|_, task| !task.is_finished());
        let settings = worker.settings();
        let names = membership.to_ask.take(Instant::now().into_std(), |name| {
            self.by_name.contains_key(name)
        });
        let Some(cluster) = settings.cluster() else {
            return;
        };
        for name in names {
            // a member that is listed no more is not asked
            let Some(place) = cluster.place_of(&name) else {
                continue;
            };
            let worker = Rc::clone(worker);
            let (settings, cluster) = (Arc::clone(&settings), Arc::clone(&cluster));
            let task = self
                .tasks
                .spawn_local(async move { ask(&worker, &settings, (&cluster, place)).await });
            self.by_name.insert(name, task);
        }
    }
}

/// Asks the node at `place`, and notes what came of it.
async fn ask(worker: &Rc<Worker>, settings: &Arc<Settings>, (cluster, place): (&Cluster, Place)) {
    let (log, began) = (&worker.shared.module_log, worker.now().tick);
    let nonce = cluster.nonce();
    let request = member_message::get(cluster, place, (STATE, STATE_TARGET), &nonce);
    let room: Arc<OwnWork> = Arc::default();
    let limit = settings.config.cluster.peer_timeout.as_duration();
    worker.counters().inc(Metric::PeerStateMessages);
    let sent = timeout(
        limit,
        member_message::send(worker, &room, settings, &request),
    )
    .await;
    let failed = |why: &str, silent_since| {
        worker.counters().inc(Metric::PeerStateFailures);
        let (now, node) = (worker.now(), (cluster, place));
        node_health::failed(log, now, node, (why, silent_since));
    };
    match sent {
        Err(_) => failed("it does not answer in time", Some(began)),
        // for a reason of this node
        Ok(Err(FetchError::TooMany)) => {}
        Ok(Err(_)) => failed("it cannot be reached", None),
        Ok(Ok(response)) => {
            let fields = response.fields.iter();
            let fields: Vec<FieldLine<'_>> = fields
                .map(|(name, value)| FieldLine::new(name, value))
                .collect();
            match cluster.report_in(place, &nonce, (response.status, &fields)) {
                Some(report) => {
                    let node = (cluster, place);
                    node_health::heard_of(log, worker.now(), node, &report);
                    if let Some(process) = report.process {
                        let purges = &worker.shared.cluster_purges;
                        purges.hear_of_process(cluster.name(place), process);
                    }
                }
                // what does not take this node for a member proves nothing to it
                None if response.status == 403 => failed(
                    "it refused this node with 403: see its log, its secret may differ",
                    None,
                ),
                None => failed("it does not answer as a member of the cluster does", None),
            }
        }
    }
}
