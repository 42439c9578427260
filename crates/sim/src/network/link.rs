//! One direction of a link: a rate, and the queue in front of it.
//!
//! First in, first out, and no packet is lost: PROXIM (INFOCOM 1999) assumes so, and so do the
//! transfers this model was held against. A packet's departure is therefore known as soon as it is
//! in the queue. Where a real queue would have been too short is counted.

use crate::world::Nanos;

/// What a link is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LinkRate {
    /// Bits a second; 0: as fast as one likes.
    pub bits_s: u64,
    /// Bytes that a real queue would hold, 0: any number. Nothing is dropped, but packets that
    /// would have been are counted.
    pub queue_limit_bytes: u64,
}

impl LinkRate {
    /// A link of `bits_s` bits a second whose queue is as long as it needs to be.
    #[must_use]
    pub const fn of(bits_s: u64) -> Self {
        Self {
            bits_s,
            queue_limit_bytes: 0,
        }
    }

    /// How long a packet of `bytes` takes, nanoseconds, rounded up.
    #[must_use]
    pub const fn packet_ns(self, bytes: u32) -> u64 {
        if self.bits_s == 0 {
            return 0;
        }
        (bytes as u64 * 8 * 1_000_000_000).div_ceil(self.bits_s)
    }
}

/// A link at work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Link {
    /// When the last packet in the queue is sent.
    pub(crate) free_at: Nanos,
    /// Most packets are full, or as long as the one before, and a division takes long itself.
    longest: Took,
    last: Took,
}

/// How long a packet took.
#[derive(Clone, Copy, Debug, Default)]
struct Took {
    bytes: u32,
    ns: u64,
}

/// What went over links of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkTraffic {
    pub(crate) packets: u64,
    /// With the headers of packets.
    pub(crate) wire_bytes: u64,
    /// Packets that a queue of the given limit would not have held.
    pub(crate) over_limit: u64,
}

impl LinkTraffic {
    /// And what was carried elsewhere.
    pub(crate) const fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.wire_bytes += other.wire_bytes;
        self.over_limit += other.over_limit;
    }
}

impl Link {
    /// A packet of `bytes` comes to the queue at `at`: returns when it is sent.
    pub(crate) fn carry(
        &mut self,
        rate: LinkRate,
        at: Nanos,
        bytes: u32,
        carried: &mut LinkTraffic,
    ) -> Nanos {
        if rate.queue_limit_bytes > 0 {
            let waiting_ns = u128::from(self.free_at.saturating_sub(at));
            let waiting = waiting_ns * u128::from(rate.bits_s) / 8_000_000_000;
            let over = waiting + u128::from(bytes) > u128::from(rate.queue_limit_bytes);
            carried.over_limit += u64::from(over);
        }
        carried.packets += 1;
        carried.wire_bytes += u64::from(bytes);
        self.free_at = self.free_at.max(at) + self.takes_ns(rate, bytes);
        self.free_at
    }

    fn takes_ns(&mut self, rate: LinkRate, bytes: u32) -> u64 {
        if let Some(known) = [self.longest, self.last]
            .iter()
            .find(|it| it.bytes == bytes)
        {
            return known.ns;
        }
        let ns = rate.packet_ns(bytes);
        let took = Took { bytes, ns };
        if bytes > self.longest.bytes {
            self.longest = took;
        } else {
            self.last = took;
        }
        ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_in_order_and_an_idle_link_adds_no_wait() {
        let rate = LinkRate::of(8_000_000);
        let (mut link, mut carried) = (Link::default(), LinkTraffic::default());
        assert_eq!(link.carry(rate, 100, 1000, &mut carried), 1_000_100);
        assert_eq!(link.carry(rate, 100, 500, &mut carried), 1_500_100);
        assert_eq!(link.carry(rate, 9_000_000, 500, &mut carried), 9_500_000);
        assert_eq!((carried.packets, carried.wire_bytes), (3, 2000));
    }

    #[test]
    fn packet_time_is_rounded_up_and_zero_at_unlimited_rate() {
        assert_eq!(LinkRate::of(21_000).packet_ns(1500), 571_428_572);
        assert_eq!(LinkRate::of(0).packet_ns(1500), 0);
    }

    #[test]
    fn queue_overflow_counts_only_packets_beyond_the_limit() {
        let rate = LinkRate {
            bits_s: 8_000_000,
            queue_limit_bytes: 2000,
        };
        let (mut link, mut carried) = (Link::default(), LinkTraffic::default());
        link.carry(rate, 0, 1000, &mut carried);
        link.carry(rate, 0, 1000, &mut carried);
        assert_eq!(carried.over_limit, 0);
        link.carry(rate, 0, 1, &mut carried);
        assert_eq!(carried.over_limit, 1);
    }
}
