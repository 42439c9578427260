//! Runs in turn: each of a server that is measured stands between two of a plain one, as a shared
//! machine is faster for a minute and slower for the next.

use super::cells::Cell;
use super::{Run, measure};
use crate::origin::Origin;
use crate::process::affinity::Cores;
use crate::proxy::contender::Contender;
use crate::proxy::server::Server;
use xtask::failure::Failure;

/// A server, and what it is.
pub(super) type Measured<'a> = (&'static Contender, &'a Server);

/// How each run is made.
#[derive(Clone, Copy)]
pub(super) struct RunRules<'a> {
    pub(super) origin: &'a Origin,
    pub(super) cell: &'a Cell,
    /// Seconds that it takes.
    pub(super) seconds: u32,
    pub(super) cores: Cores,
}

impl RunRules<'_> {
    fn run(&self, round: u32, (contender, server): Measured<'_>) -> Result<Run, Failure> {
        let how = (self.seconds, self.cores);
        let run = measure(round, contender, server, self.origin, self.cell, how)?;
        eprintln!("  {}", run.summary());
        Ok(run)
    }
}

/// A run between two of the plain server.
pub(super) struct Turn {
    before: Run,
    measured: Run,
    after: Run,
}

impl Turn {
    /// The plain runs before and after it, and the run, if nothing is wrong with any of them.
    pub(super) fn sound(&self) -> Option<((&Run, &Run), &Run)> {
        let Self {
            before,
            measured,
            after,
        } = self;
        let mut all = [before, measured, after].into_iter();
        let is_sound = all.all(|run| run.trouble.is_none());
        is_sound.then_some(((before, after), measured))
    }

    /// The runs that it has beside those of the turn before it.
    pub(super) fn into_runs(self) -> [Run; 2] {
        [self.measured, self.after]
    }
}

/// Turns, each of which begins with the plain run that ended the one before it.
pub(super) struct Turns<'a> {
    rules: RunRules<'a>,
    plain: Measured<'a>,
    before: Run,
}

impl<'a> Turns<'a> {
    /// Makes the first plain run.
    pub(super) fn begin(rules: RunRules<'a>, plain: Measured<'a>) -> Result<Self, Failure> {
        let before = rules.run(0, plain)?;
        Ok(Self {
            rules,
            plain,
            before,
        })
    }

    /// A run of `measured`, then a plain one. `meanwhile` makes the former by what it is given, and
    /// does what else happens during it, which has ended when the plain one begins.
    pub(super) fn take<T>(
        &mut self,
        round: u32,
        measured: Measured<'_>,
        meanwhile: impl FnOnce(&dyn Fn() -> Result<Run, Failure>) -> Result<(Run, T), Failure>,
    ) -> Result<(Turn, T), Failure> {
        let (measured, beside) = meanwhile(&|| self.rules.run(round, measured))?;
        let after = self.rules.run(round, self.plain)?;
        let before = std::mem::replace(&mut self.before, after.clone());
        let turn = Turn {
            before,
            measured,
            after,
        };
        Ok((turn, beside))
    }
}
