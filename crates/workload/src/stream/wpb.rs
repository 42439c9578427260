//! The Wisconsin Proxy Benchmark's client: two phases, the second of which repeats by the 1/t law.
//!
//! Almeida and Cao, "Measuring Proxy Performance with the Wisconsin Proxy Benchmark", 1998. Phase 1
//! requests N new targets, each on a uniformly drawn server. Phase 2 has N requests more: with the
//! inherent hit ratio for one of the client's own earlier requests, else for a new target.
//!
//! The paper numbers a client's files 1, 2, 3, ... and says that phase 1 has no repeats and the run
//! as a whole at most half the inherent hit ratio. Both hold only if no other client's file has the
//! same address, so a file's number here counts over all clients: the `i`-th new target of client
//! `c` of `C` is number `i * C + c`.
//!
//! Two options come from what WPB 2.0 was to add: staying on the same server (spatial locality),
//! and repeats that are independent of time, with Zipf-like popularity over the client's targets
//! (Breslau, Cao et al., 1999), instead of the 1/t law.

use std::sync::Arc;

use super::harmonic::Harmonic;
use super::zipf::Zipf;
use crate::phase::PhasePlan;
use crate::request::{RequestType, WorkloadRequest};
use crate::{Chance, Target, Wpb};

/// The numbers of the phases in the plan.
pub(super) const FIRST: u8 = 0;
pub(super) const SECOND: u8 = 1;

/// One client process. It remembers its own requests: 16 bytes each, at most 2 N.
#[derive(Clone, Debug)]
pub(super) struct WpbClient {
    client: u32,
    wpb: Arc<Wpb>,
    repeats: Repeats,
    chance: Chance,
    /// Every request so far, oldest first; with Zipf-like repeats only the new ones, so that a rank
    /// is a place in it.
    history: Vec<Target>,
    issued: u32,
    produced: u64,
    /// Of the request before.
    server: u32,
}

/// The law of which earlier request is made again.
#[derive(Clone, Debug)]
enum Repeats {
    /// The request of `t` requests ago, with a chance proportional to `1/t`.
    Recent(Arc<Harmonic>),
    /// The client's `k`-th target, with a chance proportional to `1/k^exponent`.
    Popular(Zipf),
}

/// All clients of a run in order. They share the table of sums.
pub(super) fn clients(wpb: &Wpb, seed: u64) -> impl Iterator<Item = WpbClient> {
    let repeats = match wpb.popularity {
        Some(exponent) => {
            Repeats::Popular(Zipf::new(2 * u64::from(wpb.requests_per_client), exponent))
        }
        None => Repeats::Recent(Arc::new(Harmonic::up_to(
            2 * wpb.requests_per_client as usize,
        ))),
    };
    let wpb = Arc::new(wpb.clone());
    (0..wpb.clients).map(move |client| WpbClient {
        client,
        wpb: Arc::clone(&wpb),
        repeats: repeats.clone(),
        chance: Chance::new(seed, super::stream_of(client)),
        history: Vec::new(),
        issued: 0,
        produced: 0,
        server: 0,
    })
}

/// The plan of such a run.
pub(super) fn phases() -> Vec<PhasePlan> {
    ["phase 1", "phase 2"]
        .map(|name| PhasePlan {
            name: name.to_owned(),
            is_measured: true,
            ends_at_us: None,
            lasts_us: None,
        })
        .into()
}

impl WpbClient {
    pub(super) fn agent(&self) -> u32 {
        self.client
    }

    fn new_target(&mut self) -> Target {
        let stays = self.issued > 0 && self.chance.is(self.wpb.spatial_locality);
        let server = if stays {
            self.server
        } else {
            below(&mut self.chance, self.wpb.servers)
        };
        let number = self.produced * u64::from(self.wpb.clients) + u64::from(self.client);
        self.produced += 1;
        Target { server, number }
    }

    fn earlier_target(&mut self) -> Target {
        let place = match &self.repeats {
            Repeats::Recent(sums) => {
                let ago = sums.distance(self.history.len(), self.chance.unit());
                self.history.len() - ago
            }
            Repeats::Popular(ranks) => loop {
                // targets that phase 2 has yet to produce have no rank yet
                let place = usize::try_from(ranks.draw(&mut self.chance) - 1).unwrap_or(usize::MAX);
                if place < self.history.len() {
                    break place;
                }
            },
        };
        self.history[place]
    }

    fn remember(&mut self, target: Target, is_new: bool) {
        if is_new || matches!(self.repeats, Repeats::Recent(_)) {
            self.history.push(target);
        }
    }
}

impl Iterator for WpbClient {
    type Item = WorkloadRequest;

    fn next(&mut self) -> Option<WorkloadRequest> {
        let requests_each_phase = self.wpb.requests_per_client;
        let phase = match self.issued / requests_each_phase.max(1) {
            0 if requests_each_phase > 0 => FIRST,
            1 => SECOND,
            _ => return None,
        };
        let is_new = phase == FIRST || !self.chance.is(self.wpb.inherent_hit_ratio);
        let target = if is_new {
            self.new_target()
        } else {
            self.earlier_target()
        };
        self.issued += 1;
        self.server = target.server;
        self.remember(target, is_new);
        let conditional = self.wpb.if_modified_share;
        let has_copy = !is_new && conditional > 0.0 && self.chance.is(conditional);
        let kind = if has_copy {
            RequestType::IfModifiedSince { newer: true }
        } else {
            RequestType::Plain
        };
        Some(WorkloadRequest {
            kind,
            is_repeat: !is_new,
            ..WorkloadRequest::plain(phase, target)
        })
    }
}

fn below(chance: &mut Chance, end: u32) -> u32 {
    u32::try_from(chance.below(u64::from(end))).unwrap_or(0)
}
