//! How far a fetch may run ahead of its fastest reader, and where those bytes may lie.
//!
//! PROXIM (INFOCOM 1999) found that a proxy that reads as fast as it can, and not as fast as its
//! client can, fetches more than the cache saves: bytes read ahead of a client that disconnects are
//! lost. It bounds the read-ahead at 64 KiB. A proxy that only bounds its own buffer does not bound
//! the read-ahead: megabytes lie in the kernel's two buffers. So the read-ahead is divided into
//! four shares, and each place is given its own:
//!
//! | share | where | grows by |
//! | --- | --- | --- |
//! | [`Pace::window`] | receive window towards the next hop | rate x round trip to the next hop |
//! | [`Pace::ahead`] | held here, not yet given to the fastest reader's kernel | rate x a turn |
//! | [`Pace::unsent`] | in the client's socket, not yet sent | rate x a turn |
//! | one write | added to `unsent` by the last write | - |
//!
//! What is sent and not acknowledged is one round trip at the reader's rate by definition. Each
//! share is a quarter of the read-ahead for a slow reader and grows with what is measured, so that
//! a fast reader on a long path is not slowed: the window must hold what the reader takes in one
//! round trip of the next hop. While the reader is *starving* (it has taken all there was) it is
//! not known how fast it can be: then the window grows by twice its rate, which doubles the rate
//! each round trip, as slow start does, until something else is what slows it. What is measured is
//! a round trip old, so as long as the rate still rises the window grows by that once more. The
//! true read-ahead is small then.

use crate::now::{Now, Tick};

/// How far a fetch may run ahead of its fastest reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAhead {
    /// So many bytes, beside one round trip at the reader's measured rate.
    Bytes(u64),
    /// As far as memory allows; buffers are left to the kernel.
    Unbounded,
}

impl ReadAhead {
    /// 64 KiB, as PROXIM has it.
    pub const DEFAULT: Self = Self::Bytes(64 * 1024);

    /// The read-ahead in bytes; [`u64::MAX`] if it is unbounded.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Unbounded => u64::MAX,
        }
    }
}

impl Default for ReadAhead {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The measured rate of a fetch's fastest reader, and the shares of the read-ahead that follow from
/// it.
#[derive(Clone, Debug)]
pub struct Pace {
    read_ahead: ReadAhead,
    client_us: u64,
    next_hop_us: u64,
    rate_bytes_s: u64,
    starving: bool,
    /// The rate rose by more than a quarter in the last interval.
    rising: bool,
    /// What the reader was given since `since`: the interval that is being measured.
    bytes: u64,
    since: Tick,
}

impl Pace {
    /// Nothing measured yet.
    #[must_use]
    pub const fn new(read_ahead: ReadAhead, now: Now) -> Self {
        Self {
            read_ahead,
            client_us: TURN_US,
            next_hop_us: TURN_US,
            rate_bytes_s: 0,
            starving: false,
            rising: true,
            bytes: 0,
            since: now.tick,
        }
    }

    /// The smoothed round trips to the client and to the next hop, in microseconds; at least a
    /// turn, at most ten seconds. To be reported again when they have changed.
    pub fn set_round_trips(&mut self, client_us: u32, next_hop_us: u32) {
        self.client_us = u64::from(client_us).clamp(TURN_US, ROUND_TRIP_MAX_US);
        self.next_hop_us = u64::from(next_hop_us).clamp(TURN_US, ROUND_TRIP_MAX_US);
    }

    /// The fastest reader's kernel took `bytes` more; `starving` if that was all there was for it.
    /// Zero bytes may be reported, too, so that the rate of a reader that has stopped falls.
    pub fn handed_over(&mut self, now: Now, bytes: u64, starving: bool) {
        self.bytes = self.bytes.saturating_add(bytes);
        if bytes > 0 {
            self.starving = starving;
        }
        let passed_ms = now.tick.ms_since(self.since);
        let interval_ms = self.interval_ms();
        if passed_ms < interval_ms {
            return;
        }
        let sample = self.bytes.saturating_mul(1000) / passed_ms;
        self.rising = sample > self.rate_bytes_s.saturating_add(self.rate_bytes_s / 4);
        self.rate_bytes_s = smoothed(self.rate_bytes_s, sample, passed_ms / interval_ms);
        self.bytes = 0;
        self.since = now.tick;
    }

    /// How many bytes may be held here that the fastest reader's kernel has not got yet.
    #[must_use]
    pub fn ahead(&self) -> u64 {
        match self.read_ahead {
            ReadAhead::Unbounded => u64::MAX,
            ReadAhead::Bytes(_) => self.share().saturating_add(self.in_us(TURN_US)),
        }
    }

    /// The receive window towards the next hop, in bytes; `None`: as the kernel likes. `remaining`
    /// is what is still to come, if that is known: towards the end the window closes to its base,
    /// so that the connection is idle with a small one.
    #[must_use]
    pub fn window(&self, remaining: Option<u64>) -> Option<u32> {
        let ReadAhead::Bytes(_) = self.read_ahead else {
            return None;
        };
        let base = self.share();
        let gain = match (self.starving, self.rising) {
            (true, true) => GAIN_RISING,
            (true, false) => GAIN_STARVING,
            (false, _) => 1,
        };
        let grown = base.saturating_add(self.in_us(self.next_hop_us).saturating_mul(gain));
        let useful = base.max(remaining.unwrap_or(u64::MAX));
        Some(at_most(grown.min(useful), WINDOW_MAX_BYTES))
    }

    /// The bytes that may lie unsent in the client's socket (`TCP_NOTSENT_LOWAT`), and that one
    /// write may add; `None`: as the kernel likes.
    #[must_use]
    pub fn unsent(&self) -> Option<u32> {
        match self.read_ahead {
            ReadAhead::Unbounded => None,
            ReadAhead::Bytes(_) => Some(at_most(
                self.share().saturating_add(self.in_us(TURN_US)),
                WINDOW_MAX_BYTES,
            )),
        }
    }

    /// The fastest reader's rate in bytes a second; 0 until one interval is over.
    #[must_use]
    pub const fn rate_bytes_s(&self) -> u64 {
        self.rate_bytes_s
    }

    /// A share of the read-ahead.
    fn share(&self) -> u64 {
        (self.read_ahead.bytes() / SHARES).max(SHARE_MIN_BYTES)
    }

    /// What the reader takes in `us` microseconds.
    const fn in_us(&self, us: u64) -> u64 {
        self.rate_bytes_s.saturating_mul(us) / 1_000_000
    }

    /// Bytes come in the rhythm of acknowledgements on either side: over less than a round trip
    /// that rhythm would be measured, not the rate.
    fn interval_ms(&self) -> u64 {
        let round_trip_us = self.client_us.max(self.next_hop_us);
        round_trip_us.div_ceil(1000).max(INTERVAL_MIN_MS)
    }
}

/// Up at once, since a low estimate would slow the reader; down by a quarter of the difference an
/// interval.
const fn smoothed(rate: u64, sample: u64, intervals: u64) -> u64 {
    if sample >= rate || intervals >= SMOOTHING {
        return sample;
    }
    rate - (rate - sample) / SMOOTHING * intervals
}

fn at_most(bytes: u64, max: u32) -> u32 {
    u32::try_from(bytes).map_or(max, |bytes| bytes.min(max))
}

/// Window, held here, unsent, one write.
const SHARES: u64 = 4;
/// Less than a segment would make each byte an exchange of its own.
const SHARE_MIN_BYTES: u64 = 1460;
/// A worker's turn: what it may take until a fetch, or a reader, is looked at again.
const TURN_US: u64 = 1000;
/// A path may be long (a satellite has 0.6 s), but a number beyond this is a measurement gone
/// wrong.
const ROUND_TRIP_MAX_US: u64 = 10_000_000;
/// The shortest interval a rate is measured over: five ticks, so that their coarseness is a fifth
/// at most.
const INTERVAL_MIN_MS: u64 = 5;
/// An interval weighs a fourth of the rate, downwards.
const SMOOTHING: u64 = 4;
/// As slow start: twice as much each round trip.
const GAIN_STARVING: u64 = 2;
/// And a round trip for what was measured to be used.
const GAIN_RISING: u64 = 4;
/// 10 Gbit/s over 50 ms; what Linux allows a receive buffer is a tenth of that by default.
const WINDOW_MAX_BYTES: u32 = 64 * 1024 * 1024;

#[cfg(test)]
mod tests;
