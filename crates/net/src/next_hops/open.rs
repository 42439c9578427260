//! Opening a new connection, and waiting for a file descriptor if there is none left.

use super::connection::Connection;
use super::destination::Destination;
use super::dial::dial;
use super::failure::ConnectFailure;
use super::open_connections::{Permit, Waiting};
use super::pool;
use super::rules::ConnectionRules;
use crate::workers::Worker;
use tokio::time::{Instant, timeout_at};
use weir_measure::{Metric, OpenReason as OpenLabel, WaitEnd, WaitReason};
use weir_policy::connections::OpenReason;
use weir_semantics::ProxyError;

/// Opens a connection that no request uses yet.
///
/// If the process has no file descriptor left, an idle connection is closed for it; if there is
/// none, it waits until one is closed elsewhere. The new connection keeps its place meanwhile, so
/// that requests that wait for a place do not wake each other.
pub(super) async fn open(
    worker: &Worker,
    rules: &ConnectionRules,
    destination: &Destination,
    mut permit: Permit,
    until: Instant,
    why: OpenReason,
) -> Result<Connection, ConnectFailure> {
    let network = worker.network();
    let mut waits: Option<DescriptorWait<'_>> = None;
    loop {
        let freed = network.open_connections().freed();
        let client_closed = network.client_closed();
        let began = network.clock().tick();
        match dial(worker, rules, destination).await {
            Ok(stream) => {
                let took_ms = network.clock().tick().ms_since(began);
                permit.opened(took_ms);
                let hop = destination.hop.clone();
                let why_label = match hop.is_for_one_request() {
                    true => OpenLabel::OneRequest,
                    false => label(why),
                };
                worker.counters().inc(Metric::NextHopOpens(why_label));
                let in_advance = why == OpenReason::Preconnect;
                return Ok(Connection::new(worker, stream, hop, permit, in_advance));
            }
            Err(failure) if failure.error == ProxyError::ConnectionLimitReached => {
                if pool::close_oldest(worker) {
                    continue;
                }
                let wait = waits.get_or_insert_with(|| DescriptorWait::begin(worker));
                let descriptor = async {
                    tokio::select! {
                        () = freed => {}
                        () = client_closed => {}
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
fn label(why: OpenReason) -> OpenLabel {
    match why {
        OpenReason::NoneBusy => OpenLabel::NoneBusy,
        OpenReason::Rule => OpenLabel::Rule,
        OpenReason::NotMeasured => OpenLabel::NotMeasured,
        OpenReason::QuickSetUp => OpenLabel::QuickSetUp,
        OpenReason::Sooner => OpenLabel::Sooner,
        OpenReason::WaitedInVain => OpenLabel::WaitedInVain,
        OpenReason::Repetition => OpenLabel::Repetition,
        OpenReason::Race => OpenLabel::Race,
        OpenReason::Preconnect => OpenLabel::Ahead,
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
