//! Whether every worker still turns.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often each worker has looked at its clock. One that hangs in a call no longer does.
#[derive(Debug)]
pub(crate) struct Heartbeats(Box<[AtomicU64]>);

impl Heartbeats {
    /// Of so many workers.
    pub(crate) fn new(workers: usize) -> Self {
        Self((0..workers).map(|_| AtomicU64::new(0)).collect())
    }

    /// A worker's, once a second.
    pub(crate) fn beat(&self, worker: usize) {
        if let Some(count) = self.0.get(worker) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The first worker that has not had one since `before`, which becomes what it is now.
    pub(crate) fn first_silent(&self, before: &mut Vec<u64>) -> Option<usize> {
        let now = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        let now: Vec<u64> = now.collect();
        let silent = now.iter().zip(&*before).position(|(now, old)| now == old);
        *before = now;
        silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_without_a_heartbeat_since_the_last_look_is_named() {
        let heartbeats = Heartbeats::new(3);
        let mut before = Vec::new();
        // the first look has nothing to compare with
        assert_eq!(heartbeats.first_silent(&mut before), None);
        heartbeats.beat(0);
        heartbeats.beat(2);
        assert_eq!(heartbeats.first_silent(&mut before), Some(1));
        for worker in [0, 0, 1, 2, 7] {
            heartbeats.beat(worker);
        }
        assert_eq!(heartbeats.first_silent(&mut before), None);
        assert_eq!(heartbeats.first_silent(&mut before), Some(0));
    }
}
