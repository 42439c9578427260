//! The web of the 2020s as an open loop: independent references with Zipf-like popularity, and many
//! targets that are requested once.
//!
//! Traces of content delivery networks have both a head of popular targets and a large share of
//! targets that are requested only once; no Zipf law over a fixed set gives the second. So a
//! request goes, with a given share, to a target that was never requested and never will be again,
//! and else to a rank of a Zipf-like law over a fixed number of targets. Numbers from 0 are the
//! ranks in order of popularity; those requested once follow.

use super::Due;
use super::arrivals::Ramp;
use super::zipf::Zipf;
use crate::chance::mix;
use crate::number::microseconds;
use crate::phase::PhasePlan;
use crate::request::{Method, RequestType, WorkloadRequest};
use crate::{Chance, Scenario, Target, Web};

/// All agents of a run as one process in order of time. Of what was requested it remembers a bit a
/// target.
#[derive(Clone, Debug)]
pub(super) struct WebAgents {
    chance: Chance,
    popularity: Zipf,
    salt: u64,
    aborted_share: f64,
    web: Web,
    /// Both phases, one after the other.
    phases: [Ramp; 2],
    phase: usize,
    phase_began_us: u64,
    since_s: f64,
    /// How many targets were requested that will not be again.
    once: u64,
    /// Which of the others were requested: a bit each, as far as the largest number.
    asked: Vec<u64>,
}

impl WebAgents {
    pub(super) fn new(scenario: &Scenario, web: &Web, seed: u64) -> Self {
        Self {
            chance: Chance::new(seed, super::stream_of(0)),
            popularity: Zipf::new(web.targets, web.zipf_exponent),
            salt: mix(seed),
            aborted_share: scenario.clients.aborted_share,
            web: web.clone(),
            phases: [web.warm_up_s, web.measured_s].map(|seconds| Ramp {
                begin: web.rate_per_s,
                end: web.rate_per_s,
                seconds: Some(seconds),
            }),
            phase: 0,
            phase_began_us: 0,
            since_s: 0.0,
            once: 0,
            asked: Vec::new(),
        }
    }

    /// A rank, or a number that comes only once. The server is drawn by the number, otherwise by
    /// each seed.
    fn target(&mut self) -> Target {
        let number = if self.chance.is(self.web.one_hit_share) {
            self.once += 1;
            self.web.targets + self.once - 1
        } else {
            self.popularity.draw(&mut self.chance) - 1
        };
        Target::spread(number, self.salt, self.web.servers)
    }

    /// Notes that this target is requested; says whether it was before.
    fn note(&mut self, target: Target) -> bool {
        if target.number >= self.web.targets {
            return false;
        }
        let place = usize::try_from(target.number / 64).unwrap_or(usize::MAX);
        if place >= self.asked.len() {
            self.asked.resize(place + 1, 0);
        }
        let bit = 1 << (target.number % 64);
        let is_repeat = self.asked[place] & bit != 0;
        self.asked[place] |= bit;
        is_repeat
    }

    fn request(&mut self) -> WorkloadRequest {
        let target = self.target();
        let mark = self.chance.unit();
        let (if_modified, reload) = (self.web.if_modified_share, self.web.reload_share);
        let (kind, method) = if mark < if_modified {
            (RequestType::IfModifiedSince { newer: true }, Method::Get)
        } else if mark < if_modified + reload {
            (RequestType::Reload, Method::Get)
        } else if mark < if_modified + reload + self.web.head_share {
            (RequestType::Plain, Method::Head)
        } else {
            (RequestType::Plain, Method::Get)
        };
        let hangs_up = self.aborted_share > 0.0 && self.chance.is(self.aborted_share);
        WorkloadRequest {
            kind,
            method,
            abort_at: hangs_up.then(|| super::abort_point(&mut self.chance)),
            cookie: self.chance.is(self.web.cookie_share),
            is_repeat: self.note(target),
            ..WorkloadRequest::plain(u8::from(self.phase > 0), target)
        }
    }
}

/// The plan of such a run.
pub(super) fn phases(web: &Web) -> Vec<PhasePlan> {
    let warm_up_us = microseconds(web.warm_up_s);
    let plan = |name: &str, is_measured, ends_at_us| PhasePlan {
        name: name.to_owned(),
        is_measured,
        ends_at_us: Some(ends_at_us),
        lasts_us: None,
    };
    vec![
        plan("warm-up", false, warm_up_us),
        plan("measured", true, warm_up_us + microseconds(web.measured_s)),
    ]
}

impl Iterator for WebAgents {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        loop {
            let phase = self.phases.get(self.phase)?;
            let Some(since_s) = phase.next(self.since_s, &mut self.chance) else {
                self.phase_began_us += microseconds(phase.seconds.unwrap_or(0.0));
                self.since_s = 0.0;
                self.phase += 1;
                continue;
            };
            self.since_s = since_s;
            let agent = self.chance.below(u64::from(self.web.agents));
            return Some(Due {
                at_us: self.phase_began_us + microseconds(since_s),
                agent: u32::try_from(agent).unwrap_or(0),
                request: self.request(),
            });
        }
    }
}
