//! The wait until what a response invalidates is settled: until it survives a crash, and the other
//! nodes of the cluster have been told and have answered.
//!
//! The response is sent in any case, as the request was carried out. The wait holds nothing of the
//! exchange: the exchange may end, and the wait goes on by itself ([`Settling::abandon`]).

use crate::cache::invalidate::{DURABLE_WAIT, Invalidation, forget_all, hold_all};
use crate::cache::purge::outcome;
use crate::cluster::purges::PurgedTarget;
use crate::cluster::purges::Waiter;
use crate::cluster::purges::outboxes::Awaited;
use crate::exchange::state::RequestState;
use crate::settings::Settings;
use crate::worker::abandoned_waits::AbandonedWait;
use crate::worker::core::Worker;
use std::cell::Cell;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use weir_measure::Metric;
use weir_net::workers::DetachedWork;
use weir_policy::Digest;
use weir_store::Purge;

/// A wait until what is invalidated survives a crash, for [`DURABLE_WAIT`] at most, and until the
/// other nodes have answered, for `cluster.peer_timeout` from the moment at which they have room
/// for it. If it might not survive a crash, it is in force nevertheless, and the store on disk is
/// emptied before it is used again.
pub(crate) struct Settling {
    wait: Pin<Box<dyn Future<Output = ()>>>,
    /// Bytes of URLs that it holds until it tells the other nodes.
    untold_bytes: Rc<Cell<usize>>,
    worker: Rc<Worker>,
    client: IpAddr,
}

impl Settling {
    /// Begins with the first poll.
    pub(crate) fn new(
        worker: &Rc<Worker>,
        exchange: &RequestState,
        invalidation: Invalidation,
    ) -> Self {
        let Invalidation { purges, targets } = invalidation;
        let of_request = || exchange.request.target_uri();
        let mode = exchange.request.mode;
        let keys = targets
            .iter()
            .flat_map(|target| target.keys.iter().copied())
            .collect();
        let targets = targets.into_iter();
        let targets: Vec<PurgedTarget> = targets
            .map(|target| PurgedTarget::Invalidated {
                mode,
                url: target.url.unwrap_or_else(of_request),
            })
            .collect();
        let bytes = targets.iter().map(PurgedTarget::url_bytes).sum();
        let untold_bytes = Rc::new(Cell::new(bytes));
        let client = exchange.client.facts().peer.ip();
        let telling = Telling {
            worker: Rc::clone(worker),
            client,
            settings: Arc::clone(&exchange.settings),
            keys,
            targets,
            untold_bytes: Rc::clone(&untold_bytes),
        };
        Self {
            wait: Box::pin(telling.settle(purges)),
            untold_bytes,
            worker: Rc::clone(worker),
            client,
        }
    }

    /// Ready once it is over.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.wait.as_mut().poll(cx)
    }

    /// Waits until it is over.
    pub(crate) async fn over(self) {
        self.wait.await;
    }

    /// The client has gone: the wait goes on in a task of its own, which a drain waits for.
    ///
    /// # Errors
    ///
    /// Too many do: the wait is to be polled on, in the place of its client.
    pub(crate) fn abandon(self) -> Result<(), Self> {
        let waits = &self.worker.shared.abandoned_waits;
        let bytes = self.untold_bytes.get();
        let Some(place) = AbandonedWait::begin(waits, self.client, bytes) else {
            return Err(self);
        };
        let work = DetachedWork::begin(self.worker.network());
        tokio::task::spawn_local(async move {
            self.wait.await;
            drop((place, work));
        });
        Ok(())
    }
}

/// What the other nodes are to be told.
struct Telling {
    worker: Rc<Worker>,
    client: IpAddr,
    settings: Arc<Settings>,
    keys: Vec<Digest>,
    targets: Vec<PurgedTarget>,
    untold_bytes: Rc<Cell<usize>>,
}

impl Telling {
    async fn settle(self, mut purges: Vec<Purge>) {
        let worker = Rc::clone(&self.worker);
        let told = match self.targets.is_empty() {
            true => None,
            false => Some(self.tell(&mut purges).await),
        };
        outcome(&worker.shared, purges, Instant::now() + DURABLE_WAIT).await;
        let Some((awaited, until)) = told else {
            return;
        };
        let outboxes = &worker.shared.cluster_purges.outboxes;
        let answers = outboxes.answers(awaited, until).await;
        let untold = answers.iter().filter(|(_, outcome)| outcome.is_err());
        let untold = u64::try_from(untold.count()).unwrap_or(u64::MAX);
        worker.counters().add(Metric::PeerPurgesUntold, untold);
    }

    /// Has the other nodes told when it is the turn of this; a node that is not listed at the
    /// moment tells those that were with it. Their answers, and until when they are awaited.
    async fn tell(self, purges: &mut Vec<Purge>) -> (Vec<Awaited>, Instant) {
        let (shared, settings) = (&self.worker.shared, &self.settings);
        let outboxes = &shared.cluster_purges.outboxes;
        let (orders, bytes) = (self.targets.len(), self.untold_bytes.get());
        let turn = outboxes
            .turn(Waiter::Client(self.client), orders, bytes)
            .await;
        let patience = settings.config.cluster.peer_timeout.as_duration();
        let now = Instant::now();
        if turn.has_waited {
            purges.extend(forget_all(shared, settings, &self.keys));
        } else {
            hold_all(shared, settings, &self.keys);
        }
        let cluster = settings.cluster();
        let others = cluster.iter().flat_map(|cluster| cluster.others());
        let until = now + patience;
        let awaited = turn.tell(others, self.targets, (now, until, patience));
        self.untold_bytes.set(0);
        (awaited, until)
    }
}
