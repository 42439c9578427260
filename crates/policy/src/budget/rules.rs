//! What an operator says of a link.

use super::period::PeriodRules;
use super::window::TimeWindow;
use super::zone::Zone;
use crate::choice;
use alloc::boxed::Box;
use weir_semantics::DeltaSeconds;

/// Most of the rate that can be kept for interactive transfers, percent.
pub const RESERVE_PERCENT_MAX: u8 = 90;

/// Most that heads of IP and TCP can add, percent.
pub const OVERHEAD_PERCENT_MAX: u8 = 20;

/// The rules of one link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRules {
    /// Bytes a second; `None` for no bound.
    pub rate: Option<u64>,
    /// What large transfers leave of the rate, percent, at most [`RESERVE_PERCENT_MAX`].
    pub reserve_percent: u8,
    /// Content of a response beyond so many bytes is bulk.
    pub bulk_above: u64,
    /// Bytes of a period; `None` for no bound.
    pub quota: Option<Quota>,
    /// Which bytes are counted.
    pub count: CountedBytes,
    /// What heads of IP and TCP add, percent, at most [`OVERHEAD_PERCENT_MAX`].
    pub overhead_percent: u8,
    /// Times with rules of their own; of those at one time the first counts. At most
    /// [`super::WINDOWS_MAX`].
    pub windows: Box<[TimeWindow]>,
    /// The calendar of the quota and the time windows.
    pub zone: Zone,
}

/// Bytes of a period, and what follows when they are spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Bytes on the wire in each period.
    pub bytes: u64,
    /// Its periods.
    pub period: PeriodRules,
    /// What follows when it is spent.
    pub then: WhenSpent,
    /// Bytes a second after it is spent, with [`WhenSpent::Slow`].
    pub slow_rate: u64,
    /// How long past its freshness a response may be served after it is spent, with
    /// [`WhenSpent::Stale`].
    pub stale_for: DeltaSeconds,
}

choice! {
    /// What follows when a quota is spent.
    pub enum WhenSpent {
        /// Fetches go on at a rate of their own, and the quota is exceeded.
        Slow = "slow",
        /// Nothing is fetched: what is stored and fresh is served, else 504.
        StoredOnly = "stored-only",
        /// Nothing is fetched: what is stored is served though it is stale, else 429.
        Stale = "stale",
        /// Nothing is fetched: what is stored and fresh is served, else 429.
        Refuse = "refuse",
    }
}

choice! {
    /// Which bytes a link counts.
    pub enum CountedBytes {
        /// Those that next hops send.
        Received = "received",
        /// Those that are sent to next hops, too.
        Both = "both",
    }
}

impl WhenSpent {
    /// Whether nothing is fetched any more.
    #[must_use]
    pub const fn ends_fetches(self) -> bool {
        !matches!(self, Self::Slow)
    }

    /// The status of the answer to a request that would have to be sent.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::StoredOnly => 504,
            Self::Slow | Self::Stale | Self::Refuse => 429,
        }
    }
}

impl LinkRules {
    /// Bytes on the wire for so many bytes of connections.
    #[must_use]
    pub(super) fn on_wire(&self, bytes: u64) -> u64 {
        let overhead = bytes.saturating_mul(u64::from(self.overhead_percent));
        bytes.saturating_add(overhead.div_ceil(100))
    }

    /// Bytes of connections that fit into so many on the wire.
    #[must_use]
    pub(super) fn fitting(&self, wire_bytes: u64) -> u64 {
        let whole = 100 + u128::from(self.overhead_percent);
        u64::try_from(u128::from(wire_bytes) * 100 / whole).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_on_the_wire_no_more_than_there_is_room() {
        for percent in 0..=OVERHEAD_PERCENT_MAX {
            let rules = LinkRules {
                rate: None,
                reserve_percent: 0,
                bulk_above: 0,
                quota: None,
                count: CountedBytes::Both,
                overhead_percent: percent,
                windows: Box::default(),
                zone: Zone::utc(),
            };
            for room in [0, 1, 2, 99, 100, 101, 1460, 65_536, 1 << 40] {
                let fitting = rules.fitting(room);
                assert!(rules.on_wire(fitting) <= room, "{percent} {room}");
                assert!(rules.on_wire(fitting + 2) > room, "{percent} {room}");
            }
        }
    }
}
