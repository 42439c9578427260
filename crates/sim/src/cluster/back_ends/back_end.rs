//! A node: a CPU, disks, and a cache of what it has read.

use super::disk_costs::DiskCosts;
use super::station::Station;
use crate::hit_ratio::hits::{Setting, Simulation};
use crate::hit_ratio::keys::NumberedRequest;
use crate::world::Nanos;

/// A node that has all content on its disks.
#[derive(Debug)]
pub(super) struct BackEnd {
    pub(super) cpu: Station,
    disks: Vec<Station>,
    cache: Simulation,
    /// Under way or waiting for a disk; no more than connections.
    reads: Vec<Read>,
    pub(super) requests: u64,
    pub(super) hits: u64,
    pub(super) files_read: u64,
}

/// A file that is being read.
#[derive(Debug)]
struct Read {
    number: u32,
    /// Whether it is kept in the cache: if any of those that wait for it wants that.
    is_kept: bool,
    /// Connections that wait for it beside the one that began it.
    joined: Vec<u32>,
}

impl BackEnd {
    pub(super) fn new(cache: Setting, disk: &DiskCosts) -> Self {
        let disks = usize::try_from(disk.disks.get()).unwrap_or(1);
        Self {
            cpu: Station::default(),
            disks: vec![Station::default(); disks],
            cache: Simulation::new(cache),
            reads: Vec::new(),
            requests: 0,
            hits: 0,
            files_read: 0,
        }
    }

    /// A request: whether the response is in memory.
    pub(super) fn find(&mut self, request: NumberedRequest) -> bool {
        let is_hit = self.cache.find(request);
        self.requests += 1;
        self.hits += u64::from(is_hit);
        is_hit
    }

    /// Reads a file for a connection; when it is read. None if it is being read already: then the
    /// connection waits for that read.
    pub(super) fn read(
        &mut self,
        at: Nanos,
        request: NumberedRequest,
        is_kept: bool,
        connection: u32,
        costs: &DiskCosts,
    ) -> Option<Nanos> {
        let known = |read: &&mut Read| read.number == request.number;
        if let Some(read) = self.reads.iter_mut().find(known) {
            read.is_kept |= is_kept;
            read.joined.push(connection);
            return None;
        }
        self.reads.push(Read {
            number: request.number,
            is_kept,
            joined: Vec::new(),
        });
        self.files_read += 1;
        let first = self.disks.iter_mut().min_by_key(|disk| disk.free())?;
        Some(first.serve(at, costs.read(request.size_bytes)))
    }

    /// The file is read: the connections that waited for it with the one that began it.
    pub(super) fn finish_read(&mut self, request: NumberedRequest) -> Vec<u32> {
        let known = |read: &Read| read.number == request.number;
        let Some(place) = self.reads.iter().position(known) else {
            debug_assert!(false, "a read that was not begun");
            return Vec::new();
        };
        let read = self.reads.swap_remove(place);
        if read.is_kept {
            self.cache.store(request);
        }
        read.joined
    }

    /// Reads that are under way or waiting.
    pub(super) fn pressure(&self) -> u32 {
        u32::try_from(self.reads.len()).unwrap_or(u32::MAX)
    }

    /// How long its disks have read, in the mean.
    pub(super) fn disk_busy(&self) -> Nanos {
        let all: Nanos = self.disks.iter().map(Station::busy).sum();
        all / self.disks.len().max(1) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZero;
    use weir_policy::admission::Rule;
    use weir_policy::eviction::EvictionKind;

    fn back_end(disks: u32) -> (BackEnd, DiskCosts) {
        let cache = Setting {
            capacity_bytes: 1 << 20,
            eviction: EvictionKind::Gds,
            admission: Rule::Always,
        };
        let costs = DiskCosts {
            disks: NonZero::new(disks).unwrap(),
            ..DiskCosts::ASPLOS_1998
        };
        (BackEnd::new(cache, &costs), costs)
    }

    const fn request(number: u32) -> NumberedRequest {
        NumberedRequest {
            number,
            size_bytes: 1000,
        }
    }

    #[test]
    fn two_requests_for_one_file_cost_one_read() {
        let (mut node, costs) = back_end(1);
        assert!(!node.find(request(1)));
        assert_eq!(node.read(0, request(1), true, 10, &costs), Some(28_410_000));
        assert!(!node.find(request(1)));
        assert_eq!(node.read(5, request(1), true, 11, &costs), None);
        assert_eq!((node.pressure(), node.files_read), (1, 1));
        assert_eq!(node.finish_read(request(1)), [11]);
        assert_eq!(node.pressure(), 0);
        assert!(node.find(request(1)));
        assert_eq!((node.requests, node.hits), (3, 1));
    }

    #[test]
    fn file_is_kept_if_one_of_its_readers_keeps_it_and_else_not() {
        for (first, second) in [(false, false), (false, true), (true, false)] {
            let (mut node, costs) = back_end(1);
            node.read(0, request(1), first, 1, &costs);
            node.read(0, request(1), second, 2, &costs);
            node.finish_read(request(1));
            assert_eq!(node.find(request(1)), first || second);
        }
    }

    #[test]
    fn read_waits_for_the_disk_that_is_free_first() {
        let (mut one, costs) = back_end(1);
        one.read(0, request(1), true, 1, &costs);
        assert_eq!(one.read(0, request(2), true, 2, &costs), Some(56_820_000));
        let (mut two, costs) = back_end(2);
        two.read(0, request(1), true, 1, &costs);
        assert_eq!(two.read(0, request(2), true, 2, &costs), Some(28_410_000));
        assert_eq!(two.disk_busy(), 28_410_000);
    }
}
