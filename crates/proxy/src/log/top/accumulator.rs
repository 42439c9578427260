//! What a worker adds up before its sketches get it.

use super::names::{TargetKeys, TargetName};
use super::ranking::Weights;
use super::recent_misses::MissFacts;
use super::tops::{HALVING_S, Tops, WorkerTop};
use crate::config::{Admin, TopQueries};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use weir_policy::Digest;

/// Targets whose hits are added up at once, one for each value of a byte. With their names 120 KiB
/// at most.
const TARGETS: usize = 1 << u8::BITS;

/// Clients whose responses are added up at once.
const CLIENTS: usize = 64;

/// Hits of one target.
#[derive(Clone, Debug, Default)]
struct TargetSum {
    digest: u64,
    requests: u64,
    bytes: u64,
    keys: TargetKeys,
    url: String,
    host: String,
}

/// Responses to one client.
#[derive(Clone, Copy, Debug)]
struct ClientSum {
    address: IpAddr,
    requests: u64,
    bytes: u64,
}

/// A request that did not take the fast path, as it is counted.
pub(crate) struct CountedRequest<'a> {
    /// Its target, if it stands for something.
    pub(crate) target: Option<TargetName<'a>>,
    /// Its client, if it has one.
    pub(crate) client: Option<IpAddr>,
    /// The next hop that it was sent to last.
    pub(crate) next_hop: Option<SocketAddr>,
    pub(crate) weights: Weights,
    /// What is remembered of it, if it was forwarded for a client.
    pub(crate) miss: Option<MissFacts<'a>>,
}

/// The sums of one worker.
#[derive(Debug)]
pub(crate) struct Accumulator {
    tops: Arc<Tops>,
    worker: usize,
    /// Empty before the first hit.
    targets: Vec<TargetSum>,
    clients: Vec<ClientSum>,
    /// Seconds since the counts were halved.
    age_s: u32,
}

impl Accumulator {
    /// Those of the worker of this number.
    pub(crate) fn new(tops: &Arc<Tops>, worker: usize) -> Self {
        Self {
            tops: Arc::clone(tops),
            worker,
            targets: Vec::new(),
            clients: Vec::new(),
            age_s: 0,
        }
    }

    pub(super) fn tops(&self) -> &Arc<Tops> {
        &self.tops
    }

    pub(super) const fn worker(&self) -> usize {
        self.worker
    }

    /// A hit for the target of `key` sent so many bytes. Part of the way of every hit.
    #[inline]
    pub(crate) fn hit<'t>(
        &mut self,
        admin: &Admin,
        key: Digest,
        target: impl FnOnce() -> TargetName<'t>,
        bytes: u64,
    ) {
        let digest = low(key);
        match self.targets.get_mut(place_of(digest)) {
            Some(sum) if sum.digest == digest => {
                sum.requests += 1;
                sum.bytes += bytes;
            }
            _ => self.begin(admin, digest, target(), bytes),
        }
    }

    /// Takes the place of the sum of another target.
    #[inline(never)]
    fn begin(&mut self, admin: &Admin, digest: u64, target: TargetName<'_>, bytes: u64) {
        if self.targets.is_empty() {
            self.targets = vec![TargetSum::default(); TARGETS];
        }
        let sum = &mut self.targets[place_of(digest)];
        if sum.requests > 0 {
            match self.tops.try_lock(self.worker) {
                Some(mut top) => sum.give(&mut top),
                None => self.tops.dropped(),
            }
        }
        let cuts_query = admin.top_queries == TopQueries::Cut;
        sum.digest = digest;
        sum.requests = 1;
        sum.bytes = bytes;
        sum.keys = target.keys(self.tops.keys(), cuts_query);
        sum.url.clear();
        target.write_url(cuts_query, &mut sum.url);
        sum.host.clear();
        target.write_host(&mut sum.host);
    }

    /// So many requests of a client were answered at once, with so many bytes in all. Part of the
    /// way of every hit.
    #[inline]
    pub(crate) fn answered(&mut self, address: IpAddr, requests: u64, bytes: u64) {
        match self.clients.get_mut(place_of_client(address)) {
            Some(sum) if sum.address == address => {
                sum.requests += requests;
                sum.bytes += bytes;
            }
            _ => self.begin_client(address, requests, bytes),
        }
    }

    #[inline(never)]
    fn begin_client(&mut self, address: IpAddr, requests: u64, bytes: u64) {
        if self.clients.is_empty() {
            self.clients = vec![ClientSum::NONE; CLIENTS];
        }
        let sum = &mut self.clients[place_of_client(address)];
        if sum.requests > 0 {
            match self.tops.try_lock(self.worker) {
                Some(mut top) => sum.give(&self.tops, &mut top),
                None => self.tops.dropped(),
            }
        }
        *sum = ClientSum {
            address,
            requests,
            bytes,
        };
    }

    /// Counts a request that did not take the fast path.
    pub(crate) fn count(&self, admin: &Admin, request: &CountedRequest<'_>) {
        let Some(mut top) = self.tops.try_lock(self.worker) else {
            return self.tops.dropped();
        };
        let weights = &request.weights;
        if let Some(target) = &request.target {
            let cuts_query = admin.top_queries == TopQueries::Cut;
            let keys = target.keys(self.tops.keys(), cuts_query);
            let url = || named(|name| target.write_url(cuts_query, name));
            let host = || named(|name| target.write_host(name));
            top.add_target(keys, weights, (url, host));
            if let Some(miss) = &request.miss {
                top.push_miss(url(), miss);
            }
        }
        if let Some(client) = request.client {
            self.tops.add_client(&mut top, client, weights);
        }
        if let Some(next_hop) = request.next_hop {
            self.tops.add_next_hop(&mut top, next_hop, weights);
        }
    }

    /// Gives the sketches what was added up, and halves their counts in time. To be called each
    /// second.
    pub(crate) fn tick(&mut self) {
        self.age_s += 1;
        let is_used = !self.targets.is_empty() || !self.clients.is_empty();
        if !is_used && self.age_s < HALVING_S {
            return;
        }
        // if it is read now, the next second will do
        let Some(mut top) = self.tops.try_lock(self.worker) else {
            return;
        };
        for sum in self.targets.iter_mut().filter(|sum| sum.requests > 0) {
            sum.give(&mut top);
        }
        for sum in self.clients.iter_mut().filter(|sum| sum.requests > 0) {
            sum.give(&self.tops, &mut top);
        }
        if self.age_s >= HALVING_S {
            top.halve();
            self.age_s = 0;
        }
    }
}

impl TargetSum {
    /// Adds it to the sketches. The target keeps its place.
    fn give(&mut self, top: &mut WorkerTop) {
        let weights = Weights {
            requests: std::mem::take(&mut self.requests),
            to_clients: std::mem::take(&mut self.bytes),
            ..Weights::default()
        };
        let names = (|| self.url.as_str().into(), || self.host.as_str().into());
        top.add_target(self.keys, &weights, names);
    }
}

impl ClientSum {
    const NONE: Self = Self {
        address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        requests: 0,
        bytes: 0,
    };

    fn give(&mut self, tops: &Tops, top: &mut WorkerTop) {
        let weights = Weights {
            requests: std::mem::take(&mut self.requests),
            to_clients: std::mem::take(&mut self.bytes),
            ..Weights::default()
        };
        tops.add_client(top, self.address, &weights);
    }
}

/// A name that `write` writes.
pub(super) fn named(write: impl Fn(&mut String)) -> Box<str> {
    let mut name = String::new();
    write(&mut name);
    name.into()
}

/// Half of a digest: it is keyed, and distinguishes 256 targets.
fn low(key: Digest) -> u64 {
    key.0
}

/// Where the sum of a target is: by the lowest byte of its digest.
fn place_of(digest: u64) -> usize {
    let [lowest, ..] = digest.to_le_bytes();
    usize::from(lowest)
}

/// Where the sum of a client is. Clients that aim at one place make this worker give sums to its
/// sketches more often, no more.
fn place_of_client(address: IpAddr) -> usize {
    let bits = match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => {
            let octets = address.octets();
            let fold = |bits: u64, octet| bits.rotate_left(8) ^ u64::from(octet);
            octets.into_iter().fold(0, fold)
        }
    };
    // the golden ratio spreads neighbours (Knuth, volume 3, 6.4)
    (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % CLIENTS
}
