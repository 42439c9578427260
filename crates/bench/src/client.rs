//! The clients: a thread with an event loop, and agents that send requests, check responses and
//! count.
//!
//! ```text
//! schedule, or an agent of a closed loop --Ask--> Agent --Start--> Connection --Send--> socket
//!                                                   ^                  |
//!                                                   +----- Ended ------+--head, content--> Examination --> statistics
//! ```
//!
//! An agent (`agent.rs`) has a queue and a few connections and no clock; a connection
//! (`connection.rs`) knows HTTP and no socket; an examination (`check`) knows what is right; a line
//! (`link`) knows how slow it is. The engine (`engine.rs`) carries events between them and the
//! sockets. Each thread has its own share of the agents and nothing in common with the others but
//! the stop flag.
//!
//! In an open loop a response time counts from the scheduled start, whatever held the request up
//! (coordinated omission); in a closed loop from the end of the response before.

mod agent;
mod clock;
mod connection;
mod engine;
mod request;
mod run;
mod slot;
mod socket;
mod source;
mod statistics;
mod timer_fd;
mod timers;

pub use connection::{Command, Connection, Ending, Event, Inspect};
pub use run::run;

pub use crate::link::Namespace;
use crate::tally::{Health, PhaseTally, Sample, SecondTally};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use weir_measure::record::WrongResponse;
use weir_workload::{Scenario, Share};

/// What one thread of clients is to do.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// The workload.
    pub scenario: Arc<Scenario>,
    /// The seed of everything random.
    pub seed: u64,
    /// The agents of this thread. Each thread has its own share.
    pub share: Share,
    /// The proxy, however it is spoken to; not used with [`Form::Direct`].
    pub proxy: SocketAddr,
    /// How requests are written.
    pub form: Form,
    /// When the run starts: the same instant for all.
    pub start_at: Instant,
    /// Of so many transactions one is kept as a sample; 0 for none.
    pub sample_every: u32,
    /// Where the kernel makes the clients' links, if it does.
    pub namespace: Option<Arc<Namespace>>,
    /// What may be kept in memory, and how long is waited.
    pub limits: ClientLimits,
}

/// How requests are written, and their recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// To a forward proxy, in absolute-form; the address of every server of the scenario as the
    /// proxy should reach it.
    Forward {
        /// By server number.
        servers: Vec<SocketAddr>,
    },
    /// To a gateway, in origin-form, the path after `/s<server>`.
    Gateway {
        /// The Host field.
        authority: String,
    },
    /// To the origin itself, without a proxy.
    Direct {
        /// By server number.
        servers: Vec<SocketAddr>,
    },
}

/// What may be kept in memory, and how long is waited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientLimits {
    /// The most samples that are kept. When there are so many, every second one is dropped and half
    /// as many are taken from then on.
    pub samples_max: usize,
    /// The most wrong responses that are kept whole; all are counted.
    pub wrong_responses_max: usize,
    /// The most seconds that outstanding requests are waited for after the last one was due.
    pub drain_s: f64,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            samples_max: 100_000,
            wrong_responses_max: 100,
            drain_s: 60.0,
        }
    }
}

/// The result of one thread of clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientResult {
    /// By phase, in the order of the plan.
    pub phases: Vec<PhaseTally>,
    /// By second.
    pub series: Vec<SecondTally>,
    /// Single transactions; they stay on the machine where they were taken.
    #[serde(skip)]
    pub samples: Vec<Sample>,
    /// Wrong responses, the first ones.
    pub wrong_responses: Vec<WrongResponse>,
    /// The first response that was no answer, such as one with status 403 or 502.
    pub first_refusal: Option<Refusal>,
    /// How the generator did.
    pub health: Health,
}

/// A response that was no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// When it ended, microseconds since the start.
    pub at_us: u64,
    /// Its status and its `Proxy-Status`.
    pub words: String,
}

impl ClientResult {
    /// Adds the result of another thread or machine. Samples are not put in order.
    pub fn merge(&mut self, other: Self) {
        merge_by(&mut self.phases, other.phases, PhaseTally::merge);
        merge_seconds(&mut self.series, other.series);
        self.samples.extend(other.samples);
        self.wrong_responses.extend(other.wrong_responses);
        let refusals = self.first_refusal.take().into_iter();
        self.first_refusal = refusals
            .chain(other.first_refusal)
            .min_by_key(|refusal| refusal.at_us);
        self.health.merge(&other.health);
    }
}

/// Adds the items of `theirs` to those of `mine` at the same places.
fn merge_by<T>(mine: &mut Vec<T>, theirs: Vec<T>, merge: impl Fn(&mut T, &T)) {
    for (place, item) in theirs.into_iter().enumerate() {
        match mine.get_mut(place) {
            Some(present) => merge(present, &item),
            None => mine.push(item),
        }
    }
}

/// Adds the seconds of `theirs` to those of `mine`, which are in order of time both.
fn merge_seconds(mine: &mut Vec<SecondTally>, theirs: Vec<SecondTally>) {
    for second in theirs {
        match mine.binary_search_by_key(&second.at_s, |present| present.at_s) {
            Ok(at) => mine[at].merge(&second),
            Err(at) => mine.insert(at, second),
        }
    }
}
