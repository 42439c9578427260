//! A connection to a next hop: an idle one if there is one, else a new one, or the first that comes
//! back.
//!
//! `weir_policy::connections` decides; here it is done. Finding an idle connection takes one lock
//! and allocates nothing; everything else lives in a box of its own while it lasts.

use crate::failure::ConnectFailure;
use crate::next_hops::ahead;
use crate::next_hops::destination::{Destination, HopKey};
use crate::next_hops::dial::{self, Connected};
use crate::next_hops::open_connections::{Permit, Waiting};
use crate::next_hops::pool::{self, Socket};
use crate::next_hops::rules::ConnectionRules;
use crate::next_hops::seek::Seeker;
use crate::next_hops::uses::Uses;
use crate::worker::Worker;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use weir_measure::{Metric, OpenReason as OpenLabel, Supply, WaitEnd, WaitReason};
use weir_policy::Now;
use weir_policy::connections::OpenReason;
use weir_semantics::ProxyError;

/// An open connection to a next hop, in use by one exchange.
pub struct Connection {
    pub stream: TcpStream,
    /// The address it is connected to, which was checked.
    pub address: SocketAddr,
    pub hop: HopKey,
    /// It was idle before: the next hop may have closed it just when the request was sent.
    pub reused: bool,
    /// Its place among the open connections.
    pub permit: Permit,
    /// What it was used for; in a box, since a connection is moved about with every request.
    pub uses: Box<Uses>,
}

impl Connection {
    /// A connection that nobody has used yet.
    pub fn new(
        worker: &Worker,
        connected: Connected,
        hop: HopKey,
        permit: Permit,
        ahead: bool,
    ) -> Self {
        let mut uses = Uses::new(worker.index(), worker.now().tick, ahead);
        uses.number = worker.number();
        uses.setup_us = connected.setup_us;
        Self {
            stream: connected.stream,
            address: connected.address,
            hop,
            reused: false,
            permit,
            uses: Box::new(uses),
        }
    }

    /// What is kept of it while it is idle.
    pub fn rest(self) -> Socket {
        Socket {
            stream: self.stream,
            address: self.address,
            hop: self.hop,
            permit: self.permit,
            uses: self.uses,
        }
    }

    /// A request begins on it; `waited` if it was handed over and not found.
    pub fn begin(&mut self, worker: &Worker, now: Now, waited: bool) {
        let uses = &mut self.uses;
        let supply = match (uses.requests, waited) {
            (0, true) if !uses.ahead => Supply::New,
            (0, _) => Supply::Ahead,
            (_, true) => Supply::Waited,
            (_, false) => Supply::Idle,
        };
        self.reused = supply != Supply::New;
        if uses.worker != worker.index() {
            uses.worker = worker.index();
            if uses.requests > 0 {
                worker.counters().inc(Metric::ReusesByOtherWorker);
            }
        }
        self.send(worker, now, supply);
    }

    fn send(&mut self, worker: &Worker, now: Now, supply: Supply) {
        self.uses.requests = self.uses.requests.saturating_add(1);
        self.uses.since = now.tick;
        worker.counters().inc(Metric::NextHopRequests(supply));
    }
}

/// Gets a connection; `fresh` asks for a new one.
///
/// # Errors
///
/// The failure to report: no address, not allowed, refused, timed out, limit reached.
pub async fn obtain(
    worker: &Worker,
    rules: &Arc<ConnectionRules>,
    destination: &Destination,
    fresh: bool,
) -> Result<Connection, ConnectFailure> {
    let idle = if fresh {
        None
    } else {
        pool::check_out(worker, rules, destination)
    };
    let connection = match idle {
        Some(connection) => connection,
        None => Box::pin(Seeker::new(worker, rules, destination, fresh).run()).await?,
    };
    if rules.connections_ahead > 0 {
        ahead::top_up(worker, rules, destination);
    }
    Ok(connection)
}

/// Opens a connection for a request.
pub async fn open(
    worker: &Worker,
    rules: &Arc<ConnectionRules>,
    destination: &Destination,
    permit: Permit,
    until: Instant,
    why: OpenReason,
) -> Result<Connection, ConnectFailure> {
    let mut connection = set_up(worker, rules, destination, permit, until, why).await?;
    connection.send(worker, worker.now(), Supply::New);
    Ok(connection)
}

/// Sets up a connection that nobody uses yet. Out of file descriptors it waits for one: an idle
/// connection gives way, or somebody leaves. It keeps its place meanwhile, so that those who wait
/// do not wake each other.
pub async fn set_up(
    worker: &Worker,
    rules: &Arc<ConnectionRules>,
    destination: &Destination,
    mut permit: Permit,
    until: Instant,
    why: OpenReason,
) -> Result<Connection, ConnectFailure> {
    let open = worker.network().open_connections();
    let mut waits: Option<DescriptorWait<'_>> = None;
    loop {
        let freed = open.freed();
        let client_left = worker.network().client_closed();
        let began = worker.network().clock().tick();
        match dial::run(worker, rules, destination).await {
            Ok(connected) => {
                let took_ms = worker.network().clock().tick().ms_since(began);
                permit.opened(took_ms);
                worker.counters().inc(Metric::NextHopOpens(label(why)));
                let hop = destination.hop.clone();
                let ahead = why == OpenReason::Ahead;
                return Ok(Connection::new(worker, connected, hop, permit, ahead));
            }
            Err(failure) if failure.error == ProxyError::ConnectionLimitReached => {
                if pool::close_oldest(worker) {
                    continue;
                }
                let wait = waits.get_or_insert_with(|| DescriptorWait::begin(worker));
                let descriptor = async {
                    tokio::select! {
                        () = freed => {}
                        () = client_left => {}
                    }
                };
                if timeout_at(until, descriptor).await.is_err() {
                    wait.end = WaitEnd::Refused;
                    return Err(failure);
                }
                wait.end = WaitEnd::Place;
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// A wait for a file descriptor; counted when it ends.
struct DescriptorWait<'a> {
    worker: &'a Worker,
    end: WaitEnd,
    _waiting: Waiting,
}

impl<'a> DescriptorWait<'a> {
    fn begin(worker: &'a Worker) -> Self {
        let counters = worker.counters();
        counters.inc(Metric::ConnectionWaits(WaitReason::Descriptor));
        Self {
            worker,
            end: WaitEnd::Left,
            _waiting: Waiting::begin(worker.network().open_connections()),
        }
    }
}

impl Drop for DescriptorWait<'_> {
    fn drop(&mut self) {
        let ended = Metric::ConnectionWaitEnds(self.end);
        self.worker.counters().inc(ended);
    }
}

/// The reason's place among the counters.
pub fn label(why: OpenReason) -> OpenLabel {
    match why {
        OpenReason::NoneBusy => OpenLabel::NoneBusy,
        OpenReason::Rule => OpenLabel::Rule,
        OpenReason::NotMeasured => OpenLabel::NotMeasured,
        OpenReason::QuickSetUp => OpenLabel::QuickSetUp,
        OpenReason::Sooner => OpenLabel::Sooner,
        OpenReason::WaitedInVain => OpenLabel::WaitedInVain,
        OpenReason::Repetition => OpenLabel::Repetition,
        OpenReason::Race => OpenLabel::Race,
        OpenReason::Ahead => OpenLabel::Ahead,
        OpenReason::Tunnel => OpenLabel::Tunnel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_measure::Label;

    #[test]
    fn open_reason_label_equals_the_policy_word() {
        for why in OpenReason::ALL {
            assert_eq!(label(why).word(), why.as_str());
        }
    }
}
