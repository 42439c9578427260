//! The instance of one worker: when there is one, how it is called, and when the next one starts.

mod calls;
mod objects;
mod refused;
#[cfg(test)]
mod tests;

use crate::clock::Ticking;
use crate::effects::Effects;
use crate::guest::Guest;
use crate::plugin::{Plugin, Started};
use crate::setup::Setup;
use refused::{FAILURE_PAUSE, Refused};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Instant;
use weir_extend::{Host, Pending};
use weir_wasm::{CallError, Instance, Restart};

/// The instance of one worker.
#[derive(Debug)]
pub(crate) struct Slot {
    setup: Arc<Setup>,
    state: Mutex<State>,
    /// The generation of the instance that can be called, 0 if none can: read without the lock, and
    /// checked with it.
    running: AtomicU64,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    restart: Restart,
    /// The number of the instance: streams of a former one have failed.
    generation: u64,
    /// What the instance has started and no task does: at most as much as an instance may have
    /// under way.
    refused: VecDeque<Refused>,
}

#[derive(Debug)]
enum Phase {
    /// None was started yet.
    Absent,
    /// A thread starts one; these wait for it.
    Starting(Vec<Waker>),
    /// It can be called.
    Running(Box<Running>),
    /// The last one has ended, and the next one starts then at the earliest.
    Pausing(Instant),
}

#[derive(Debug)]
struct Running {
    instance: Instance<Guest>,
    /// While it exists, the clock ticks.
    _ticking: Ticking,
    begun: Instant,
    /// A task calls it at its period.
    is_ticked: bool,
}

/// Whether there is an instance to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// The one of this generation.
    Ready(u64),
    /// It is being started.
    Starting,
    /// The last one has ended, or did not start.
    Failed,
}

/// There is no instance of that generation any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It ended in this call.
    Now,
    /// It had ended before, or the call is not possible.
    Before,
}

/// What is to be done once the lock is free.
struct Rest {
    effects: Effects,
    /// A task is to tick the instance.
    ticks: bool,
    ended: Option<Box<Running>>,
}

impl Slot {
    pub(crate) fn new(setup: &Arc<Setup>) -> Arc<Self> {
        Arc::new(Self {
            setup: Arc::clone(setup),
            state: Mutex::new(State {
                phase: Phase::Absent,
                restart: Restart::new(),
                generation: 0,
                refused: VecDeque::new(),
            }),
            running: AtomicU64::new(0),
        })
    }

    /// What filters of this slot share.
    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // no panic leaves it half changed
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has an instance started if there is none, and it is time. `waker` is woken when the start is
    /// over.
    pub(crate) fn ensure(
        self: &Arc<Self>,
        plugin: &Arc<Plugin>,
        host: &Rc<dyn Host>,
        waker: Option<&Waker>,
    ) -> Readiness {
        let running = self.running.load(Ordering::Relaxed);
        if running > 0 {
            return Readiness::Ready(running);
        }
        let mut state = self.state();
        let is_due = match &state.phase {
            Phase::Running(_) => return Readiness::Ready(state.generation),
            Phase::Starting(_) => false,
            Phase::Absent => true,
            Phase::Pausing(until) if Instant::now() < *until => return Readiness::Failed,
            Phase::Pausing(_) => true,
        };
        if is_due {
            if let Some(started) = plugin.take_spare() {
                let generation = self.run(&mut state, started);
                drop(state);
                // what it asked for when it started is done now
                let _ = self.call(host, generation, |_| Ok(()));
                return Readiness::Ready(generation);
            }
            state.phase = Phase::Starting(Vec::new());
            if !self.start(plugin) {
                state.fail(&self.setup, "there is no thread to start it");
                return Readiness::Failed;
            }
        }
        if let Phase::Starting(wakers) = &mut state.phase
            && let Some(waker) = waker
            && !wakers.iter().any(|known| known.will_wake(waker))
        {
            wakers.push(waker.clone());
        }
        Readiness::Starting
    }

    /// Starts an instance on a thread of its own. Whether there is one.
    fn start(self: &Arc<Self>, plugin: &Arc<Plugin>) -> bool {
        let (slot, plugin) = (Arc::clone(self), Arc::clone(plugin));
        let thread = std::thread::Builder::new().name("wasm-start".into());
        let spawned = thread.spawn(move || {
            let started = plugin.start();
            drop(plugin);
            let mut state = slot.state();
            let former = std::mem::replace(&mut state.phase, Phase::Absent);
            match started {
                Ok(started) => {
                    slot.run(&mut state, started);
                }
                Err(error) => state.fail(&slot.setup, &error.to_string()),
            }
            drop(state);
            if let Phase::Starting(wakers) = former {
                wakers.into_iter().for_each(Waker::wake);
            }
        });
        spawned.is_ok()
    }

    /// An instance was started: from now on it is called. Its generation.
    fn run(&self, state: &mut State, started: Started) -> u64 {
        state.run(started);
        self.running.store(state.generation, Ordering::Relaxed);
        state.generation
    }

    /// Calls the instance of this generation, and does what it asked for.
    ///
    /// # Errors
    ///
    /// There is none, or it ended in the call.
    pub(crate) fn call<R>(
        self: &Arc<Self>,
        host: &Rc<dyn Host>,
        generation: u64,
        call: impl FnOnce(&mut Instance<Guest>) -> Result<R, CallError>,
    ) -> Result<R, Ended> {
        let mut state = self.state();
        if state.generation != generation {
            return Err(Ended::Before);
        }
        let Phase::Running(running) = &mut state.phase else {
            return Err(Ended::Before);
        };
        let result = call(&mut running.instance);
        let rest = match running.has_rest() {
            true => self.rest(&mut state),
            false => None,
        };
        drop(state);
        if let Some(rest) = rest {
            self.finish(rest, host, generation);
        }
        result.map_err(|error| match error {
            CallError::Failed(_) => Ended::Now,
            _ => Ended::Before,
        })
    }

    /// What a call has left to do.
    #[cold]
    fn rest(&self, state: &mut State) -> Option<Rest> {
        let Phase::Running(running) = &mut state.phase else {
            return None;
        };
        let reason = running.instance.ended().map(ToString::to_string);
        let ticks = running.wants_ticks();
        running.is_ticked |= ticks;
        let host = running.instance.host_mut();
        if reason.is_some() {
            host.wake_all();
        }
        let mut rest = Rest {
            effects: std::mem::take(&mut host.effects),
            ticks,
            ended: None,
        };
        if let Some(reason) = reason {
            let pause = state.restart.pause_after(running.begun.elapsed());
            self.setup.counts.note_end(&reason);
            self.running.store(0, Ordering::Relaxed);
            let former =
                std::mem::replace(&mut state.phase, Phase::Pausing(Instant::now() + pause));
            if let Phase::Running(running) = former {
                rest.ended = Some(running);
            }
            let line = format!("the instance ended: {reason}");
            rest.effects
                .lines
                .push((weir_extend::LogLevel::Error, line));
        }
        Some(rest)
    }

    fn finish(self: &Arc<Self>, rest: Rest, host: &Rc<dyn Host>, generation: u64) {
        drop(rest.ended);
        if rest.ticks {
            calls::tick(self, host, generation);
        }
        let Effects {
            lines,
            calls,
            functions,
            wakers,
        } = rest.effects;
        for (level, line) in lines {
            host.log(level, &line);
        }
        for (_, call) in calls {
            calls::start(self, host, generation, call);
        }
        for function in functions {
            objects::start(self, host, generation, function);
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// There is no task for a call of the instance of this generation.
    fn refuse(&self, generation: u64, refused: Refused) {
        let mut state = self.state();
        if state.generation == generation {
            state.refused.push_back(refused);
        }
    }

    /// Completes calls that have no task, one after the other; `None` if there is none. Those that
    /// come meanwhile wait for the next time.
    pub(crate) fn complete_refused(self: &Arc<Self>, host: &Rc<dyn Host>) -> Option<Pending<()>> {
        let count = self.state().refused.len();
        if count == 0 {
            return None;
        }
        let (weak, own) = (Arc::downgrade(self), Rc::clone(host));
        Some(Box::pin(async move {
            for _ in 0..count {
                own.sleep(FAILURE_PAUSE).await;
                let next = weak.upgrade().and_then(|slot| {
                    let mut state = slot.state();
                    Some((state.generation, state.refused.pop_front()?))
                });
                match next {
                    Some((generation, Refused::Call(id))) => {
                        calls::respond(&weak, &own, generation, (id, None));
                    }
                    Some((generation, Refused::Function(token))) => {
                        objects::complete_refused(&weak, &own, generation, token);
                    }
                    None => return,
                }
            }
        }))
    }

    /// The task that ticks the instance ends, if that has no period any more. Whether it does.
    pub(crate) fn stop_ticks(&self, generation: u64) -> Option<std::time::Duration> {
        let mut state = self.state();
        if state.generation != generation {
            return None;
        }
        let Phase::Running(running) = &mut state.phase else {
            return None;
        };
        let period = running.instance.tick_period();
        running.is_ticked = period.is_some();
        period
    }
}

impl Running {
    /// A task is to tick the instance, and there is none yet.
    fn wants_ticks(&self) -> bool {
        self.instance.tick_period().is_some() && !self.is_ticked
    }

    /// Whether a call has left something to do. Most leave nothing.
    fn has_rest(&self) -> bool {
        !self.instance.host().effects.is_empty()
            || self.instance.ended().is_some()
            || self.wants_ticks()
    }
}

impl State {
    fn run(&mut self, started: Started) {
        self.generation += 1;
        self.refused.clear();
        self.phase = Phase::Running(Box::new(Running {
            instance: started.instance,
            _ticking: started.ticking,
            begun: Instant::now(),
            is_ticked: false,
        }));
    }

    fn fail(&mut self, setup: &Setup, reason: &str) {
        setup.counts.note_end(reason);
        let pause = self.restart.pause_after(std::time::Duration::ZERO);
        self.phase = Phase::Pausing(Instant::now() + pause);
    }
}

/// A slot that a task refers to: it ends with its module.
pub(crate) type WeakSlot = Weak<Slot>;
