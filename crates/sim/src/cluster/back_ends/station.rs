//! What serves one thing after the other, in the order of arrival.

use crate::world::Nanos;

/// A CPU, or a disk. As service times are known on arrival, no queue is kept: what arrives leaves a
/// service time after what arrived before it has left.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Station {
    free: Nanos,
    busy: Nanos,
}

impl Station {
    /// When something leaves that arrives at `at`; never before what arrived last.
    pub(super) fn serve(&mut self, at: Nanos, service: Nanos) -> Nanos {
        self.free = self.free.max(at) + service;
        self.busy += service;
        self.free
    }

    /// From when on it has nothing to do.
    pub(super) const fn free(&self) -> Nanos {
        self.free
    }

    /// How long it has served, with what is waiting for it.
    pub(super) const fn busy(&self) -> Nanos {
        self.busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use weir_workload::Chance;

    /// A queue that is stepped nanosecond by nanosecond.
    fn naive(arrivals: &[(Nanos, Nanos)]) -> Vec<Nanos> {
        let mut coming: VecDeque<_> = arrivals.iter().copied().enumerate().collect();
        let mut waiting: VecDeque<(usize, Nanos)> = VecDeque::new();
        let mut left = vec![0; arrivals.len()];
        let mut at = 0;
        while !coming.is_empty() || !waiting.is_empty() {
            while coming.front().is_some_and(|next| next.1.0 == at) {
                waiting.extend(coming.pop_front().map(|next| (next.0, next.1.1)));
            }
            at += 1;
            if let Some(first) = waiting.front_mut() {
                first.1 -= 1;
                if first.1 == 0 {
                    left[first.0] = at;
                    waiting.pop_front();
                }
            }
        }
        left
    }

    #[test]
    fn station_serves_in_order_of_arrival() {
        let mut chance = Chance::new(5, 0);
        for _ in 0..50 {
            let mut at = 0;
            let arrivals: Vec<(Nanos, Nanos)> = (0..60)
                .map(|_| {
                    at += chance.below(6);
                    (at, 1 + chance.below(6))
                })
                .collect();
            let mut station = Station::default();
            let left: Vec<Nanos> = arrivals
                .iter()
                .map(|(at, service)| station.serve(*at, *service))
                .collect();
            assert_eq!(left, naive(&arrivals));
            assert_eq!(
                station.busy(),
                arrivals.iter().map(|one| one.1).sum::<Nanos>()
            );
            assert!(station.busy() <= station.free());
        }
    }
}
