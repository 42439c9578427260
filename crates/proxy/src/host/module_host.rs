//! The host of one module on one worker.

use crate::modules::hosts::MakeHost;
use crate::worker::core::Worker;
use std::rc::{Rc, Weak};
use weir_extend::{FetchError, Host, LogLevel, OwnRequest, OwnResponse, Pending};

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
}
