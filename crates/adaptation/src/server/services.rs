//! The services of one configuration, on one worker.

use super::host::{LimitedLog, ServerHost};
use super::named::NamedModule;
use std::rc::Rc;
use std::sync::Arc;
use weir_extend::Host;

/// The modules of one configuration.
pub(super) type Modules = Arc<[NamedModule]>;

/// The services of one configuration, on one worker. A request keeps those that it began with.
pub(super) struct Services {
    modules: Modules,
    /// By the places of the modules.
    hosts: Vec<Rc<dyn Host>>,
}

/// A service, and what its module has of the server.
#[derive(Clone, Copy)]
pub(super) struct Service<'s> {
    pub(super) module: &'s NamedModule,
    pub(super) host: &'s Rc<dyn Host>,
}

impl Services {
    pub(super) fn new(modules: &Modules, worker: usize, log: &Arc<LimitedLog>) -> Self {
        let hosts = modules.iter();
        Self {
            hosts: hosts
                .map(|module| ServerHost::of(worker, &module.name, log))
                .collect(),
            modules: Arc::clone(modules),
        }
    }

    /// Whether they are of this configuration.
    pub(super) fn are_of(&self, modules: &Modules) -> bool {
        Arc::ptr_eq(&self.modules, modules)
    }

    /// The service of this name.
    pub(super) fn find(&self, name: &str) -> Option<Service<'_>> {
        let mut all = self.all();
        all.find(|it| it.module.name == name && it.module.is_service())
    }

    /// All modules, services or not.
    pub(super) fn all(&self) -> impl Iterator<Item = Service<'_>> {
        let all = self.modules.iter().zip(&self.hosts);
        all.map(|(module, host)| Service { module, host })
    }
}
