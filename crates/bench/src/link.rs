//! A client's link in user space: rate, delay and loss without privileges.
//!
//! What a modem does to the proxy is this: it takes the response slowly, so the proxy holds it for
//! long. A client does the same when it reads slowly from a socket with a small receive buffer
//! ([`RECEIVE_BUFFER_BYTES`]): the window closes, and the proxy is left with the rest. The link
//! decides when how much may be read, and when what was read would have arrived.
//!
//! * **Rate**: packets go through one after the other, as over a wire. A packet that is read at
//!   once counts as arrived when its last bit would have been there. All connections of a client
//!   share its wire, in each direction.
//! * **Delay**: setting up a connection takes a round trip, a request is on its way for one delay,
//!   and so is what answers it.
//! * **Loss**: each packet is lost with a probability, and its connection stalls until the
//!   repetition is there: a round trip if other packets follow (fast retransmit, RFC 5681 §3.2),
//!   else the retransmission timeout (RFC 6298). Packets behind it wait.
//!
//! Deliberately absent: congestion control. On a long fast path a real sender needs round trips to
//! reach the rate; here it has it at once. For links slower than a few Mbit/s that is little; for
//! others, [`Namespace`] with the kernel's own shaper is the better tool. The state is pure: the
//! caller passes the time, in microseconds since the start, and no socket is used.

mod direction;
mod namespace;

use direction::Direction;
pub use namespace::Namespace;
use weir_workload::whole;
use weir_workload::{Chance, Link};

/// The receive buffer of a client behind a link, in bytes, as it is set; the kernel doubles it for
/// its bookkeeping. Its bytes are read from the proxy and not yet "arrived": two packets, as a
/// modem with a small buffer has.
pub(crate) const RECEIVE_BUFFER_BYTES: usize = 4096;

/// The content of a packet, in bytes: Ethernet's 1500 less the heads of IP and TCP.
pub(crate) const PACKET_BYTES: u16 = 1460;

/// The most bytes that are read at once over a fast link, in bytes.
const QUANTUM_BYTES_MAX: usize = 65_536;

/// A fast link is read in pieces that take about so long, in microseconds: a packet at a time would
/// be a wake-up each.
const QUANTUM_US: u64 = 2000;

/// The least retransmission timeout above the round trip, in microseconds. RFC 6298 requires a
/// second; Linux has 200 ms.
pub(crate) const RETRANSMISSION_US: u64 = 200_000;

/// A read that comes late by so much loses nothing, in microseconds: what was there waited in the
/// receive buffer, and has been on the wire since that was free. For longer the buffer is no
/// substitute for a wire; a kernel's shaper has bursts of the same order.
pub(crate) const MADE_GOOD_US: u64 = 10_000;

/// Until a SYN is repeated, in microseconds (RFC 6298 §2).
pub(crate) const SYN_REPEATED_US: u64 = 1_000_000;

/// The most often that one packet is lost, so that a loss of 1 is a slow link and not an endless
/// loop.
const LOSSES_MAX: u32 = 6;

/// The link of one client.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    down: Direction,
    up: Direction,
    delay_us: u64,
    loss: f64,
    chance: Chance,
    quantum_bytes: usize,
}

/// What the link knows of one connection: until when it stalls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flow {
    stalled_until_us: u64,
}

/// When a connection is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SetUp {
    /// When the SYN reaches the proxy: then the socket connects.
    pub(crate) knock_at_us: u64,
    /// Before this its answer is not there.
    pub(crate) ready_at_us: u64,
}

impl Line {
    pub(crate) fn new(rules: &Link, chance: Chance) -> Self {
        let bytes_per_s = |bits: Option<u64>| bits.map(|bits| (bits / 8).max(1));
        let down = bytes_per_s(rules.down_bits_per_s);
        let quantum = down.map_or(QUANTUM_BYTES_MAX as u64, |rate| {
            rate.saturating_mul(QUANTUM_US) / 1_000_000
        });
        let quantum_bytes = usize::try_from(quantum).unwrap_or(QUANTUM_BYTES_MAX);
        Self {
            down: Direction::new(down),
            up: Direction::new(bytes_per_s(rules.up_bits_per_s)),
            delay_us: microseconds(rules.delay_ms),
            loss: rules.loss,
            chance,
            quantum_bytes: quantum_bytes.clamp(PACKET_BYTES.into(), QUANTUM_BYTES_MAX),
        }
    }

    /// The same link where the kernel sees to its rates ([`Namespace`]): delay and loss are left.
    pub(crate) fn without_rates(rules: &Link, chance: Chance) -> Self {
        let rules = Link {
            down_bits_per_s: None,
            up_bits_per_s: None,
            ..*rules
        };
        Self::new(&rules, chance)
    }

    /// The most bytes to read at once.
    pub(crate) fn quantum_bytes(&self) -> usize {
        self.quantum_bytes
    }

    /// A connection is begun now.
    pub(crate) fn connect(&mut self, now_us: u64) -> SetUp {
        let knock_at_us = now_us + self.delay_us + self.losses() * SYN_REPEATED_US;
        SetUp {
            knock_at_us,
            ready_at_us: knock_at_us + self.delay_us + self.losses() * SYN_REPEATED_US,
        }
    }

    /// Bytes of a request are sent now; when the last of them reaches the proxy.
    pub(crate) fn send(&mut self, now_us: u64, bytes: usize) -> u64 {
        let left_us = self.up.carry(now_us, bytes);
        let stall_us = if self.is_lost(bytes) {
            self.timeout_us()
        } else {
            0
        };
        left_us + self.delay_us + stall_us
    }

    /// When this connection may read again: now or before, or later.
    pub(crate) fn may_read_at_us(&self, flow: Flow) -> u64 {
        self.down.free_at_us().max(flow.stalled_until_us)
    }

    /// When what waited to be read, and is read now, went on the wire: as soon as that was free, up
    /// to [`MADE_GOOD_US`] ago.
    pub(crate) fn went_on_at_us(&self, flow: Flow, now_us: u64) -> u64 {
        let earliest_us = now_us.saturating_sub(MADE_GOOD_US);
        self.may_read_at_us(flow).clamp(earliest_us, now_us)
    }

    /// So many bytes were read now; when the last of them has arrived. `more_follow`: there were as
    /// many as requested.
    pub(crate) fn receive(
        &mut self,
        flow: &mut Flow,
        now_us: u64,
        bytes: usize,
        more_follow: bool,
    ) -> u64 {
        let mut arrived_us = self.down.carry(now_us.max(flow.stalled_until_us), bytes);
        if self.is_lost(bytes) {
            let round_trip_us = 2 * self.delay_us;
            arrived_us += if more_follow {
                round_trip_us
            } else {
                self.timeout_us()
            };
            flow.stalled_until_us = arrived_us;
        }
        arrived_us + self.delay_us
    }

    fn timeout_us(&self) -> u64 {
        2 * self.delay_us + RETRANSMISSION_US
    }

    /// Is any of the packets of so many bytes lost?
    fn is_lost(&mut self, bytes: usize) -> bool {
        let packets = bytes.div_ceil(PACKET_BYTES.into()) as u64;
        self.loss > 0.0 && is_any_lost(self.loss, packets, &mut self.chance)
    }

    /// How often in a row one packet is lost.
    fn losses(&mut self) -> u64 {
        let mut losses = 0;
        while losses < LOSSES_MAX && self.is_lost(1) {
            losses += 1;
        }
        u64::from(losses)
    }
}

/// Is any of so many packets lost, each with probability `loss`?
pub(crate) fn is_any_lost(loss: f64, packets: u64, chance: &mut Chance) -> bool {
    let packets = i32::try_from(packets).unwrap_or(i32::MAX);
    chance.is(1.0 - (1.0 - loss).powi(packets))
}

/// Not negative, and an hour at most.
fn microseconds(ms: f64) -> u64 {
    whole((ms.clamp(0.0, 3_600_000.0) * 1000.0).round())
}

#[cfg(test)]
mod tests;
