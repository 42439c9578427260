//! The link that a client's transfers share.

use super::world::microseconds;

/// The link that a client's transfers share: first come, first served.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClientLink {
    free_us: u64,
}

/// A response that comes to a client's link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// When its first packet is there, microseconds.
    pub(super) at_us: u64,
    /// Content, bytes.
    pub(super) bytes: u64,
    /// The round trip between client and server if its connection is new and begins with slow
    /// start, microseconds.
    pub(super) slow_start_rtt_us: Option<u64>,
}

impl ClientLink {
    /// When the client has all of it, of a link of `bytes_s` bytes a second; at once, where no rate
    /// is known. The link carries headers and the response head too, and a new connection needs a
    /// round trip for every doubling of its window.
    pub(super) fn carry(&mut self, arrival: Arrival, bytes_s: Option<f64>) -> u64 {
        let Some(bytes_s) = bytes_s else {
            return arrival.at_us;
        };
        let segments = (arrival.bytes + HEAD_BYTES).div_ceil(SEGMENT_BYTES);
        let wire_bytes = arrival.bytes + HEAD_BYTES + segments * HEADER_BYTES;
        self.free_us = self.free_us.max(arrival.at_us) + microseconds(wire_bytes as f64 / bytes_s);
        let waits_us = u64::from(segments.ilog2()) * arrival.slow_start_rtt_us.unwrap_or(0);
        self.free_us.max(arrival.at_us + waits_us)
    }
}

/// A response head, about as long as those of made rows.
const HEAD_BYTES: u64 = 260;

/// Data and headers of a packet of 1500 bytes (PROXIM).
const SEGMENT_BYTES: u64 = 1460;
const HEADER_BYTES: u64 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    /// Content of a response that is 1000 bytes with its head and headers.
    const SMALL: u64 = 1000 - HEAD_BYTES - HEADER_BYTES;

    fn arrival(at_us: u64, bytes: u64, slow_start_rtt_us: Option<u64>) -> Arrival {
        Arrival {
            at_us,
            bytes,
            slow_start_rtt_us,
        }
    }

    #[test]
    fn transfers_queue_on_a_busy_link_and_an_idle_link_adds_no_wait() {
        let mut link = ClientLink::default();
        let small = |at_us| arrival(at_us, SMALL, None);
        assert_eq!(link.carry(small(0), Some(1000.0)), 1_000_000);
        assert_eq!(link.carry(small(500_000), Some(1000.0)), 2_000_000);
        assert_eq!(link.carry(small(9_000_000), Some(1000.0)), 10_000_000);
        assert_eq!(link.carry(small(7), None), 7);
    }

    #[test]
    fn slow_start_adds_round_trips_only_beyond_the_first_segments() {
        let fast = Some(1e9);
        let took = |segments: u64, rtt_us| {
            let bytes = segments * SEGMENT_BYTES - HEAD_BYTES;
            ClientLink::default().carry(arrival(0, bytes, rtt_us), fast)
        };
        assert!(took(1, Some(1_000_000)) < 1000);
        assert_eq!(took(3, Some(1_000_000)), 1_000_000);
        assert_eq!(took(4, Some(1_000_000)), 2_000_000);
        assert!(took(4, None) < 1000);
    }
}
