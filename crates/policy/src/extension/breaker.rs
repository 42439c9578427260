//! Keeps a module that fails again and again from being called, and tries it again after a while.

use crate::now::Tick;

/// When a breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerRules {
    /// Time within which [`FAILURES_MAX`] failures open it, milliseconds.
    pub window_ms: u64,
    /// Time for which it is open, milliseconds.
    pub rest_ms: u64,
}

/// Failures within [`BreakerRules::window_ms`] that open a breaker.
pub const FAILURES_MAX: usize = 5;

impl Default for BreakerRules {
    fn default() -> Self {
        Self {
            window_ms: 10_000,
            rest_ms: 30_000,
        }
    }
}

/// Whether a module may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// It may.
    Closed,
    /// It may, for this request alone: how that ends decides whether others may.
    Trial,
    /// It may not.
    Open,
}

/// The failures of one module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Breaker {
    rules: BreakerRules,
    /// The last failures, the oldest at `next`.
    failures: [Option<Tick>; FAILURES_MAX],
    next: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Closed,
    /// Until this time no request may call it, and then one.
    Open(Tick),
    /// One request has called it since this time, and nothing is known of that yet.
    Trying(Tick),
}

impl Breaker {
    /// A breaker that is closed.
    #[must_use]
    pub fn new(rules: BreakerRules) -> Self {
        Self {
            rules,
            ..Self::default()
        }
    }

    /// Its rules.
    #[must_use]
    pub const fn rules(&self) -> BreakerRules {
        self.rules
    }

    /// Whether a request that begins now may call the module. A trial of which nothing was heard
    /// for as long as a breaker is open is given up, and another request is the trial.
    pub fn permit(&mut self, now: Tick) -> Permit {
        match self.state {
            State::Closed => Permit::Closed,
            State::Open(until) if now < until => Permit::Open,
            State::Trying(since) if now < since.plus_ms(self.rules.rest_ms) => Permit::Open,
            State::Open(_) | State::Trying(_) => {
                self.state = State::Trying(now);
                Permit::Trial
            }
        }
    }

    /// A call has failed; whether the breaker opens by it.
    pub fn failed(&mut self, now: Tick) -> bool {
        self.failures[self.next] = Some(now);
        self.next = (self.next + 1) % FAILURES_MAX;
        let window_ms = self.rules.window_ms;
        let is_recent = |at: &Option<Tick>| at.is_some_and(|at| now.ms_since(at) <= window_ms);
        let opens = match self.state {
            State::Open(_) => false,
            State::Trying(_) => true,
            State::Closed => self.failures.iter().all(is_recent),
        };
        if opens {
            self.state = State::Open(now.plus_ms(self.rules.rest_ms));
            self.failures = [None; FAILURES_MAX];
        }
        opens
    }

    /// A request has ended without a failure of the module; whether the breaker closes by it.
    pub fn succeeded(&mut self, permit: Permit) -> bool {
        let closes = permit == Permit::Trial && matches!(self.state, State::Trying(_));
        if closes {
            self.state = State::Closed;
        }
        closes
    }

    /// Whether requests that begin now do without the module.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state != State::Closed
    }
}
