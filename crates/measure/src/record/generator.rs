//! How well the generator kept its own time.

use crate::ratio;
use serde::{Deserialize, Serialize};

/// The health of the clients and of the origin of a run, the worst of all participants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// Requests that were sent more than 10 ms after they were due, as a share of all: 0..1; 0 in a
    /// closed loop.
    pub late_share: f64,
    /// The latest, microseconds after it was due.
    pub late_max_us: u64,
    /// The share of the seconds in which a thread of the generator was busy for more than 95 % of a
    /// core: 0..1.
    pub busy_seconds_share: f64,
    /// The busiest thread's CPU time over the whole run, as a share of one core.
    pub cpu_share: f64,
    /// The time that the thread which waited most spent waiting for a processor, as a share of the
    /// run: 0..1.
    #[serde(default)]
    pub cpu_wait_share: f64,
    /// How long all clients' links were to hold things up, in microseconds, summed over their
    /// pauses; 0 without links.
    #[serde(default)]
    pub links_planned_us: u64,
    /// How much longer they did so because the generator came late, in microseconds.
    #[serde(default)]
    pub links_late_us: u64,
    /// By how much the slowest link was slower than it is called, of those that held things up for
    /// a second or more: a share.
    #[serde(default)]
    pub link_slowest_share: f64,
    /// The longest queue of requests of one agent that were due and not sent.
    pub queue_max: u64,
    /// Requests that were dropped because an agent's queue was at its limit.
    pub dropped: u64,
    /// The whole generator's peak memory, bytes, summed over participants.
    pub memory_peak_bytes: u64,
}

impl Generator {
    /// By how much all clients' links together were slower than their nominal rate: a share; `None`
    /// without links.
    #[must_use]
    pub fn links_slower_share(&self) -> Option<f64> {
        ratio(self.links_late_us, self.links_planned_us)
    }
}
