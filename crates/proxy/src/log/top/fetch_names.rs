//! Whose bytes a fetch brings: it belongs to no client, and may outlast the request that began it.

use super::accumulator::{Accumulator, named};
use super::names::{TargetKeys, TargetName};
use super::ranking::Weights;
use super::tops::Tops;
use crate::config::{Admin, TopQueries};
use std::net::SocketAddr;
use std::sync::Arc;

/// The names that a fetch is counted under.
#[derive(Debug)]
pub(crate) struct FetchNames {
    tops: Arc<Tops>,
    worker: usize,
    keys: TargetKeys,
    url: Box<str>,
    host: Box<str>,
    next_hop: Option<SocketAddr>,
}

impl FetchNames {
    /// Those of a fetch for `target` that this worker begins.
    pub(crate) fn new(
        sums: &Accumulator,
        admin: &Admin,
        target: &TargetName<'_>,
        next_hop: Option<SocketAddr>,
    ) -> Self {
        let cuts_query = admin.top_queries == TopQueries::Cut;
        Self {
            tops: Arc::clone(sums.tops()),
            worker: sums.worker(),
            keys: target.keys(sums.tops().keys(), cuts_query),
            url: named(|name| target.write_url(cuts_query, name)),
            host: named(|name| target.write_host(name)),
            next_hop,
        }
    }

    /// So many bytes were received for it; `false` if this must be said again later, as the
    /// sketches are read at this moment.
    pub(crate) fn received(&self, bytes: u64) -> bool {
        self.add(&Weights {
            from_next_hops: bytes,
            ..Weights::default()
        })
    }

    /// So many bytes that were received reach no client.
    pub(crate) fn wasted(&self, bytes: u64) {
        let weights = Weights {
            wasted: bytes,
            ..Weights::default()
        };
        if bytes > 0 && !self.add(&weights) {
            self.tops.dropped();
        }
    }

    fn add(&self, weights: &Weights) -> bool {
        let Some(mut top) = self.tops.try_lock(self.worker) else {
            return false;
        };
        let names = (|| self.url.clone(), || self.host.clone());
        top.add_target(self.keys, weights, names);
        if let Some(next_hop) = self.next_hop {
            self.tops.add_next_hop(&mut top, next_hop, weights);
        }
        true
    }
}
