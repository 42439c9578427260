//! The heavy hitters of all workers: written by these, read by the admin interface.

use super::miss_words::meanings;
use super::names::{self, TargetKeys};
use super::ranking::{Ranking, Weights};
use super::recent_misses::{ForwardedRequest, MissFacts, RecentMisses};
use crate::config::{Admin, TopClients, TopQueries};
use std::hash::RandomState;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use weir_measure::live::RecentMisses as MissList;
use weir_measure::live::{Miss, TOP_ROWS_MAX, TopBy, TopOf, TopRow, TopTable, VERSION};
use weir_measure::sketch::{SpaceSaving, merge};
use weir_measure::{Counters, Label as _, Metric};

/// Seconds between two halvings of all counts: what was counted an hour ago weighs 1/64.
pub(crate) const HALVING_S: u32 = 600;

/// What one worker has counted.
#[derive(Debug, Default)]
pub(super) struct WorkerTop {
    rankings: [Ranking; TopOf::COUNT],
    misses: RecentMisses,
}

impl WorkerTop {
    pub(super) fn ranking(&mut self, of: TopOf) -> &mut Ranking {
        &mut self.rankings[of.index()]
    }

    /// Adds what a target has.
    pub(super) fn add_target(
        &mut self,
        keys: TargetKeys,
        weights: &Weights,
        (url, host): (impl Fn() -> Box<str>, impl Fn() -> Box<str>),
    ) {
        self.ranking(TopOf::Urls).add(keys.url, weights, url);
        self.ranking(TopOf::Hosts).add(keys.host, weights, host);
    }

    pub(super) fn halve(&mut self) {
        self.rankings.iter_mut().for_each(Ranking::halve);
    }

    pub(super) fn push_miss(&mut self, write_url: impl FnOnce(&mut String), facts: &MissFacts<'_>) {
        self.misses.push(write_url, facts);
    }
}

/// What all workers have counted. A worker never waits for its lock: if the lock is taken, it
/// counts what it could not add, and goes on.
#[derive(Debug)]
pub(crate) struct Tops {
    workers: Box<[Mutex<WorkerTop>]>,
    /// Makes the keys of names.
    keys: RandomState,
    counters: Arc<Counters>,
}

impl Tops {
    /// Without a request, for so many workers.
    pub(crate) fn new(workers: usize, counters: &Arc<Counters>) -> Self {
        Self {
            workers: (0..workers).map(|_| Mutex::default()).collect(),
            keys: RandomState::new(),
            counters: Arc::clone(counters),
        }
    }

    /// What makes the names of clients that do not tell their addresses.
    pub(crate) fn client_keys(&self) -> RandomState {
        self.keys.clone()
    }

    pub(super) fn keys(&self) -> &RandomState {
        &self.keys
    }

    /// The numbers of `worker`, if they are not being read at this moment.
    pub(super) fn try_lock(&self, worker: usize) -> Option<MutexGuard<'_, WorkerTop>> {
        match self.workers.get(worker)?.try_lock() {
            Ok(top) => Some(top),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// What was to be added could not be.
    pub(super) fn dropped(&self) {
        self.counters.add_shared(Metric::TopDropped, 1);
    }

    pub(super) fn add_client(&self, top: &mut WorkerTop, address: IpAddr, weights: &Weights) {
        let key = names::key_of(&self.keys, address);
        let name = || address.to_string().into();
        top.ranking(TopOf::Clients).add(key, weights, name);
    }

    pub(super) fn add_next_hop(&self, top: &mut WorkerTop, address: SocketAddr, weights: &Weights) {
        let key = names::key_of(&self.keys, address);
        let name = || address.to_string().into();
        top.ranking(TopOf::NextHops).add(key, weights, name);
    }

    fn lock(&self, worker: usize) -> MutexGuard<'_, WorkerTop> {
        let lock = self.workers[worker].lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }

    /// The heaviest `rows_max`. A lock is held for the copy of a sketch, and for the search of the
    /// names.
    pub(crate) fn table(&self, of: TopOf, by: TopBy, rows_max: usize, admin: &Admin) -> TopTable {
        let all = 0..self.workers.len();
        let sketches: Vec<SpaceSaving> = all
            .clone()
            .map(|worker| self.lock(worker).ranking(of).sketch(by).clone())
            .collect();
        let merged = merge(&sketches.iter().collect::<Vec<_>>());
        let (heaviest, unlisted_max) = merged.heaviest(rows_max.min(TOP_ROWS_MAX.into()));
        let mut found: Vec<Option<String>> = vec![None; heaviest.len()];
        for worker in all {
            let mut top = self.lock(worker);
            let ranking = top.ranking(of);
            for (name, row) in found.iter_mut().zip(heaviest) {
                if name.is_none() {
                    *name = ranking.name(row.key).map(ToOwned::to_owned);
                }
            }
        }
        let rows = heaviest.iter().zip(found);
        // a key that was replaced in the meantime was light
        let rows = rows.filter_map(|(row, name)| {
            Some(TopRow {
                name: self.shown(of, name?, admin),
                count: row.count,
                error: row.error,
                certain: merged.is_certain(row),
            })
        });
        TopTable {
            version: VERSION,
            of: of.word().into(),
            by: by.word().into(),
            unit: unit(by).into(),
            total: merged.total,
            resolution: merged.resolution,
            unlisted_max,
            halving_s: HALVING_S,
            rows: rows.collect(),
        }
    }

    /// A name as the settings of now permit it to be shown, which may differ from those that it was
    /// made under.
    fn shown(&self, of: TopOf, name: String, admin: &Admin) -> String {
        match of {
            TopOf::Clients => match name.parse() {
                Ok(address) => names::client(&self.keys, admin.top_clients, address),
                Err(_) => name,
            },
            TopOf::Urls => shown_url(&name, admin),
            TopOf::Hosts | TopOf::NextHops => name,
        }
    }

    /// The last requests of all workers that were forwarded, or were to be and were refused; the
    /// latest first.
    pub(crate) fn misses(&self, admin: &Admin) -> MissList {
        let all = 0..self.workers.len();
        let mut misses: Vec<ForwardedRequest> = all
            .flat_map(|worker| self.lock(worker).misses.iter().cloned().collect::<Vec<_>>())
            .collect();
        misses.sort_by_key(|miss| std::cmp::Reverse(miss.at_unix_ms));
        let (why_meanings, reason_meanings) = meanings(&misses);
        let misses = misses.into_iter().map(|miss| Miss {
            at_unix_ms: miss.at_unix_ms,
            method: miss.method,
            url: shown_url(&miss.url, admin),
            client: self.client(admin.top_clients, miss.client),
            why: miss.why.word().into(),
            status: miss.status,
            not_stored: miss.not_stored.map(|why| why.word().into()),
            refused: miss.refused.map(Into::into),
        });
        MissList {
            version: VERSION,
            misses: misses.collect(),
            why_meanings,
            reason_meanings,
        }
    }

    fn client(&self, shown: TopClients, address: IpAddr) -> String {
        names::client(&self.keys, shown, address)
    }
}

fn shown_url(name: &str, admin: &Admin) -> String {
    match name.split_once('?') {
        Some((path, _)) if admin.top_queries == TopQueries::Cut => path.to_owned(),
        _ => name.to_owned(),
    }
}

/// What is counted by a measure.
const fn unit(by: TopBy) -> &'static str {
    match by {
        TopBy::Requests | TopBy::Misses | TopBy::Errors => "requests",
        TopBy::ToClients | TopBy::FromNextHops | TopBy::Wasted => "bytes",
    }
}
