//! The timers of modules on one worker: each ticks while the configuration that has it is in force.

use super::context::WorkerContext;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use weir_extend::{Host, Module, PERIOD_MIN};

/// Runs the timers of one configuration after the other, until it is dropped.
pub(super) async fn run(context: Rc<WorkerContext>) {
    let mut modules = context.shared.modules.clone();
    loop {
        modules.mark_unchanged();
        let mut timers = JoinSet::new();
        for service in context.services().all() {
            let module = Arc::clone(&service.module.module);
            if let Some(period) = module.period() {
                let host = Rc::clone(service.host);
                timers.spawn_local(tick(module, host, period.max(PERIOD_MIN)));
            }
        }
        // a timer that panicked has ended; the others go on
        if modules.changed().await.is_err() {
            return;
        }
        // what was under way ends here
        drop(timers);
    }
}

/// Calls a module from time to time.
async fn tick(module: Arc<dyn Module>, host: Rc<dyn Host>, period: Duration) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Some(work) = module.tick(&host) {
            work.await;
        }
    }
}
