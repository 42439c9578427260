//! PolyMix-3 and PolyMix-4: an open loop of robots over a working set that is filled, frozen, and
//! then slides.
//!
//! After the workload files and the engine of Web Polygraph 4.9.0. What a robot does at an arrival
//! of its Poisson process:
//!
//! * if it owes an arrival, because a page that it requested had embedded targets (which are
//!   requested as well), nothing: the offered rate counts embedded requests too;
//! * else it draws the kind of content, the world (public or its own), whether to repeat an id of
//!   that world's working set or to produce the next one, whether the request is special
//!   (conditional, a reload, another method than GET), and whether it hangs up midway.
//!
//! Polygraph's client processes report to each other which ids exist. Here every participant
//! generates the whole schedule and keeps its own robots, so that all know the same ids, and
//! replays are alike however the robots are spread. What is kept is 32 bytes a world and a byte a
//! robot.

mod fill;
mod request_mix;
mod schedule;
#[cfg(test)]
mod tests;
mod world;
mod worlds;

use std::sync::Arc;

use fill::Fill;
use request_mix::RequestMix;
use schedule::SchedulePhase;
use worlds::{Pick, Worlds};

use super::Due;
use super::arrivals::Ramp;
use crate::chance::mix;
use crate::number::{microseconds, whole};
use crate::phase::PhasePlan;
use crate::request::WorkloadRequest;
use crate::{Chance, PolyMix, RampBy, Scenario, Site, Target};

/// All robots of a run as one process in order of time.
#[derive(Clone, Debug)]
pub(super) struct Robots {
    site: Arc<Site>,
    salt: u64,
    chance: Chance,
    request_mix: RequestMix,
    ramp_by: RampBy,
    peak_rate_per_s: f64,
    phases: Vec<SchedulePhase>,
    /// The number of the phase after the last whose end depends on what was requested.
    open_phases_end: usize,
    /// Where in the schedule the process is: the phase, when that began, and how far it is into it.
    phase: usize,
    phase_began_us: u64,
    since_s: f64,
    /// When the phases so far have ended.
    ended_us: Vec<u64>,
    /// For each robot how many arrivals it has to skip: at most as many as a page has embedded
    /// targets.
    owed: Vec<u8>,
    worlds: Worlds,
    fill: Fill,
}

impl Robots {
    pub(super) fn new(scenario: &Scenario, polymix: &PolyMix, seed: u64) -> Self {
        let site = Site::new(scenario, seed);
        let robots = polymix.robots();
        let phases = schedule::phases(polymix);
        let open = phases.iter().rposition(|phase| phase.seconds.is_none());
        Self {
            site: Arc::new(site),
            salt: mix(seed),
            chance: Chance::new(seed, super::stream_of(0)),
            request_mix: RequestMix::new(scenario, polymix),
            ramp_by: polymix.ramp_by,
            peak_rate_per_s: polymix.peak_rate_per_s,
            phases,
            open_phases_end: open.map_or(0, |open| open + 1),
            phase: 0,
            phase_began_us: 0,
            since_s: 0.0,
            ended_us: Vec::new(),
            owed: vec![0; robots as usize],
            worlds: Worlds::new(robots, polymix),
            fill: Fill::of(polymix),
        }
    }

    /// The schedule's phases. Generates the stream as far as the last phase whose end depends on
    /// what was requested in it.
    pub(super) fn phases(mut self) -> Vec<PhasePlan> {
        while self.phase < self.open_phases_end && self.next().is_some() {}
        while self.phase < self.phases.len() {
            self.end_phase();
        }
        let ends = self.ended_us.iter();
        let phases = self.phases.iter().zip(ends);
        phases
            .map(|(phase, ends_at_us)| phase.plan(*ends_at_us))
            .collect()
    }

    fn end_phase(&mut self) {
        let seconds = self.phases.get(self.phase).and_then(|phase| phase.seconds);
        self.phase_began_us += microseconds(seconds.unwrap_or(self.since_s));
        self.ended_us.push(self.phase_began_us);
        self.since_s = 0.0;
        self.phase += 1;
        self.fill.begin_phase();
    }

    /// Is this a phase without a set length that has reached its goal, or waits for it in vain?
    fn is_phase_filled(&self, phase: &SchedulePhase) -> bool {
        phase.seconds.is_none() && (self.fill.is_done() || self.since_s > FILL_S_MAX)
    }

    /// The robot of the present arrival.
    ///
    /// PolyMix-3 changes the rate of every robot; PolyMix-4 changes how many robots are active,
    /// here with the last of them at a part of its rate, so that the sum follows the line.
    fn robot(&mut self, load: Ramp) -> usize {
        let robots = self.owed.len() as f64;
        let active = match self.ramp_by {
            RampBy::Rate => robots,
            RampBy::Robots => robots * load.at(self.since_s),
        };
        as_place(self.chance.unit() * active, self.owed.len())
    }

    /// The next target of a robot, and whether it is new.
    fn target(&mut self, robot: u32, recurrence: f64) -> (Target, bool) {
        let kind = self.request_mix.kind(&mut self.chance);
        let pick = self.worlds.pick(kind, robot, recurrence, &mut self.chance);
        let prefers_small = !pick.is_new && self.request_mix.prefers_small(&mut self.chance);
        let chosen = self.named(kind, pick.owner, pick.index);
        let target = if prefers_small && self.site.is_storable(chosen) {
            self.smallest_near(kind, pick)
        } else {
            chosen
        };
        (target, pick.is_new)
    }

    /// The smallest storable response among the ids around the chosen one: requests are for small
    /// content more often than content is small.
    fn smallest_near(&self, kind: u8, pick: Pick) -> Target {
        let reach = self.request_mix.small_reach();
        let first = pick.index.saturating_sub(reach).max(pick.first);
        let end = (pick.index + reach + 1).min(pick.end);
        (first..end)
            .map(|index| self.named(kind, pick.owner, index))
            .filter(|target| self.site.is_storable(*target))
            .min_by_key(|target| self.site.length(*target))
            .unwrap_or_else(|| self.named(kind, pick.owner, pick.index))
    }

    /// The target with this id. Its server is drawn by its number, uniformly, and otherwise by each
    /// seed.
    fn named(&self, kind: u8, owner: Option<u32>, index: u64) -> Target {
        let number = crate::number(kind, owner, index);
        Target::spread(number, self.salt, self.site.servers())
    }

    /// What follows a request whose content is read whole. A page brings its embedded targets, and
    /// the robot skips as many arrivals. New targets, and those that they embed, fill a cache.
    fn follow(&mut self, request: &mut WorkloadRequest, robot: usize, is_new: bool) {
        if !request_mix::is_content_read(request) {
            return;
        }
        let embedded = self.site.embedded(request.target);
        let count = embedded.len();
        request.with_embedded = count > 0;
        self.owed[robot] = u8::try_from(count).unwrap_or(u8::MAX);
        if is_new && self.is_filling() {
            for target in std::iter::once(request.target).chain(embedded) {
                if self.site.is_storable(target) {
                    self.fill.add(self.site.length(target));
                }
            }
            if self.fill.is_working_set_whole() {
                self.worlds.freeze(&mut self.chance);
            }
        }
    }

    /// Does anything depend on how much has been filled? Not after the last phase that waits for
    /// it, once the working set is frozen.
    fn is_filling(&self) -> bool {
        self.phase < self.open_phases_end || !self.fill.is_working_set_whole()
    }
}

impl Iterator for Robots {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        loop {
            let phase = self.phases.get(self.phase)?;
            let arrivals = phase.arrivals(self.peak_rate_per_s);
            let next = arrivals.next(self.since_s, &mut self.chance);
            let (Some(since_s), false) = (next, self.is_phase_filled(phase)) else {
                self.end_phase();
                continue;
            };
            let (load, recurrence, special) = (phase.load(), phase.recurrence(), phase.special());
            self.since_s = since_s;
            let robot = self.robot(load);
            if self.owed[robot] > 0 {
                self.owed[robot] -= 1;
                continue;
            }
            let agent = u32::try_from(robot).unwrap_or(u32::MAX);
            let (target, is_new) = self.target(agent, recurrence.at(since_s));
            let phase = u8::try_from(self.phase).unwrap_or(u8::MAX);
            let special = special.at(since_s);
            let mut request = self
                .request_mix
                .request(phase, target, special, &mut self.chance);
            request.is_repeat = !is_new;
            self.follow(&mut request, robot, is_new);
            return Some(Due {
                at_us: self.phase_began_us + microseconds(since_s),
                agent,
                request,
            });
        }
    }
}

/// A fill phase that has not reached its goal by then, in seconds, ends all the same: sixty days,
/// where the longest fills on record took hours. Only a scenario that fills nothing gets there.
const FILL_S_MAX: f64 = 60.0 * 86_400.0;

/// A place among `count`, from a number that may have been rounded up to it.
fn as_place(place: f64, count: usize) -> usize {
    whole::<usize>(place).min(count - 1)
}
