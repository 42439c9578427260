//! Which core a child runs on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};
use std::process::{Child, Command};
use xtask::failure::{During, Failure};

/// The two cores of a measurement.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cores {
    /// Only the server that is measured (the others are idle meanwhile).
    pub(crate) server: usize,
    /// The load generator and the origin.
    pub(crate) load: usize,
}

impl Cores {
    /// The first two cores this process may use.
    pub(crate) fn choose() -> Result<Self, Failure> {
        let allowed = sched_getaffinity(None).during("read the cores of this process")?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
        match (cores.next(), cores.next()) {
            (Some(server), Some(load)) => Ok(Self { server, load }),
            _ => Err(Failure::Outside(
                "two cores are needed: one for the server, one for the load".to_owned(),
            )),
        }
    }
}

/// Confines this thread, and all that it starts from now on, to one core.
pub(crate) fn stay_on(core: usize) -> Result<(), Failure> {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).during(format_args!("move to core {core}"))
}

/// Starts `command` on one core: children inherit the cores of the thread that starts them.
pub(crate) fn spawn_on(core: usize, command: &mut Command) -> Result<Child, Failure> {
    let before = sched_getaffinity(None).during("read the cores of this process")?;
    stay_on(core)?;
    let child = command.spawn();
    sched_setaffinity(None, &before).during("move back from the core")?;
    child.during(format_args!("start `{}`", command.get_program().display()))
}
