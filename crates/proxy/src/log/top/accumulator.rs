//! What a worker adds up before its sketches get it.

use super::names::{TargetKeys, TargetName};
use super::ranking::Weights;
use super::recent_misses::MissFacts;
use super::tops::{HALVING_S, Tops, WorkerTop};
use crate::config::{Admin, TopQueries};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use weir_policy::Digest;

/// Targets whose hits are added up at once, one for each value of a byte. With their names 120 KiB
/// at most.
const TARGETS: usize = 1 << u8::BITS;

/// Targets whose forwarded requests are added up at once. With their names 30 KiB at most.
const FORWARDED_TARGETS: usize = 64;

/// Clients, and next hops, that are added up at once.
const ADDRESSES: usize = 64;

/// Requests for one target.
#[derive(Clone, Debug, Default)]
struct TargetSum {
    digest: u64,
    weights: Weights,
    keys: TargetKeys,
    /// Empty as long as it has no names.
    url: String,
    host: String,
}

/// Sums of addresses, of clients or next hops: each has a place, which another one may take.
#[derive(Debug)]
struct AddressSums<A> {
    /// Empty before the first one.
    sums: Vec<(A, Weights)>,
}

/// A request that did not take the fast path, as it is counted.
pub(crate) struct CountedRequest<'a> {
    /// Its target, if it stands for something.
    pub(crate) target: Option<TargetName<'a>>,
    /// The key of that alone, if there is one.
    pub(crate) key: Option<Digest>,
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
    /// Hits; empty before the first one.
    targets: Vec<TargetSum>,
    /// Other requests for targets that were requested before; empty before the first one.
    forwarded: Vec<TargetSum>,
    clients: AddressSums<IpAddr>,
    next_hops: AddressSums<SocketAddr>,
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
            forwarded: Vec::new(),
            clients: AddressSums::new(),
            next_hops: AddressSums::new(),
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
                sum.weights.requests += 1;
                sum.weights.to_clients += bytes;
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
        if sum.weights.requests > 0 {
            match self.tops.try_lock(self.worker) {
                Some(mut top) => sum.give(&mut top),
                None => self.tops.dropped(),
            }
        }
        sum.digest = digest;
        sum.weights.requests = 1;
        sum.weights.to_clients = bytes;
        sum.name(&self.tops, admin, &target);
    }

    /// So many requests of a client were answered at once, with so many bytes in all. Part of the
    /// way of every hit.
    #[inline]
    pub(crate) fn answered(&mut self, address: IpAddr, requests: u64, bytes: u64) {
        let weights = Weights {
            requests,
            to_clients: bytes,
            ..Weights::default()
        };
        self.add_client(address, &weights);
    }

    #[inline]
    fn add_client(&mut self, address: IpAddr, weights: &Weights) {
        let place = place_of_address(address);
        if let Some((address, weights)) = self.clients.add(place, address, weights) {
            let tops = &self.tops;
            self.give(|top| tops.add_client(top, address, &weights));
        }
    }

    fn add_next_hop(&mut self, address: SocketAddr, weights: &Weights) {
        // several may be at one address
        let port = usize::from(address.port()) % ADDRESSES;
        let place = place_of_address(address.ip()) ^ port;
        if let Some((address, weights)) = self.next_hops.add(place, address, weights) {
            let tops = &self.tops;
            self.give(|top| tops.add_next_hop(top, address, &weights));
        }
    }

    /// Gives the sketches a sum whose place is taken.
    #[inline(never)]
    fn give(&self, add: impl FnOnce(&mut WorkerTop)) {
        match self.tops.try_lock(self.worker) {
            Some(mut top) => add(&mut top),
            None => self.tops.dropped(),
        }
    }

    /// Counts a request that did not take the fast path.
    pub(crate) fn count(&mut self, admin: &Admin, request: &CountedRequest<'_>) {
        let weights = &request.weights;
        // few clients and next hops have many requests
        if let Some(client) = request.client {
            self.add_client(client, weights);
        }
        if let Some(next_hop) = request.next_hop {
            self.add_next_hop(next_hop, weights);
        }
        let Some(target) = &request.target else {
            return;
        };
        let digest = request.key.map(low);
        let is_known = |sum: &&mut TargetSum| Some(sum.digest) == digest;
        let known = digest.and_then(|digest| self.forwarded.get_mut(forwarded_place(digest)));
        if let Some(sum) = known.filter(is_known) {
            if sum.url.is_empty() {
                sum.name(&self.tops, admin, target);
            }
            sum.weights.add(weights);
            if let Some(miss) = &request.miss {
                match self.tops.try_lock(self.worker) {
                    Some(mut top) => top.push_miss(|name| name.push_str(&sum.url), miss),
                    None => self.tops.dropped(),
                }
            }
            return;
        }
        let Some(mut top) = self.tops.try_lock(self.worker) else {
            return self.tops.dropped();
        };
        let cuts_query = admin.top_queries == TopQueries::Cut;
        let keys = target.keys(self.tops.keys(), cuts_query);
        let url = || named(|name| target.write_url(cuts_query, name));
        let host = || named(|name| target.write_host(name));
        top.add_target(keys, weights, (url, host));
        if let Some(miss) = &request.miss {
            top.push_miss(|name| target.write_url(cuts_query, name), miss);
        }
        if let Some(digest) = digest {
            self.forwarded
                .resize_with(FORWARDED_TARGETS, Default::default);
            self.forwarded[forwarded_place(digest)].await_next(digest, &mut top);
        }
    }

    /// Gives the sketches what was added up, and halves their counts in time. To be called each
    /// second.
    pub(crate) fn tick(&mut self) {
        self.age_s += 1;
        let has_targets = !self.targets.is_empty() || !self.forwarded.is_empty();
        let is_used = has_targets || self.clients.is_used() || self.next_hops.is_used();
        if !is_used && self.age_s < HALVING_S {
            return;
        }
        // if it is read now, the next second will do
        let Some(mut top) = self.tops.try_lock(self.worker) else {
            return;
        };
        let all = self.targets.iter_mut().chain(&mut self.forwarded);
        for sum in all.filter(|sum| sum.weights != Weights::default()) {
            sum.give(&mut top);
        }
        for (address, weights) in self.clients.take() {
            self.tops.add_client(&mut top, address, &weights);
        }
        for (address, weights) in self.next_hops.take() {
            self.tops.add_next_hop(&mut top, address, &weights);
        }
        if self.age_s >= HALVING_S {
            top.halve();
            self.age_s = 0;
        }
    }
}

impl TargetSum {
    /// Takes the names of `target`.
    fn name(&mut self, tops: &Tops, admin: &Admin, target: &TargetName<'_>) {
        let cuts_query = admin.top_queries == TopQueries::Cut;
        self.keys = target.keys(tops.keys(), cuts_query);
        self.url.clear();
        target.write_url(cuts_query, &mut self.url);
        self.host.clear();
        target.write_host(&mut self.host);
    }

    /// Adds it to the sketches, and waits for the next request for another target: most are
    /// requested once, and take no names.
    fn await_next(&mut self, digest: u64, top: &mut WorkerTop) {
        if self.weights != Weights::default() {
            self.give(top);
        }
        self.digest = digest;
        self.url.clear();
    }

    /// Adds it to the sketches. The target keeps its place.
    fn give(&mut self, top: &mut WorkerTop) {
        let weights = std::mem::take(&mut self.weights);
        let names = (|| self.url.as_str().into(), || self.host.as_str().into());
        top.add_target(self.keys, &weights, names);
    }
}

impl<A: Copy + PartialEq> AddressSums<A> {
    const fn new() -> Self {
        Self { sums: Vec::new() }
    }

    /// Whether there was one.
    const fn is_used(&self) -> bool {
        !self.sums.is_empty()
    }

    /// Adds to the sum of an address, at this place. Returns that of another one which it takes the
    /// place of.
    #[inline]
    fn add(&mut self, place: usize, address: A, weights: &Weights) -> Option<(A, Weights)> {
        match self.sums.get_mut(place) {
            Some((known, sum)) if *known == address => {
                sum.add(weights);
                None
            }
            _ => self.begin(place, address, weights),
        }
    }

    #[inline(never)]
    fn begin(&mut self, place: usize, address: A, weights: &Weights) -> Option<(A, Weights)> {
        if self.sums.is_empty() {
            self.sums = vec![(address, Weights::default()); ADDRESSES];
        }
        let before = std::mem::replace(&mut self.sums[place], (address, *weights));
        Some(before).filter(|(_, sum)| *sum != Weights::default())
    }

    /// Takes the sums. Addresses keep their places.
    fn take(&mut self) -> impl Iterator<Item = (A, Weights)> {
        let sums = self.sums.iter_mut();
        let taken = sums.map(|(address, sum)| (*address, std::mem::take(sum)));
        taken.filter(|(_, sum)| *sum != Weights::default())
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

/// Where the sum of the forwarded requests for a target is.
fn forwarded_place(digest: u64) -> usize {
    place_of(digest) % FORWARDED_TARGETS
}

/// Where the sum of an address is. Clients that aim at one place make this worker give sums to its
/// sketches more often, no more.
fn place_of_address(address: IpAddr) -> usize {
    let bits = match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => {
            let octets = address.octets();
            let fold = |bits: u64, octet| bits.rotate_left(8) ^ u64::from(octet);
            octets.into_iter().fold(0, fold)
        }
    };
    // the golden ratio spreads neighbours (Knuth, volume 3, 6.4)
    (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % ADDRESSES
}
