//! Measures a generated trace, by the definitions of the published figures it is compared with.
//!
//! Cachable is what no cause of PROXIM's table forbids. A hit is a cachable request for a target
//! that an earlier cachable request was for: the cache has no limit, nothing in it changes or goes
//! stale, and what an aborted transfer was to bring is there whole. All other requests are
//! misses. Bytes are those that the client received.

mod buckets;
pub(crate) mod figure;
mod pools;
mod tally;
mod target_counts;

use crate::Row;
use crate::generator::measurement::figure::{Figure, Published, Quantity};
use crate::stats::CauseSet;
use buckets::Buckets;
use pools::Pools;
use tally::Tally;
use target_counts::TargetTable;
use weir_measure::ratio;

/// The counts of the rows so far. Its memory grows with distinct targets, clients and servers.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    rows: u64,
    bytes: u64,
    targets: TargetTable,
    hits: Ratio,
    hits_obeying_cookies: Ratio,
    tally: Tally,
    sizes: Buckets,
    latencies: Buckets,
    transfers: Buckets,
    clients: Pools,
    servers: Pools,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ratio {
    requests: u64,
    bytes: u64,
}

impl Ratio {
    fn add(&mut self, is_hit: bool, bytes: u64) {
        if is_hit {
            self.requests += 1;
            self.bytes += bytes;
        }
    }
}

impl Measurement {
    /// Nothing was counted.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a row; rows come in order of arrival.
    pub fn add(&mut self, row: &Row) {
        let bytes = row.received_bytes.or(row.declared_bytes).unwrap_or(0);
        let causes = CauseSet::of(row);
        self.rows += 1;
        self.bytes += bytes;
        self.look_up(row.target, causes, bytes);
        self.tally.add(row, causes);
        if row.status != Some(304) {
            self.sizes.add(bytes as f64);
        }
        self.time(row);
    }

    fn look_up(&mut self, target: u64, causes: CauseSet, bytes: u64) {
        let seen = self.targets.add(target, bytes);
        let (cachable, obeying) = (causes.without_cookies().is_empty(), causes.is_empty());
        self.hits.add(cachable && seen.cachable, bytes);
        self.hits_obeying_cookies
            .add(obeying && seen.cachable_obeying_cookies, bytes);
        seen.cachable |= cachable;
        seen.cachable_obeying_cookies |= obeying;
    }

    fn time(&mut self, row: &Row) {
        let Some(last_us) = row.last_byte_us else {
            return;
        };
        self.latencies.add(last_us as f64 / 1e6);
        if let Some(first_us) = row.first_byte_us {
            self.transfers
                .add(last_us.saturating_sub(first_us) as f64 / 1e6);
        }
        let last_us = i64::try_from(last_us).unwrap_or(i64::MAX);
        let ends_us = row.arrival_us.saturating_add(last_us);
        if let Some(client) = row.client {
            self.clients
                .take(client, row.arrival_us, ends_us, CLIENT_IDLE_US);
        }
        if let Some(server) = row.server {
            self.servers
                .take(server, row.arrival_us, ends_us, SERVER_IDLE_US);
        }
    }

    /// How many rows were counted.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// How many bytes clients received.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many different targets, clients and servers there were.
    #[must_use]
    pub fn distinct(&self) -> (usize, usize, usize) {
        (
            self.targets.len(),
            self.clients.count(),
            self.servers.count(),
        )
    }

    /// Each published number beside what was counted.
    #[must_use]
    pub fn figures(&self, published: &[Published]) -> Vec<Figure> {
        let figure = |published: &Published| Figure {
            published: published.clone(),
            made: self.of(published.quantity),
        };
        published.iter().map(figure).collect()
    }

    /// A quantity in its unit; `None` where nothing can be said of it.
    #[must_use]
    pub fn of(&self, quantity: Quantity) -> Option<f64> {
        match quantity {
            Quantity::HitRatio => percent(self.hits.requests, self.rows),
            Quantity::ByteHitRatio => percent(self.hits.bytes, self.bytes),
            Quantity::HitRatioCookies => percent(self.hits_obeying_cookies.requests, self.rows),
            Quantity::ByteHitRatioCookies => percent(self.hits_obeying_cookies.bytes, self.bytes),
            Quantity::Recurrence => percent(self.rows - self.targets.len() as u64, self.rows),
            Quantity::OneHit => percent(self.targets.once() as u64, self.targets.len() as u64),
            Quantity::Targets => Some(self.targets.len() as f64),
            Quantity::TargetBytes => Some(self.targets.bytes() as f64),
            Quantity::BytesOf97Percent => self.targets.bytes_of(97),
            Quantity::BytesOf98Percent => self.targets.bytes_of(98),
            Quantity::BytesOf99Percent => self.targets.bytes_of(99),
            Quantity::SizeMedian => self.sizes.quantile(0.5),
            Quantity::SizeP90 => self.sizes.quantile(0.9),
            Quantity::TotalMedian => self.latencies.quantile(0.5),
            Quantity::TransferMedian => self.transfers.quantile(0.5),
            Quantity::ClientConnections => percent(self.clients.opened(), self.rows),
            Quantity::RequestsAClientConnection => ratio(self.rows, self.clients.opened()),
            Quantity::ServerConnections => percent(self.servers.opened(), self.rows),
            _ => self.tally.of(quantity),
        }
    }
}

/// How long PROXIM's proxy keeps an idle connection of a client, and one to a server.
const CLIENT_IDLE_US: i64 = 180_000_000;
const SERVER_IDLE_US: i64 = 30_000_000;

fn percent(part: u64, whole: u64) -> Option<f64> {
    ratio(part, whole).map(|share| share * 100.0)
}
