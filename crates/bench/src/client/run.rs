//! The loop of one thread of clients.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mio::{Events, Poll, Token};
use weir_workload::Site;

use super::clock::Clock;
use super::engine::Engine;
use super::source::Source;
use super::statistics::Statistics;
use super::timer_fd::TimerFd;
use super::timers::NEVER_US;
use super::{ClientPlan, ClientResult, Form};
use crate::descriptors;
use crate::failure::Failure;
use crate::tally::SecondTally;
use weir_workload::microseconds;

/// Readiness that is taken from the kernel at once.
const EVENTS_MAX: usize = 1024;

/// The alarm's token: no connection has so high a number.
const ALARM: Token = Token(usize::MAX - 1);

/// How often it is looked whether to stop while the start is awaited.
const PATIENCE: Duration = Duration::from_millis(100);

const SECOND_US: u64 = 1_000_000;

/// Tasks between two looks at the sockets.
const TASKS_A_ROUND: usize = 256;

/// Runs one thread of clients to its end, or until `stop`. Blocks its thread, which stays in the
/// plan's namespace, if there is one. `on_second` is called once a second, between its work: it has
/// to be quick.
///
/// # Errors
/// The plan's addresses do not fit its scenario, or the system gives no poll or timer. What goes
/// wrong with single requests is in the result.
pub fn run(
    plan: &ClientPlan,
    mut on_second: impl FnMut(&SecondTally),
    stop: &AtomicBool,
) -> Result<ClientResult, Failure> {
    if let Some(namespace) = &plan.namespace {
        let entered = namespace.enter();
        entered.map_err(|error| Failure::outside("cannot enter the clients' namespace", error))?;
    }
    let site = Site::new(&plan.scenario, plan.seed);
    check_addresses(plan, &site)?;
    raise_descriptors(plan)?;
    let phases = plan.scenario.phases(plan.seed);
    let stream = plan.scenario.stream(plan.seed, plan.share);
    let statistics = Statistics::new(&phases, plan.sample_every, plan.limits);
    let source = Source::new(stream, plan.share, phases);
    let clock = Clock::new(plan.start_at);
    let poll = Poll::new().map_err(outside)?;
    let timer_fd = TimerFd::new(poll.registry(), ALARM).map_err(outside)?;
    let engine = Engine::new(plan, &site, clock, poll, source, statistics);
    let mut round = Round {
        engine,
        timer_fd,
        next_second_us: SECOND_US,
        drain_until_us: NEVER_US,
    };
    while !stop.load(Ordering::Relaxed) {
        match clock.until_start() {
            Some(left) => std::thread::park_timeout(left.min(PATIENCE)),
            None => break,
        }
    }
    round.engine.begin();
    let mut events = Events::with_capacity(EVENTS_MAX);
    while !stop.load(Ordering::Relaxed) && round.goes_on(plan, &mut on_second) {
        round.wait(&mut events).map_err(outside)?;
    }
    round.engine.end();
    Ok(round.engine.statistics.close())
}

struct Round<'r> {
    engine: Engine<'r>,
    timer_fd: TimerFd,
    next_second_us: u64,
    /// When outstanding requests are waited for no longer.
    drain_until_us: u64,
}

impl Round<'_> {
    /// Does what the clock says; false when the run is over.
    fn goes_on(&mut self, plan: &ClientPlan, on_second: &mut impl FnMut(&SecondTally)) -> bool {
        let engine = &mut self.engine;
        let now_us = engine.clock.now_us();
        engine.set_wall(now_us);
        engine.start_due(now_us);
        engine.wake_due(now_us);
        engine.work(TASKS_A_ROUND);
        while now_us >= self.next_second_us {
            on_second(engine.statistics.turn_second());
            self.next_second_us += SECOND_US;
        }
        let is_scheduled = engine.source.is_scheduled();
        if engine.has_tasks() || engine.source.next_due_us() != NEVER_US {
            return true;
        }
        if is_scheduled && self.drain_until_us == NEVER_US {
            self.drain_until_us = now_us.saturating_add(drain_us(plan));
        }
        engine.outstanding > 0 && now_us < self.drain_until_us
    }

    /// Waits for sockets and clock, and passes events to the connections.
    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        let engine = &mut self.engine;
        let next_us = engine
            .source
            .next_due_us()
            .min(engine.timers.next_us())
            .min(self.next_second_us)
            .min(self.drain_until_us);
        let timeout = if engine.has_tasks() {
            Some(Duration::ZERO)
        } else {
            let now_us = engine.clock.now_us();
            self.timer_fd.set(next_us, now_us)?;
            None
        };
        match engine.poll.poll(events, timeout) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        }
        for event in &*events {
            if event.token() == ALARM {
                self.timer_fd.fired();
            } else {
                engine.ready(event.token().0, event);
                engine.work(TASKS_A_ROUND);
            }
        }
        Ok(())
    }
}

fn drain_us(plan: &ClientPlan) -> u64 {
    microseconds(plan.limits.drain_s)
}

/// Descriptors beside those of agents: the poll, the timer, and what the rest of the process has.
const OTHER_DESCRIPTORS: u64 = 256;

/// Asks for as many descriptors as all agents of the run could need, since other threads of this
/// process may have the rest of them; is content with one connection an agent.
fn raise_descriptors(plan: &ClientPlan) -> Result<(), Failure> {
    let agents = u64::from(plan.scenario.agents());
    let most = agents.saturating_mul(u64::from(plan.scenario.clients.connections_max.max(1)));
    if descriptors::raise(most.saturating_add(OTHER_DESCRIPTORS)).is_ok() {
        return Ok(());
    }
    let least = agents / u64::from(plan.share.of.max(1));
    descriptors::raise(least + OTHER_DESCRIPTORS)
        .map(|_| ())
        .map_err(|error| Failure::outside("cannot run clients", error))
}

fn outside(error: io::Error) -> Failure {
    Failure::outside("cannot run clients", error)
        .with_hint("raise the limit of open files (`ulimit -n`)")
}

/// Is there an address for every server?
fn check_addresses(plan: &ClientPlan, site: &Site) -> Result<(), Failure> {
    let (Form::Forward { servers } | Form::Direct { servers }) = &plan.form else {
        return Ok(());
    };
    let wanted = usize::try_from(site.servers()).unwrap_or(usize::MAX);
    if servers.len() >= wanted {
        return Ok(());
    }
    let cause = format!(
        "the scenario has {wanted} servers, and {} addresses are given",
        servers.len()
    );
    Err(
        Failure::usage("cannot ask for everything of the scenario", cause)
            .with_hint("start the origin with the same scenario, scale and settings"),
    )
}
