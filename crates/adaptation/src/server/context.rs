//! What the connections of a server have in common.

use super::host::{LimitedLog, ServerHost};
use super::named::NamedModule;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};
use weir_extend::{Host, LogLevel};
use weir_net::clock::Clock;

/// What all workers of a server have.
pub(super) struct Shared {
    pub(super) modules: Vec<NamedModule>,
    pub(super) connections_max: usize,
    /// Places for connections.
    pub(super) places: Arc<Semaphore>,
    pub(super) log: Arc<LimitedLog>,
    pub(super) clock: Clock,
}

/// What one worker has.
pub(super) struct WorkerContext {
    pub(super) shared: Arc<Shared>,
    hosts: BTreeMap<String, Rc<dyn Host>>,
    stop: watch::Receiver<bool>,
}

impl WorkerContext {
    pub(super) fn new(shared: &Arc<Shared>, index: usize, stop: watch::Receiver<bool>) -> Rc<Self> {
        let hosts = shared.modules.iter().map(|module| {
            let host = ServerHost::of(index, &module.name, &shared.log);
            (module.name.clone(), host)
        });
        Rc::new(Self {
            hosts: hosts.collect(),
            shared: Arc::clone(shared),
            stop,
        })
    }

    /// The service of this name.
    pub(super) fn service(&self, name: &str) -> Option<&NamedModule> {
        let mut modules = self.shared.modules.iter();
        modules.find(|module| module.name == name && module.is_service())
    }

    /// The host of a module; each has one.
    pub(super) fn host(&self, name: &str) -> &Rc<dyn Host> {
        &self.hosts[name]
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
