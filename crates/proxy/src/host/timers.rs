//! The timers of modules on one worker: each ticks while the configuration that has it is in force.

use super::worker_task;
use crate::modules::hosts::run_task;
use crate::modules::loaded::{LoadedModule, LoadedModules};
use crate::worker::core::Worker;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use weir_extend::PERIOD_MIN;
use weir_measure::Metric;
use weir_net::workers::Stage;
use weir_policy::extension::{ModuleFailure, ModuleId, Permit};

/// Runs the timers on this worker, from now on until a shutdown begins. Nothing waits for them.
pub(crate) fn spawn(worker: &Rc<Worker>) {
    worker_task::spawn(worker, Stage::Draining, run);
}

/// Runs the timers of one configuration after the other.
async fn run(worker: &Rc<Worker>) {
    let mut reloads = worker.shared.reloaded.subscribe();
    loop {
        reloads.mark_unchanged();
        let modules = Arc::clone(&worker.settings().modules);
        let mut timers = JoinSet::new();
        for (id, module) in modules.iter() {
            if let Some(period) = module.module.period() {
                let (worker, modules) = (Rc::clone(worker), Arc::clone(&modules));
                timers.spawn_local(async move {
                    tick_always(&worker, &modules, id, period.max(PERIOD_MIN)).await;
                });
            }
        }
        drop(modules);
        // a timer that panicked has ended; the others go on
        while reloads.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        // what was under way ends here
        drop(timers);
    }
}

async fn tick_always(
    worker: &Rc<Worker>,
    modules: &Arc<LoadedModules>,
    id: ModuleId,
    period: Duration,
) {
    let Some(module) = modules.get(id) else {
        return;
    };
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // the first one is at once
    ticks.tick().await;
    loop {
        ticks.tick().await;
        if module.status().is_disabled() {
            continue;
        }
        let permit = module.permit(worker.now().tick);
        if permit == Permit::Open {
            continue;
        }
        worker.counters().inc(Metric::ModuleTicks);
        match tick_once(worker, modules, id, module).await {
            Ok(()) => module.note_success(permit),
            Err(failure) => note_failure(worker, module, failure),
        }
    }
}

/// Calls the module, and completes what it returns.
async fn tick_once(
    worker: &Rc<Worker>,
    modules: &Arc<LoadedModules>,
    id: ModuleId,
    module: &LoadedModule,
) -> Result<(), ModuleFailure> {
    let begun = Instant::now();
    let called = catch_unwind(AssertUnwindSafe(|| {
        module.module.tick(&worker.hosts.of(modules, id))
    }));
    let work = called.map_err(|_| ModuleFailure::Crashed)?;
    if begun.elapsed() > module.deadline {
        // it cannot be stopped, and has ended
        note_failure(worker, module, ModuleFailure::Deadline);
    }
    let Some(work) = work else { return Ok(()) };
    run_task(work).await
}

fn note_failure(worker: &Worker, module: &LoadedModule, failure: ModuleFailure) {
    let metric = module.note_failure(failure, worker.now().tick);
    worker.counters().inc(metric);
}
