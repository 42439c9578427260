//! Where requests come from: the agents of a closed loop, or the schedule of an open one.

use std::iter::Peekable;

use weir_workload::{ClosedAgent, Due, PhasePlan, Schedule, Share, Stream, WorkloadRequest};

use super::timers::NEVER_US;

/// The requests of one thread. Agents are known by their place here; their number in the run is
/// beside it.
#[derive(Debug)]
pub(super) struct Source {
    kind: Kind,
    share: Share,
    phases: Vec<PhasePlan>,
}

#[derive(Debug)]
enum Kind {
    Closed(Vec<Turn>),
    Open(Box<Peekable<Schedule>>),
}

/// An agent of a closed loop, and how far it is.
#[derive(Debug)]
struct Turn {
    agent: ClosedAgent,
    /// The phase it is in, and since when.
    phase: Option<(u8, u64)>,
    is_through: bool,
}

impl Source {
    pub(super) fn new(stream: Stream, share: Share, phases: Vec<PhasePlan>) -> Self {
        let kind = match stream {
            Stream::Closed(agents) => Kind::Closed(
                agents
                    .into_iter()
                    .map(|agent| Turn {
                        agent,
                        phase: None,
                        is_through: false,
                    })
                    .collect(),
            ),
            Stream::Open(schedule) => Kind::Open(Box::new(schedule.peekable())),
        };
        Self {
            kind,
            share,
            phases,
        }
    }

    /// How many agents of a closed loop there are. Robots of an open one appear when they are due.
    pub(super) fn closed_agents(&self) -> usize {
        match &self.kind {
            Kind::Closed(turns) => turns.len(),
            Kind::Open(_) => 0,
        }
    }

    /// The number in the run of the agent in this place.
    pub(super) fn number_at(&self, place: usize) -> u32 {
        match &self.kind {
            Kind::Closed(turns) => turns[place].agent.agent(),
            // those of a share are every so many-th of the run's
            Kind::Open(_) => {
                let place = u32::try_from(place).unwrap_or(u32::MAX);
                place
                    .saturating_mul(self.share.of)
                    .saturating_add(self.share.index)
            }
        }
    }

    /// The place of a robot, by its number in the run.
    pub(super) fn place_of(&self, agent: u32) -> usize {
        (agent / self.share.of.max(1)) as usize
    }

    /// The next request of the agent in this place, if it has one. Phases that are over by the
    /// clock are skipped.
    pub(super) fn next_of(&mut self, place: usize, now_us: u64) -> Option<WorkloadRequest> {
        let Kind::Closed(turns) = &mut self.kind else {
            return None;
        };
        let turn = turns.get_mut(place)?;
        if turn.is_through {
            return None;
        }
        let next = turn.next(&self.phases, now_us);
        turn.is_through = next.is_none();
        next
    }

    /// When the next scheduled request is due; never in a closed loop, or when there is none.
    pub(super) fn next_due_us(&mut self) -> u64 {
        match &mut self.kind {
            Kind::Closed(_) => NEVER_US,
            Kind::Open(schedule) => schedule.peek().map_or(NEVER_US, |due| due.at_us),
        }
    }

    /// Takes the next scheduled request if it is due.
    pub(super) fn due(&mut self, now_us: u64) -> Option<Due> {
        match &mut self.kind {
            Kind::Closed(_) => None,
            Kind::Open(schedule) => schedule.next_if(|due| due.at_us <= now_us),
        }
    }

    /// Is there an end that the clock decides, namely that of a schedule?
    pub(super) fn is_scheduled(&self) -> bool {
        matches!(self.kind, Kind::Open(_))
    }
}

impl Turn {
    fn next(&mut self, phases: &[PhasePlan], now_us: u64) -> Option<WorkloadRequest> {
        let ask = self.agent.next()?;
        let since_us = match self.phase {
            Some((phase, since_us)) if phase == ask.phase => since_us,
            _ => {
                self.phase = Some((ask.phase, now_us));
                now_us
            }
        };
        let plan = phases.get(usize::from(ask.phase))?;
        let lasts = plan
            .lasts_us
            .is_some_and(|lasts_us| now_us >= since_us + lasts_us);
        let ends = plan
            .ends_at_us
            .is_some_and(|ends_at_us| now_us >= ends_at_us);
        if lasts || ends {
            // a phase by the clock is the last one of a closed loop: what runs until the clock says
            // so has no end of its own
            return None;
        }
        Some(ask)
    }
}
