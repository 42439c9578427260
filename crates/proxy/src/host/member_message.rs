//! Messages to members, beside the requests of clients: how they are made without content, and
//! sent.

use super::own_exchange;
use super::own_request::{JudgedRequest, begin_head};
use crate::client::hand_off::{Answered, Message};
use crate::cluster::{Cluster, HAND_OFF};
use crate::modules::own_work::{OwnPlace, OwnWork};
use crate::settings::Settings;
use crate::worker::core::Worker;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use weir_extend::{FetchError, OwnResponse};
use weir_net::next_hops::{ConnectionRules, Destination, Links};
use weir_policy::connections::OpenRules;
use weir_policy::route::Place;
use weir_semantics::{FieldLine, Method};
use weir_wire::write;

/// Bytes of the content of an answer: a refusal has a sentence.
const ANSWER_BYTES_MAX: usize = 4096;

/// A message without content to the member at `place`, with `nonce`: of which kind `mode` and its
/// `target` say.
pub(super) fn get(
    cluster: &Cluster,
    place: Place,
    (mode, target): (&str, &str),
    nonce: &str,
) -> (Destination, JudgedRequest) {
    let destination = Destination::configured(cluster.hop(place).clone());
    let mut head = begin_head("GET", target, cluster.name(place).as_bytes());
    cluster.seal_request(place, mode, nonce, &mut head);
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

/// Sends a message about a connection that is handed over. The answer must come within
/// `cluster.peer_timeout`, and is none if too many are in `room`.
pub(crate) fn of_hand_off(worker: Rc<Worker>, room: &Arc<OwnWork>, message: Message) -> Answered {
    let room = Arc::clone(room);
    Box::pin(async move { post(&worker, &room, message).await })
}

async fn post(
    worker: &Rc<Worker>,
    room: &Arc<OwnWork>,
    message: Message,
) -> Option<(u16, Vec<u8>)> {
    let Message {
        settings,
        cluster,
        place,
        target,
        nonce,
        content,
    } = message;
    let destination = Destination::configured(cluster.hop(place).clone());
    let mut head = begin_head("POST", target, cluster.name(place).as_bytes());
    write::number_field(&mut head, "Content-Length", content.len() as u64);
    cluster.seal_request(place, HAND_OFF, &nonce, &mut head);
    let request = JudgedRequest {
        method: Method::Post,
        hop: destination.hop.clone(),
        head,
        content,
        timeout: Duration::ZERO,
        content_bytes_max: ANSWER_BYTES_MAX,
    };
    let message = (destination, request);
    let limit = settings.config.cluster.peer_timeout.as_duration();
    let sent = timeout(limit, send(worker, room, &settings, &message)).await;
    let response = sent.ok()?.ok()?;
    let fields = response.fields.iter();
    let fields: Vec<FieldLine<'_>> = fields
        .map(|(name, value)| FieldLine::new(name, value))
        .collect();
    cluster.report_in(place, &nonce, (response.status, &fields))?;
    Some((response.status, response.content.to_vec()))
}

/// Connections to a member are not counted against those of its lateral fetches: slow clients that
/// have all of them must not keep a purge from it, or make it look dead. `room` is of messages
/// of one kind alone: modules must not keep one from a member. There is one message to each member
/// at a time of each kind, but for those about connections that are handed over.
pub(super) async fn send(
    worker: &Rc<Worker>,
    room: &Arc<OwnWork>,
    settings: &Arc<Settings>,
    (destination, request): &(Destination, JudgedRequest),
) -> Result<OwnResponse, FetchError> {
    let mut place = OwnPlace::take(room, None).ok_or(FetchError::TooMany)?;
    let rules = Arc::new(ConnectionRules {
        open: OpenRules {
            per_hop_max: usize::MAX,
            total_max: usize::MAX,
            ..settings.connections.open
        },
        links: Links::default(),
        ..(*settings.connections).clone()
    });
    own_exchange::run_at(worker, settings, request, (destination, &rules), &mut place).await
}
