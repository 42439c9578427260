//! How fast the client of one response is sent content, as a rule of the operator says.

use crate::worker::core::Worker;
use std::future::Future as _;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Sleep, sleep};
use weir_measure::Metric;
use weir_net::flow::SendRate;
use weir_policy::destination::ClientNetwork;
use weir_policy::rule::{self, ByteRate, RateGrant};
use weir_policy::{Digest, KeyHasher, Tick};

/// The rates of clients of all workers.
#[derive(Debug, Default)]
pub(crate) struct ClientRates(Mutex<Rates>);

#[derive(Debug, Default)]
struct Rates {
    rates: rule::ClientRates,
    /// How long responses were held back, milliseconds; less than a second, as seconds are counted.
    held_back_ms: u64,
    /// How often the response of a client ended with something that was granted and not sent: what
    /// waits may get an earlier turn.
    given_back: u64,
}

impl ClientRates {
    fn lock(&self) -> MutexGuard<'_, Rates> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A response was held back so long; the seconds that are complete now.
    fn held_back(&self, ms: u64) -> u64 {
        let mut rates = self.lock();
        let all = rates.held_back_ms + ms;
        rates.held_back_ms = all % 1000;
        all / 1000
    }
}

/// The rate of one response.
pub(crate) struct ClientRate {
    worker: Rc<Worker>,
    /// Its client, under the rule that limits it.
    client: Digest,
    rate: ByteRate,
    /// What may be sent and was not.
    grant: Option<RateGrant>,
    /// How often something had been given back when that was granted.
    given_back: u64,
    /// For the grant, and since when.
    wait: Option<(Pin<Box<Sleep>>, Tick)>,
}

/// After so long, milliseconds, a response looks whether others of its client have left.
const LOOK_AGAIN_MS: u64 = 250;

impl ClientRate {
    /// The share of a response in what the client at `address` is sent under `rule`.
    pub(crate) fn new(
        worker: &Rc<Worker>,
        address: IpAddr,
        (rule, rate): (usize, ByteRate),
    ) -> Self {
        let mut hasher = KeyHasher::new(worker.shared.store.secret());
        hasher.part(b"client rate");
        hasher.number(rule as u64);
        hasher.number(rate.bytes_s());
        ClientNetwork::of(address).hash_into(&mut hasher);
        Self {
            worker: Rc::clone(worker),
            client: hasher.finish(),
            rate,
            grant: None,
            given_back: 0,
            wait: None,
        }
    }

    /// What is granted, or a new grant.
    fn grant(&mut self, wanted: usize) -> RateGrant {
        if let Some(grant) = self.grant {
            return grant;
        }
        let now = self.worker.now().tick;
        let mut rates = self.worker.shared.client_rates.lock();
        self.given_back = rates.given_back;
        let rates = &mut rates.rates;
        let grant = rates.grant(now, self.client, self.rate, wanted as u64);
        *self.grant.insert(grant)
    }

    /// Gives back what was granted and not sent, for good if the response ends.
    fn give_back(&mut self, is_for_good: bool) {
        if let Some(grant) = self.grant.take() {
            let mut rates = self.worker.shared.client_rates.lock();
            rates.rates.give_back(self.client, self.rate, grant.bytes);
            rates.given_back += u64::from(is_for_good);
        }
    }

    /// Others have given back what was granted to them: of this client perhaps, whose responses
    /// may then be sent earlier.
    fn has_new_turn(&self) -> bool {
        self.worker.shared.client_rates.lock().given_back != self.given_back
    }

    /// Waits until `at`, [`LOOK_AGAIN_MS`] at most; whether it is that time.
    fn poll_until(&mut self, cx: &mut Context<'_>, at: Tick) -> Poll<bool> {
        let now = self.worker.now().tick;
        let ms = at.ms_since(now);
        if self.wait.is_none() {
            if ms == 0 {
                return Poll::Ready(true);
            }
            let wait = Duration::from_millis(ms.min(LOOK_AGAIN_MS));
            self.wait = Some((Box::pin(sleep(wait)), now));
        }
        if let Some((wait, since)) = &mut self.wait {
            ready!(wait.as_mut().poll(cx));
            let rates = &self.worker.shared.client_rates;
            let seconds = rates.held_back(now.ms_since(*since));
            let counters = self.worker.counters();
            counters.add(Metric::RuleLimited, seconds);
            self.wait = None;
        }
        Poll::Ready(ms == 0)
    }
}

impl SendRate for ClientRate {
    fn poll_permit(&mut self, cx: &mut Context<'_>, wanted: usize) -> Poll<usize> {
        loop {
            let grant = self.grant(wanted);
            if ready!(self.poll_until(cx, grant.at)) {
                let bytes = usize::try_from(grant.bytes).unwrap_or(usize::MAX);
                return Poll::Ready(bytes.min(wanted));
            }
            if self.has_new_turn() {
                self.give_back(false);
            }
        }
    }

    fn sent(&mut self, bytes: usize) {
        self.grant = self.grant.take().and_then(|grant| {
            let bytes = grant.bytes.saturating_sub(bytes as u64);
            (bytes > 0).then_some(RateGrant { bytes, ..grant })
        });
    }
}

impl Drop for ClientRate {
    fn drop(&mut self) {
        self.give_back(true);
    }
}
