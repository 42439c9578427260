//! The proxy's side of a module on one worker (`weir_extend::Host`).

use super::loaded::LoadedModule;
use crate::worker::core::Worker;
use std::rc::Rc;
use weir_extend::{FetchError, Host, LogLevel, OwnRequest, OwnResponse, Pending};

/// What one module on one worker has of the proxy.
pub(crate) struct ModuleHost {
    worker: Rc<Worker>,
    name: String,
}

impl ModuleHost {
    /// Of `module` on `worker`.
    pub(crate) fn of(worker: &Rc<Worker>, module: &LoadedModule) -> Rc<dyn Host> {
        Rc::new(Self {
            worker: Rc::clone(worker),
            name: module.name.clone(),
        })
    }
}

impl Host for ModuleHost {
    fn worker(&self) -> usize {
        0
    }

    fn wall_ms(&self) -> u64 {
        let seconds = self.worker.now().wall.0;
        u64::try_from(seconds).unwrap_or_default() * 1000
    }

    fn log(&self, level: LogLevel, line: &str) {
        let _ = (level, line, &self.name);
    }

    fn fetch(&self, request: OwnRequest) -> Pending<Result<OwnResponse, FetchError>> {
        let _ = request;
        Box::pin(std::future::ready(Err(FetchError::Forbidden)))
    }
}
