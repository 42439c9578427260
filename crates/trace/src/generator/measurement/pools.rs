//! Connections as PROXIM's proxy would keep them, were all to persist: a request takes an idle one
//! of its client (or server) if there is one, else a new one is opened.

use std::collections::HashMap;

#[derive(Clone, Debug, Default)]
pub(super) struct Pools {
    /// When each connection of a client is free again, microseconds.
    free_us: HashMap<u64, Vec<i64>>,
    opened: u64,
}

impl Pools {
    /// A request of `owner` from its arrival to its end; connections that were idle for longer than
    /// `idle_us` are closed.
    pub(super) fn take(&mut self, owner: u64, arrival_us: i64, ends_us: i64, idle_us: i64) {
        let pool = self.free_us.entry(owner).or_default();
        pool.retain(|free_us| arrival_us - free_us <= idle_us);
        let idle = pool.iter_mut().filter(|free_us| **free_us <= arrival_us);
        if let Some(latest) = idle.max() {
            *latest = ends_us;
        } else {
            pool.push(ends_us);
            self.opened += 1;
        }
    }

    pub(super) const fn opened(&self) -> u64 {
        self.opened
    }

    /// How many had one.
    pub(super) fn count(&self) -> usize {
        self.free_us.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_idle_and_unexpired_connection_is_reused() {
        let mut pools = Pools::default();
        pools.take(1, 0, 10, 5);
        pools.take(1, 9, 20, 5);
        assert_eq!(pools.opened(), 2);
        // the first is free at 10 and closed after 15, the second free at 20
        pools.take(1, 15, 16, 5);
        assert_eq!(pools.opened(), 2);
        pools.take(1, 26, 27, 5);
        assert_eq!(pools.opened(), 3);
        pools.take(2, 26, 27, 5);
        assert_eq!((pools.opened(), pools.count()), (4, 2));
    }
}
