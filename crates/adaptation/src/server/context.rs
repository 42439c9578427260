//! What the connections of a server have in common.

use super::host::LimitedLog;
use super::services::{Modules, Services};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};
use weir_extend::LogLevel;
use weir_log::LineLog;
use weir_net::clock::Clock;

/// What all workers of a server have.
pub(super) struct Shared {
    /// Those of the configuration in force.
    pub(super) modules: watch::Receiver<Modules>,
    pub(super) connections_max: usize,
    /// Places for connections.
    pub(super) places: Arc<Semaphore>,
    pub(super) log: Arc<LimitedLog>,
    pub(super) access_log: LineLog,
    pub(super) clock: Clock,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("connections_max", &self.connections_max)
            .finish_non_exhaustive()
    }
}

/// What one worker has.
pub(super) struct WorkerContext {
    pub(super) shared: Arc<Shared>,
    index: usize,
    services: RefCell<Rc<Services>>,
    stop: watch::Receiver<bool>,
}

impl WorkerContext {
    pub(super) fn new(shared: &Arc<Shared>, index: usize, stop: watch::Receiver<bool>) -> Rc<Self> {
        let services = Services::new(&shared.modules.borrow(), index, &shared.log);
        Rc::new(Self {
            services: RefCell::new(Rc::new(services)),
            index,
            shared: Arc::clone(shared),
            stop,
        })
    }

    /// The services of the configuration in force.
    pub(super) fn services(&self) -> Rc<Services> {
        let mut services = self.services.borrow_mut();
        let modules = self.shared.modules.borrow();
        if !services.are_of(&modules) {
            *services = Rc::new(Services::new(&modules, self.index, &self.shared.log));
        }
        Rc::clone(&services)
    }

    pub(super) fn connections_max(&self) -> usize {
        self.shared.connections_max
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.shared.clock.tick().0
    }

    /// Turns true when the server is to end.
    pub(super) fn stop(&self) -> watch::Receiver<bool> {
        self.stop.clone()
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    pub(super) fn log(&self, level: LogLevel, line: &str) {
        self.shared.log.write(level, line);
    }
}
