//! The requests of a run as pure, seeded iterators.
//!
//! The stream of a run is one function of the scenario and the seed. A closed loop is a set of
//! agents that each make their next request when the last one has been answered; an open loop is
//! one schedule in order of time, whatever the answers do. Several participants share a run by
//! agents: each generates the whole schedule and keeps its own part, so participants need not
//! exchange what they have requested.

mod arrivals;
mod harmonic;
mod hits;
mod polymix;
#[cfg(test)]
mod tests;
mod web;
mod wpb;
pub(crate) mod zipf;

pub use zipf::Zipf;

use crate::phase::PhasePlan;
use crate::request::WorkloadRequest;
use crate::{Chance, Scenario, Workload};

/// Which part of the agents is meant: those with `agent % of == index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// In `0..of`.
    pub index: u32,
    /// How many participants share the run; 0 and 1 both mean that one participant makes all
    /// requests.
    pub of: u32,
}

impl Share {
    /// All of the run.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Is this agent in the share?
    #[must_use]
    pub const fn has(self, agent: u32) -> bool {
        self.of <= 1 || agent % self.of == self.index
    }
}

/// One request of an open loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Due {
    /// The scheduled start, in microseconds since the start of the run.
    pub at_us: u64,
    /// The robot's number, from 0.
    pub agent: u32,
    /// The request.
    pub request: WorkloadRequest,
}

/// The requests of one share of a run.
#[derive(Clone, Debug)]
pub enum Stream {
    /// Each agent sends a request when its last one was answered.
    Closed(Vec<ClosedAgent>),
    /// Requests are due at given times.
    Open(Schedule),
}

/// One agent of a closed loop: a client of the Wisconsin benchmark, or one connection of the
/// raw-speed scenario. It yields its requests in order.
#[derive(Clone, Debug)]
pub struct ClosedAgent(Closed);

#[derive(Clone, Debug)]
enum Closed {
    Wpb(wpb::WpbClient),
    Hits(hits::HitsConnection),
}

impl ClosedAgent {
    /// Its number among all agents of the run, from 0.
    #[must_use]
    pub fn agent(&self) -> u32 {
        match &self.0 {
            Closed::Wpb(client) => client.agent(),
            Closed::Hits(connection) => connection.agent(),
        }
    }
}

impl Iterator for ClosedAgent {
    type Item = WorkloadRequest;

    fn next(&mut self) -> Option<WorkloadRequest> {
        match &mut self.0 {
            Closed::Wpb(client) => client.next(),
            Closed::Hits(connection) => connection.next(),
        }
    }
}

/// The requests of an open loop, in order of [`Due::at_us`].
#[derive(Clone, Debug)]
pub struct Schedule {
    share: Share,
    whole: Open,
}

#[derive(Clone, Debug)]
enum Open {
    // both hold their laws and counters; a run has one of them
    PolyMix(Box<polymix::Robots>),
    Web(Box<web::WebAgents>),
}

impl Iterator for Schedule {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        loop {
            let due = match &mut self.whole {
                Open::PolyMix(robots) => robots.next(),
                Open::Web(agents) => agents.next(),
            }?;
            if self.share.has(due.agent) {
                return Some(due);
            }
        }
    }
}

impl Scenario {
    /// The phases of a run, in order.
    ///
    /// For PolyMix this takes as long as generating the requests up to the end of the fill, which
    /// the seed decides: seconds at full scale.
    #[must_use]
    pub fn phases(&self, seed: u64) -> Vec<PhasePlan> {
        match &self.workload {
            Workload::Wpb(_) => wpb::phases(),
            Workload::Hits(hits) => hits::phases(hits),
            Workload::PolyMix(polymix) => polymix::Robots::new(self, polymix, seed).phases(),
            Workload::Web(web) => web::phases(web),
        }
    }

    /// The requests that this share of a run makes.
    #[must_use]
    pub fn stream(&self, seed: u64, share: Share) -> Stream {
        match &self.workload {
            Workload::Wpb(wpb) => closed(share, wpb::clients(wpb, seed).map(Closed::Wpb)),
            Workload::Hits(hits) => closed(share, hits::connections(hits, seed).map(Closed::Hits)),
            Workload::PolyMix(polymix) => {
                let robots = polymix::Robots::new(self, polymix, seed);
                open(share, Open::PolyMix(Box::new(robots)))
            }
            Workload::Web(web) => {
                let agents = web::WebAgents::new(self, web, seed);
                open(share, Open::Web(Box::new(agents)))
            }
        }
    }
}

fn closed(share: Share, agents: impl Iterator<Item = Closed>) -> Stream {
    let agents = agents.map(ClosedAgent);
    Stream::Closed(agents.filter(|agent| share.has(agent.agent())).collect())
}

fn open(share: Share, whole: Open) -> Stream {
    Stream::Open(Schedule { share, whole })
}

/// The stream of chance of a generator's agent: apart from those that sizes and other properties of
/// targets are drawn from.
fn stream_of(agent: u32) -> u64 {
    STREAM_FIRST | u64::from(agent)
}

/// Above every number that another room may have counted to.
const STREAM_FIRST: u64 = 1 << 63;

/// Where a client hangs up: uniform in [0, 1), also after it has lost digits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a share of a length needs no more than 24 bits"
)]
fn abort_point(chance: &mut Chance) -> f32 {
    (chance.unit() as f32).min(1.0 - f32::EPSILON)
}
