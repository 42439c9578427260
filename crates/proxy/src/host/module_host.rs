//! The host of one module on one worker.

use crate::modules::hosts::MakeHost;
use crate::worker::core::Worker;
use std::cell::Cell;
use std::rc::{Rc, Weak};
use std::time::Duration;
use weir_extend::{FetchError, Host, LogLevel, OwnRequest, OwnResponse, Pending, TASKS_MAX};
use weir_measure::Metric;

/// What one module on one worker has of the proxy.
struct ModuleHost {
    /// Which has the hosts.
    worker: Weak<Worker>,
    /// Its number.
    worker_index: usize,
    name: String,
}

/// Makes the hosts of modules on a worker.
pub(crate) fn maker(worker: &Weak<Worker>, worker_index: usize) -> MakeHost {
    let worker = Weak::clone(worker);
    Box::new(move |modules, id| {
        let name = modules.get(id).map(|module| module.name.clone());
        Rc::new(ModuleHost {
            worker: Weak::clone(&worker),
            worker_index,
            name: name.unwrap_or_default(),
        })
    })
}

impl Host for ModuleHost {
    fn worker(&self) -> usize {
        self.worker_index
    }

    fn wall_ms(&self) -> u64 {
        let seconds = self.worker.upgrade().map(|worker| worker.now().wall.0);
        let seconds = u64::try_from(seconds.unwrap_or_default());
        seconds.unwrap_or_default() * 1000
    }

    fn log(&self, level: LogLevel, line: &str) {
        let _ = (level, line, &self.name);
    }

    fn fetch(&self, request: OwnRequest) -> Pending<Result<OwnResponse, FetchError>> {
        let _ = request;
        Box::pin(std::future::ready(Err(FetchError::Forbidden)))
    }

    fn spawn(&self, task: Pending<()>) -> bool {
        let Some(place) = TaskPlace::take(&self.worker) else {
            return false;
        };
        tokio::task::spawn_local(async move {
            let _place = place;
            task.await;
        });
        true
    }

    fn sleep(&self, time: Duration) -> Pending<()> {
        Box::pin(tokio::time::sleep(time))
    }
}

thread_local! {
    /// Tasks of modules on this worker.
    static TASKS: Cell<usize> = const { Cell::new(0) };
}

/// A place among the tasks of modules on a worker.
struct TaskPlace(Weak<Worker>);

impl TaskPlace {
    /// One, if there is room.
    fn take(worker: &Weak<Worker>) -> Option<Self> {
        let tasks = TASKS.get();
        if tasks >= TASKS_MAX {
            return None;
        }
        TASKS.set(tasks + 1);
        Some(Self(Weak::clone(worker)))
    }
}

impl Drop for TaskPlace {
    fn drop(&mut self) {
        // the end of a thread may come before that of its tasks
        let _ = TASKS.try_with(|tasks| tasks.set(tasks.get() - 1));
        if std::thread::panicking()
            && let Some(worker) = self.0.upgrade()
        {
            worker.counters().inc(Metric::Panics);
        }
    }
}
