//! Probes of next hops: requests without a client that find out whether a next hop can answer.
//!
//! On the first worker, a task for each next hop of each route with a probe, while its
//! configuration is in force. Each probe has a new connection, which is closed behind the head of
//! the response: that the next hop still accepts connections is a part of what is found out.

use super::own_request::begin_head;
use super::worker_task;
use crate::config::Probe;
use crate::exchange::next_hop::route_request::{HopTable, RouteHop};
use crate::settings::Settings;
use crate::settings::next_hop_tls::hop_key;
use crate::worker::core::Worker;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use weir_measure::Metric;
use weir_net::http::{ConnectionNeed, NextHopStream, ResponseReceiver};
use weir_net::next_hops::{Destination, HopKey};
use weir_net::workers::Stage;
use weir_policy::budget::Admission;
use weir_policy::connections::HopId;
use weir_semantics::{Method, ProxyError};
use weir_wire::{BodyLength, LineBuffer, write};

/// Probes at once: each has a connection.
const PROBES_AT_ONCE_MAX: usize = 64;

/// Probes next hops from now on until a shutdown begins; on the first worker. To be called once on
/// each.
pub(crate) fn spawn(worker: &Rc<Worker>) {
    worker_task::spawn_on_first(worker, Stage::Draining, run);
}

/// Probes the next hops of one configuration after the other.
async fn run(worker: &Rc<Worker>) {
    let mut reloads = worker.shared.reloaded.subscribe();
    let places = Rc::new(Semaphore::new(PROBES_AT_ONCE_MAX));
    loop {
        reloads.mark_unchanged();
        let settings = worker.settings();
        let mut tasks = JoinSet::new();
        // routes that share a next hop and a probe share the outcomes
        let mut probed: BTreeMap<u32, Vec<&Probe>> = BTreeMap::new();
        for route in &settings.config.routes {
            let Some(probe) = &route.probe else { continue };
            for url in &route.next_hops {
                if let Some(hop) = settings.hop_id(&hop_key(route, url))
                    && !probed.entry(hop.0).or_default().contains(&probe)
                {
                    probed.entry(hop.0).or_default().push(probe);
                    let (worker, settings) = (Rc::clone(worker), Arc::clone(&settings));
                    let (probe, places) = (probe.clone(), Rc::clone(&places));
                    tasks.spawn_local(async move {
                        probe_always(&worker, &settings, hop, &probe, &places).await;
                    });
                }
            }
        }
        drop(probed);
        drop(settings);
        while reloads.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        // what was under way ends here
        drop(tasks);
    }
}

async fn probe_always(
    worker: &Rc<Worker>,
    settings: &Arc<Settings>,
    hop: HopId,
    probe: &Probe,
    places: &Semaphore,
) {
    let route_hop = RouteHop::new(settings, worker, (HopTable::Routes, hop));
    let (limit, rules) = (probe.timeout.as_duration(), probe.rules());
    loop {
        let next = Instant::now() + probe.interval.as_duration();
        if let Ok(_place) = places.acquire().await {
            let asked = timeout(limit, ask(worker, settings, route_hop.key(), probe));
            let outcome = match asked.await {
                Ok(outcome) => outcome,
                Err(_) => Outcome::Failed,
            };
            let has_passed = match outcome {
                Outcome::Status(status) => Some(probe.passes(status)),
                Outcome::Failed => Some(false),
                Outcome::Unknown => None,
            };
            if let Some(has_passed) = has_passed {
                let now = worker.now();
                route_hop.tell_health(now, "its probes fail", |routes, hop| {
                    routes.probed(now, hop, has_passed, rules)
                });
                worker.counters().inc(Metric::Probes);
                if !has_passed {
                    worker.counters().inc(Metric::ProbesFailed);
                }
            }
        }
        sleep_until(next).await;
    }
}

/// What came of a probe.
enum Outcome {
    /// A response with this status.
    Status(u16),
    Failed,
    /// Nothing was sent, for lack of a connection of ours, or since the link has spent its quota.
    Unknown,
}

async fn ask(
    worker: &Rc<Worker>,
    settings: &Arc<Settings>,
    key: &HopKey,
    probe: &Probe,
) -> Outcome {
    let destination = Destination::configured(key.clone());
    let rules = &settings.connections;
    // a probe would be refused by the link, and not by the next hop
    let link = rules.links.of(key);
    if link.is_some_and(|link| link.look() != Admission::Go) {
        return Outcome::Unknown;
    }
    let mut hop =
        match NextHopStream::open(worker.net(), rules, &destination, ConnectionNeed::Fresh).await {
            Ok(hop) => hop,
            Err(failure) if failure.error == ProxyError::ConnectionLimitReached => {
                return Outcome::Unknown;
            }
            Err(_) => return Outcome::Failed,
        };
    let mut head = begin_head("GET", probe.path.as_str(), key.to_string().as_bytes());
    write::field(&mut head, "User-Agent", b"weir probe");
    write::field(&mut head, "Cache-Control", b"no-store");
    let (mut to_hop, mut from_hop) = hop.split();
    to_hop.begin(head, BodyLength::None, false);
    let status = poll_fn(|cx| {
        if !to_hop.is_complete() && ready!(to_hop.poll_send(cx, &[], Some(&[]))).is_err() {
            return Poll::Ready(None);
        }
        poll_status(worker, settings, &mut from_hop, cx)
    });
    status.await.map_or(Outcome::Failed, Outcome::Status)
}

/// Ready with the status of the final head; `None` if there is none.
fn poll_status(
    worker: &Worker,
    settings: &Settings,
    from_hop: &mut ResponseReceiver<'_>,
    cx: &mut Context<'_>,
) -> Poll<Option<u16>> {
    let limits = settings.response_heads;
    loop {
        if from_hop.is_worth_reading(&limits) {
            let received = from_hop.take_received();
            let mut lines = LineBuffer::new();
            let parsed = received.head(Method::Get, &limits, &mut lines);
            let accepted = match parsed {
                Err(_) => return Poll::Ready(None),
                Ok(Some(found)) if found.head.status >= 200 => {
                    return Poll::Ready(Some(found.head.status));
                }
                Ok(found) => found.map(|found| found.acceptance()),
            };
            let is_interim = accepted.is_some();
            from_hop.return_received(received, accepted);
            if is_interim {
                continue;
            }
        }
        let mut scratch = worker.scratch();
        match ready!(from_hop.poll_receive_head(cx, &mut scratch)) {
            Ok(1..) => {}
            Ok(0) | Err(_) => return Poll::Ready(None),
        }
    }
}
