//! Asks the other nodes of the cluster how they are, and tells them how this one is: at intervals,
//! and at once when the state of this one changes. On the first worker.
//!
//! So a node that has died, hangs, is back or drains is known without a request of a client that
//! has to find out.

use super::own_exchange;
use super::own_request::{JudgedRequest, begin_head};
use super::worker_task;
use crate::cluster::{Cluster, STATE, STATE_TARGET, node_health};
use crate::modules::own_work::{OwnPlace, OwnWork};
use crate::settings::Settings;
use crate::worker::core::Worker;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use weir_extend::{FetchError, OwnResponse};
use weir_measure::Metric;
use weir_net::next_hops::{ConnectionRules, Destination};
use weir_net::workers::Stage;
use weir_policy::connections::OpenRules;
use weir_policy::route::Place;
use weir_semantics::{FieldLine, Method};

/// Bytes of the content of an answer: it has none, but a refusal has a sentence.
const ANSWER_BYTES_MAX: usize = 4096;

/// Tells and asks from now on until a shutdown cuts what is under way: that this node ends is told,
/// too. To be called once on each worker.
pub(crate) fn spawn(worker: &Rc<Worker>) {
    worker_task::spawn_on_first(worker, Stage::Cut, run);
}

async fn run(worker: &Rc<Worker>) {
    let membership = Arc::clone(&worker.settings().membership);
    let mut reloads = worker.shared.reloaded.subscribe();
    let mut began = Instant::now();
    loop {
        let interval = worker.settings().config.cluster.state_interval;
        let is_on = !interval.as_duration().is_zero();
        tokio::select! {
            () = sleep_until(began + interval.as_duration()), if is_on => {}
            () = membership.state_changed() => {}
            // the interval may be another one
            Ok(()) = reloads.changed() => continue,
        }
        began = Instant::now();
        let settings = worker.settings();
        if let Some(cluster) = settings.cluster().filter(|_| is_on) {
            round(worker, &settings, &cluster).await;
        }
    }
}

/// Asks all other nodes together: one that hangs keeps nothing from the others.
async fn round(worker: &Rc<Worker>, settings: &Arc<Settings>, cluster: &Arc<Cluster>) {
    // at most as many as there may be members
    let mut asked = JoinSet::new();
    for place in cluster.other_places() {
        let worker = Rc::clone(worker);
        let (settings, cluster) = (Arc::clone(settings), Arc::clone(cluster));
        asked.spawn_local(async move { ask(&worker, &settings, (&cluster, place)).await });
    }
    while asked.join_next().await.is_some() {}
}

/// Asks the node at `place`, and notes what came of it.
async fn ask(worker: &Rc<Worker>, settings: &Arc<Settings>, (cluster, place): (&Cluster, Place)) {
    let (log, began) = (&worker.shared.module_log, worker.now().tick);
    let nonce = cluster.nonce();
    let request = request_of(cluster, place, &nonce);
    let limit = settings.config.cluster.peer_timeout.as_duration();
    worker.counters().inc(Metric::PeerStateMessages);
    let sent = timeout(limit, send(worker, settings, &request)).await;
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

fn request_of(cluster: &Cluster, place: Place, nonce: &str) -> (Destination, JudgedRequest) {
    let destination = Destination::configured(cluster.hop(place).clone());
    let mut head = begin_head("GET", STATE_TARGET, cluster.name(place).as_bytes());
    cluster.seal_request(place, STATE, nonce, &mut head);
    let request = JudgedRequest {
        method: Method::Get,
        hop: destination.hop.clone(),
        head,
        content: Vec::new(),
        timeout: Duration::ZERO,
        content_bytes_max: ANSWER_BYTES_MAX,
    };
    (destination, request)
}

/// Connections to a member are not counted against those of its lateral fetches: slow clients that
/// have all of them must not make it look dead. There is one message to each member at a time.
async fn send(
    worker: &Rc<Worker>,
    settings: &Arc<Settings>,
    (destination, request): &(Destination, JudgedRequest),
) -> Result<OwnResponse, FetchError> {
    // a share of its own: modules must not keep a message from a member
    let room: Arc<OwnWork> = Arc::default();
    let mut place = OwnPlace::take(&room, None).ok_or(FetchError::TooMany)?;
    let rules = Arc::new(ConnectionRules {
        open: OpenRules {
            per_hop_max: usize::MAX,
            total_max: usize::MAX,
            ..settings.connections.open
        },
        ..(*settings.connections).clone()
    });
    own_exchange::run_at(worker, settings, request, (destination, &rules), &mut place).await
}
