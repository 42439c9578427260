//! Whether the generator kept up. A run that it did not keep up with says more about it than about
//! the proxy.

use super::LinkTime;
use serde::{Deserialize, Serialize};
use weir_measure::{merge_fields, share};

/// A request that is sent so much later than it should be, in microseconds, is late.
pub const LATE_US: u64 = 10_000;

/// The most requests that may be late, as a share.
pub const LATE_SHARE_MAX: f64 = 0.01;

/// All links together may be slower than their nominal rate by this share: the difference between
/// two equal runs of the Wisconsin benchmark (Almeida and Cao 1998, table 1: 0.6 and 2 % without
/// caching). Less is within chance.
pub const LINK_SLOWER_SHARE_MAX: f64 = 0.02;

/// No single link may be slower by more than this share, whatever the others do: its client would
/// be another one than it is called.
pub const LINK_SLOWEST_SHARE_MAX: f64 = 0.10;

/// A link is judged by itself once it has held things up for so long, in microseconds: before that
/// one late turn would be its judgement.
pub const LINK_JUDGED_US: u64 = 1_000_000;

/// How the generator itself did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Health {
    /// Requests with a scheduled start (open loop).
    pub scheduled: u64,
    /// Of those, the ones the generator came to more than [`LATE_US`] too late. Waiting for a
    /// connection of the agent is not lateness: that is the proxy's.
    pub late: u64,
    /// The latest of them, in microseconds.
    pub late_max_us: u64,
    /// The pauses of all clients' links, and how much longer they took.
    pub links: LinkTime,
    /// The largest share by which one link was slower than it is called, of those that were used
    /// for [`LINK_JUDGED_US`].
    pub link_slowest_share: f64,
    /// The most requests that waited in the queue of one agent.
    pub queue_max: u32,
    /// Requests that found their agent's queue at its limit.
    pub queue_full: u64,
    /// Requests for which this machine had no descriptor, port or memory.
    pub out_of_sockets: u64,
    /// CPU time of all threads, in seconds.
    pub cpu_s: f64,
    /// The most connections that were open at once; of several threads, the sum.
    pub connections_max: u64,
    /// Samples that were not kept.
    pub samples_dropped: u64,
    /// Wrong responses that are counted and not kept.
    pub wrong_responses_dropped: u64,
}

impl Health {
    /// Late starts as a share of the scheduled ones; zero in a closed loop.
    #[must_use]
    pub fn late_share(&self) -> f64 {
        share(self.late, self.scheduled)
    }

    /// Why the run is not valid because of the generator; empty if it kept up. Each is a whole
    /// sentence.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.late_share() > LATE_SHARE_MAX {
            reasons.push(format!(
                "The generator was overloaded: {} of {} requests started more than {} ms late (the latest {} ms); at most {} % may. Use more \
                 threads or machines, or a lower rate.",
                self.late,
                self.scheduled,
                LATE_US / 1000,
                self.late_max_us / 1000,
                100.0 * LATE_SHARE_MAX
            ));
        }
        self.link_reasons(&mut reasons);
        if self.queue_full > 0 {
            reasons.push(format!(
                "The queue of an agent was full {} times: those requests were never sent, so the load was not the one that is named. Lower \
                 the rate, or raise clients.queue_max or clients.connections_max.",
                self.queue_full
            ));
        }
        if self.out_of_sockets > 0 {
            reasons.push(format!(
                "The generator had no socket for {} requests: raise the limit of open files (`ulimit -n`) or the range of ports \
                 (net.ipv4.ip_local_port_range), or use more machines.",
                self.out_of_sockets
            ));
        }
        reasons
    }

    fn link_reasons(&self, reasons: &mut Vec<String>) {
        let LinkTime {
            turns,
            planned_us,
            late_us,
        } = self.links;
        if self.links.late_share() > LINK_SLOWER_SHARE_MAX {
            reasons.push(format!(
                "The generator was overloaded: the clients' links were {:.1} % slower than their nominal rate; at most {} % may be ({turns} pauses \
                 of {:.1} s together took {:.1} s longer). Use more threads or machines.",
                100.0 * self.links.late_share(),
                100.0 * LINK_SLOWER_SHARE_MAX,
                planned_us as f64 / 1e6,
                late_us as f64 / 1e6,
            ));
        } else if self.link_slowest_share > LINK_SLOWEST_SHARE_MAX {
            reasons.push(format!(
                "The generator was overloaded: one client's link was {:.1} % slower than it is called; at most {} % may be. Use more threads \
                 or machines.",
                100.0 * self.link_slowest_share,
                100.0 * LINK_SLOWEST_SHARE_MAX,
            ));
        }
    }

    /// A client's link is not used any more.
    pub(crate) fn link_used(&mut self, time: &LinkTime) {
        self.links.merge(time);
        if time.planned_us >= LINK_JUDGED_US {
            self.link_slowest_share = self.link_slowest_share.max(time.late_share());
        }
    }
}

merge_fields! {
    Health {
        sum {
            scheduled, late, links, queue_full, out_of_sockets, cpu_s,
            connections_max, samples_dropped, wrong_responses_dropped,
        }
        max { late_max_us, link_slowest_share, queue_max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(health: &Health, expected: &[&str]) {
        let reasons = health.reasons();
        assert_eq!(reasons.len(), expected.len(), "{reasons:?}");
        for (reason, part) in reasons.iter().zip(expected) {
            assert!(reason.contains(part), "{reason} without {part}");
        }
    }

    #[test]
    fn generator_beyond_a_health_limit_states_the_reason() {
        let at_the_limits = Health {
            scheduled: 10_000,
            late: 100,
            links: LinkTime {
                turns: 1000,
                planned_us: 100_000,
                late_us: 2000,
            },
            link_slowest_share: 0.1,
            ..Health::default()
        };
        check(&at_the_limits, &[]);
        let late = Health {
            late: 101,
            late_max_us: 20_000,
            ..at_the_limits.clone()
        };
        check(&late, &["101 of 10000"]);
        let mut slow_links = at_the_limits.clone();
        slow_links.links.late_us = 2001;
        check(&slow_links, &["2.0 % slower"]);
        let slow_link = Health {
            link_slowest_share: 0.11,
            ..at_the_limits.clone()
        };
        check(&slow_link, &["one client's link was 11.0 % slower"]);
        let full = Health {
            queue_full: 1,
            ..at_the_limits.clone()
        };
        check(&full, &["full 1 times"]);
        let without = Health {
            out_of_sockets: 3,
            ..at_the_limits
        };
        check(&without, &["no socket for 3 requests"]);
    }

    #[test]
    fn slowest_link_is_chosen_among_links_used_long_enough() {
        let time = |planned_us| LinkTime {
            turns: 1,
            planned_us,
            late_us: planned_us / 2,
        };
        let mut health = Health::default();
        health.link_used(&time(LINK_JUDGED_US - 2));
        assert!(health.link_slowest_share.abs() < 1e-9);
        health.link_used(&time(LINK_JUDGED_US));
        assert!((health.link_slowest_share - 0.5).abs() < 1e-9);
        // two machines: the worst of both, and the sum
        let mut other = Health::default();
        other.merge(&health);
        other.merge(&Health::default());
        assert!((other.link_slowest_share - 0.5).abs() < 1e-9);
        assert_eq!(other.links.turns, 2);
    }
}
