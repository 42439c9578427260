//! What is counted in a trace without simulating anything.

use super::reuse::{Reuse, Spans};
use crate::results::spread::Spread;
use crate::results::spread::Summary as Spreading;
use serde::Serialize;
use std::collections::HashSet;
use weir_trace::Row;
use weir_trace::stats::{Cause, Stats, Summary};

/// Steps of the share of connection set-up in the latency.
pub(super) const SHARE_STEPS: usize = 100;

/// Counts rows.
#[derive(Debug)]
pub(super) struct Counting {
    stats: Stats,
    setup: Spread,
    /// Documents by the share of set-up in their latency, in hundredths.
    setup_shares: Vec<u64>,
    transfer: Spread,
    total: Spread,
    kept: HashSet<u64>,
    clients: Reuse,
    servers: Reuse,
}

/// What was counted.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Facts {
    pub(super) summary: Summary,
    pub(super) setup: Spreading,
    /// The part of the documents whose set-up took this many hundredths of their latency or more;
    /// from 0 to 100.
    pub(super) setup_shares: Vec<f64>,
    pub(super) transfer: Spreading,
    pub(super) total: Spreading,
    /// Servers that a client's connection to the proxy spans.
    pub(super) clients: Spans,
    /// Clients that a connection to a server has requests of.
    pub(super) servers: Spans,
}

/// How long idle connections live, microseconds: the paper's 3 minutes and 30 seconds.
const CLIENT_IDLE_US: i64 = 180_000_000;
const SERVER_IDLE_US: i64 = 30_000_000;

impl Default for Counting {
    fn default() -> Self {
        Self {
            stats: Stats::default(),
            setup: Spread::default(),
            setup_shares: vec![0; SHARE_STEPS + 1],
            transfer: Spread::default(),
            total: Spread::default(),
            kept: HashSet::new(),
            clients: Reuse::new(CLIENT_IDLE_US),
            servers: Reuse::new(SERVER_IDLE_US),
        }
    }
}

impl Counting {
    pub(super) fn add(&mut self, row: &Row) {
        self.stats.add(row);
        let Some(last_us) = row.last_byte_us else {
            return;
        };
        self.total.add(last_us);
        if let Some(first_us) = row.first_byte_us {
            self.transfer.add(last_us.saturating_sub(first_us));
        }
        if let Some(setup_us) = row.setup_us {
            self.setup.add(setup_us);
            let share = setup_us.saturating_mul(SHARE_STEPS as u64) / last_us.max(1);
            let place = usize::try_from(share).unwrap_or(SHARE_STEPS);
            self.setup_shares[place.min(SHARE_STEPS)] += 1;
        }
        self.reuse(row, last_us);
    }

    /// Connections, were all to persist and all that may be cached a hit.
    fn reuse(&mut self, row: &Row, last_us: u64) {
        let (Some(client), Some(server)) = (row.client, row.server) else {
            return;
        };
        let begins_us = row.arrival_us;
        let ends_us = begins_us.saturating_add(i64::try_from(last_us).unwrap_or(i64::MAX));
        self.clients.take(client, server, begins_us, ends_us);
        let may_be_cached = Cause::ALL.iter().all(|cause| cause.of(row) == Some(false));
        if !may_be_cached || self.kept.insert(row.target) {
            self.servers.take(server, client, begins_us, ends_us);
        }
    }

    pub(super) fn finish(self) -> Facts {
        let all: u64 = self.setup_shares.iter().sum();
        let mut more = all;
        let setup_shares = self.setup_shares.iter().map(|count| {
            let share = more as f64 / all.max(1) as f64;
            more -= count;
            share
        });
        Facts {
            setup_shares: setup_shares.collect(),
            summary: self.stats.finish(),
            setup: self.setup.summary(),
            transfer: self.transfer.summary(),
            total: self.total.summary(),
            clients: self.clients.finish(),
            servers: self.servers.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(setup_us: u64, last_byte_us: u64) -> Row {
        Row {
            setup_us: Some(setup_us),
            first_byte_us: Some(setup_us),
            last_byte_us: Some(last_byte_us),
            ..Row::default()
        }
    }

    #[test]
    fn set_up_share_counts_documents_at_or_above_each_percentage() {
        let mut counting = Counting::default();
        for (setup, last) in [(0, 10), (49, 100), (50, 100), (100, 100)] {
            counting.add(&row(setup, last));
        }
        let facts = counting.finish();
        assert_eq!(facts.setup_shares.len(), SHARE_STEPS + 1);
        let at = |percent: usize| facts.setup_shares[percent];
        assert_eq!(
            (at(0), at(49), at(50), at(51), at(100)),
            (1.0, 0.75, 0.5, 0.25, 0.25)
        );
        assert_eq!(facts.total.max_us, 100);
    }
}
