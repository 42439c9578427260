//! Tells members what they are to purge, on the first worker: one message to each at a time, over a
//! connection that stays open.

use super::member_message;
use super::own_request::{JudgedRequest, begin_head};
use super::worker_task;
use crate::cache::invalidate::DURABLE_WAIT;
use crate::cluster::purges::members_behind::Behind;
use crate::cluster::purges::outboxes::{Delivered, RETRY_PAUSE};
use crate::cluster::purges::{Batch, PurgedTarget, TARGET};
use crate::cluster::{Cluster, node_health};
use crate::modules::own_work::OwnWork;
use crate::worker::core::Worker;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use weir_extend::{FetchError, OwnResponse};
use weir_measure::Metric;
use weir_net::next_hops::Destination;
use weir_net::workers::{LastWork, Stage};
use weir_policy::route::Place;
use weir_semantics::{
    FieldLine, MembersBehind, Method, PURGE_HOLD_MS_MAX, PURGE_ORDERS_MAX, PurgeAnswer,
    PurgeMessage, PurgeOrder, PurgeOutcome, PurgeSequence, PurgedTarget as WrittenTarget,
    split_purge_proof, write_purge_proof,
};
use weir_wire::write;

/// Bytes of an answer: a line for each order.
const ANSWER_BYTES_MAX: usize = 1024 + 32 * PURGE_ORDERS_MAX;

/// How often it is seen whether members have been away for long.
const AWAY_LOOK: Duration = Duration::from_secs(5);

/// Messages until the member has taken one: the first may be of another session, and the second of
/// a number that it has had.
const TRIES_MAX: usize = 3;

/// Further tries when a connection to the member cannot be opened, or is closed without an answer,
/// until it counts as unreachable: one connection may be closed for a reason of its own.
const CLOSED_TRIES_MAX: usize = 1;

/// Sends what members are to be told, from now on until a shutdown cuts what is under way: requests
/// that are answered while it drains change something, too. To be called once on each worker.
pub(crate) fn spawn(worker: &Rc<Worker>) {
    worker_task::spawn_on_first(worker, Stage::Cut, run);
    // nothing else tells a member that is behind; begun here, before there can be a drain
    let work = LastWork::begin(worker.network());
    worker_task::spawn_on_first(worker, Stage::Cut, async move |worker| {
        if worker.network().served().await {
            worker.shared.cluster_purges.outboxes.told().await;
        }
        drop(work);
    });
}

async fn run(worker: &Rc<Worker>) {
    // a share of its own: modules must not keep a purge from a member
    let room: Arc<OwnWork> = Arc::default();
    let purges = &worker.shared.cluster_purges;
    // they end with this
    let mut serving = JoinSet::new();
    let membership = Arc::clone(&worker.settings().membership);
    let mut met: Option<Arc<Cluster>> = None;
    loop {
        let looked = Instant::now() + AWAY_LOOK;
        let next = purges
            .outboxes
            .next_due()
            .map_or(looked, |due| due.min(looked));
        tokio::select! {
            () = purges.outboxes.wait() => {}
            () = membership.changed() => {}
            () = tokio::time::sleep_until(next.into()) => {}
            Some(_) = serving.join_next() => continue,
        }
        let (cluster, now) = (worker.settings().cluster(), Instant::now());
        if met.as_ref().map(Arc::as_ptr) != cluster.as_ref().map(Arc::as_ptr) {
            let others = cluster.iter().flat_map(|cluster| cluster.others());
            let list = cluster
                .as_ref()
                .map_or(0, |cluster| Arc::as_ptr(cluster).addr());
            purges.outboxes.meet(others, list, now);
            met = cluster;
        }
        for gone in purges.outboxes.expire(now) {
            purges.forget(&gone);
        }
        if let Some(cluster) = &met {
            purges.note_gone(now, &cluster.not_back(worker.now()));
        }
        for member in purges.outboxes.unserved() {
            let (worker, room) = (Rc::clone(worker), Arc::clone(&room));
            serving.spawn_local(async move { serve(&worker, &room, &member).await });
        }
    }
}

/// Tells `member` until it has been told everything.
async fn serve(worker: &Rc<Worker>, room: &Arc<OwnWork>, member: &str) {
    let outboxes = &worker.shared.cluster_purges.outboxes;
    while let Some(batch) = outboxes.next(member) {
        match tell(worker, room, member, &batch).await {
            Ok(outcomes) => match outboxes.delivered(member, batch, outcomes) {
                Delivered::InTime => {}
                Delivered::Late => {
                    let line = format!(
                        "node {member} has been told what purges and invalidations it had missed"
                    );
                    worker.shared.module_log.write(line);
                }
                Delivered::NotDurable { is_first } => {
                    if is_first {
                        let line = format!(
                            "node {member} validates what it has, and cannot write that down: it is asked for nothing until it can"
                        );
                        worker.shared.module_log.write(line);
                    }
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            },
            Err(MessageFailure::NoMember) => {
                outboxes.failed(member, batch, "it is no member any more", Instant::now());
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            Err(MessageFailure::Failed(why)) => {
                worker.counters().inc(Metric::PeerPurgeFailures);
                if outboxes.failed(member, batch, &why, Instant::now()) {
                    let line = format!(
                        "node {member} cannot be told of purges and invalidations: {why}; it may have outdated responses until it has been told"
                    );
                    worker.shared.module_log.write(line);
                }
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

/// Why a member is not known to have been told.
enum MessageFailure {
    /// It is no member any more.
    NoMember,
    Failed(String),
}

/// Sends one message.
async fn tell(
    worker: &Rc<Worker>,
    room: &Arc<OwnWork>,
    member: &str,
    batch: &Batch,
) -> Result<Vec<PurgeOutcome>, MessageFailure> {
    let outboxes = &worker.shared.cluster_purges.outboxes;
    let settings = worker.settings();
    let cluster = settings.cluster().ok_or(MessageFailure::NoMember)?;
    let place = cluster.other(member).ok_or(MessageFailure::NoMember)?;
    let limit = settings.config.cluster.peer_timeout.as_duration() + DURABLE_WAIT;
    let failed = |why: &str| MessageFailure::Failed(why.to_owned());
    let began = worker.now().tick;
    let note_failed = |why| {
        let log = &worker.shared.module_log;
        node_health::failed(log, worker.now(), (&cluster, place), why);
    };
    let (mut answered, mut closed) = (0, 0);
    let mut until = Instant::now() + limit;
    while answered < TRIES_MAX {
        let (session, number) = outboxes.number(member);
        let sequence = PurgeSequence {
            session: &session,
            number,
        };
        let content = content_of(worker, sequence, batch);
        let nonce = cluster.nonce();
        let request = request_of(&cluster, place, (&nonce, sequence), content);
        worker.counters().inc(Metric::PeerPurgeMessages);
        let sent = tokio::time::timeout_at(
            until.into(),
            member_message::send(worker, room, &settings, &request),
        );
        let response = match sent.await {
            Err(_) => {
                note_failed(("it did not answer in time", Some(began)));
                return Err(failed("it did not answer in time"));
            }
            Ok(Err(FetchError::Unreachable)) if closed < CLOSED_TRIES_MAX => {
                closed += 1;
                continue;
            }
            Ok(Err(FetchError::Unreachable)) => {
                note_failed(("it cannot be reached", None));
                return Err(failed("it cannot be reached"));
            }
            Ok(Err(error)) => return Err(MessageFailure::Failed(error.to_string())),
            Ok(Ok(response)) => response,
        };
        let text = String::from_utf8_lossy(&response.content);
        let asked = (&*cluster, place, &*nonce);
        let Some(answer) = proved_answer(worker, asked, &response, &text) else {
            return Err(MessageFailure::Failed(format!(
                "it answered {} and not as a member does that knows of purges",
                response.status
            )));
        };
        if response.status == 200 && answer.outcomes.len() == batch.orders.len() {
            return Ok(answer.outcomes);
        }
        outboxes.learn(member, answer.sequence.session, answer.sequence.number);
        answered += 1;
        until = Instant::now() + limit;
    }
    Err(failed("it takes no message"))
}

/// The lines of a message.
fn content_of(worker: &Worker, sequence: PurgeSequence<'_>, batch: &Batch) -> String {
    let purges = &worker.shared.cluster_purges;
    let names = match &batch.behind {
        Behind::These(names) => Some(names.iter().map(|name| &**name).collect()),
        Behind::All => None,
    };
    let behind = MembersBehind {
        process: &purges.process.0,
        names,
    };
    let mut content = String::with_capacity(1024);
    PurgeMessage::begin(sequence, &behind, &mut content);
    let (now, patience) = (Instant::now(), purges.outboxes.patience());
    for order in &batch.orders {
        let hold = (order.until + patience).saturating_duration_since(now);
        let order = PurgeOrder {
            hold_ms: hold_ms(hold),
            what: match &*order.what {
                PurgedTarget::Invalidated { mode, url } => WrittenTarget::Invalidated {
                    mode: mode.as_str(),
                    url,
                },
                PurgedTarget::Url(url) => WrittenTarget::Url(url),
                PurgedTarget::All => WrittenTarget::All,
                PurgedTarget::Validate => WrittenTarget::Validate,
            },
        };
        order.write(&mut content);
    }
    content
}

/// Rounded up, with a hundredth more for clocks that do not run alike.
fn hold_ms(hold: Duration) -> u32 {
    let ms = hold.as_millis();
    u32::try_from(ms + ms / 100 + 1).map_or(PURGE_HOLD_MS_MAX, |ms| ms.min(PURGE_HOLD_MS_MAX))
}

fn request_of(
    cluster: &Cluster,
    place: Place,
    (nonce, sequence): (&str, PurgeSequence<'_>),
    mut content: String,
) -> (Destination, JudgedRequest) {
    let proof = cluster.purges_proof(place, &content);
    write_purge_proof(proof.as_str(), &mut content);
    let destination = Destination::configured(cluster.hop(place).clone());
    // a copy of it does nothing more: it may be sent again on another connection
    let mut head = begin_head("PUT", TARGET, cluster.name(place).as_bytes());
    write::field(&mut head, "Content-Type", b"text/plain");
    write::number_field(&mut head, "Content-Length", content.len() as u64);
    cluster.seal_purges(place, nonce, sequence, &mut head);
    let request = JudgedRequest {
        method: Method::Put,
        hop: destination.hop.clone(),
        head,
        content: content.into_bytes(),
        timeout: Duration::ZERO,
        content_bytes_max: ANSWER_BYTES_MAX,
    };
    (destination, request)
}

/// The answer of the node at `place` to the message with `nonce`, if it is one. It counts as one to
/// a request of a client, too: the node is not silent.
fn proved_answer<'t>(
    worker: &Worker,
    (cluster, place, nonce): (&Cluster, Place, &str),
    response: &OwnResponse,
    text: &'t str,
) -> Option<PurgeAnswer<'t>> {
    let fields = response.fields.iter();
    let fields: Vec<FieldLine<'_>> = fields
        .map(|(name, value)| FieldLine::new(name, value))
        .collect();
    let report = cluster.report_in(place, nonce, (response.status, &fields))?;
    let (signed, proof) = split_purge_proof(text);
    let names = (cluster.name(place), cluster.own_name());
    let is_proved = cluster.is_purge_answer_proved(names, nonce, (signed, proof));
    let answer = is_proved.then(|| PurgeAnswer::read(signed)).flatten()?;
    let log = &worker.shared.module_log;
    node_health::heard_of(log, worker.now(), (cluster, place), &report);
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_is_held_a_little_longer_than_the_sender_waits_and_within_the_bound() {
        let check = |hold, expected| assert_eq!(hold_ms(hold), expected);
        check(Duration::from_secs(5), 5051);
        check(Duration::from_micros(1), 1);
        check(Duration::from_hours(1), PURGE_HOLD_MS_MAX);
        check(Duration::MAX, PURGE_HOLD_MS_MAX);
    }
}
