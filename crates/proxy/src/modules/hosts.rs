//! The hosts of modules on one worker: one for each module of each configuration that is in use.

use super::loaded::{LoadedModule, LoadedModules};
use std::cell::RefCell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::task::Poll;
use weir_extend::{Detached, Host, Pending};
use weir_policy::extension::{ModuleFailure, ModuleId};

/// Makes the host of a module on a worker. The module is that of a configuration, by its number.
pub(crate) type MakeHost =
    Box<dyn Fn(&LoadedModule, (Weak<LoadedModules>, ModuleId)) -> Rc<dyn Host>>;

/// Completes a task of a module's own.
///
/// # Errors
///
/// It panicked.
pub(crate) async fn run_task(mut task: Pending<()>) -> Result<(), ModuleFailure> {
    let polled = poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(cx)));
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(_) => Poll::Ready(Err(ModuleFailure::Crashed)),
        }
    })
    .await;
    // what it holds may panic, too
    let dropped = catch_unwind(AssertUnwindSafe(move || drop(task)));
    polled.and(dropped.map_err(|_| ModuleFailure::Crashed))
}

/// Hosts by configuration and module. They are made when a module is called for the first time
/// under a configuration, and dropped when that is not used any more.
pub(crate) struct ModuleHosts {
    make: MakeHost,
    /// The newest last: most requests began under the configuration in force.
    made: RefCell<Vec<ConfigurationHosts>>,
}

/// The hosts of the modules of one configuration.
struct ConfigurationHosts {
    modules: Weak<LoadedModules>,
    /// By the numbers of the modules.
    hosts: Vec<Option<Rc<dyn Host>>>,
}

impl ModuleHosts {
    /// None yet; `make` makes one.
    pub(crate) fn new(make: MakeHost) -> Self {
        Self {
            make,
            made: RefCell::default(),
        }
    }

    /// The host of a module.
    pub(crate) fn of(&self, modules: &Arc<LoadedModules>, id: ModuleId) -> Rc<dyn Host> {
        let mut made = self.made.borrow_mut();
        let is_it =
            |it: &ConfigurationHosts| std::ptr::eq(it.modules.as_ptr(), &raw const **modules);
        let place = made.iter().rposition(is_it);
        let place = place.unwrap_or_else(|| {
            made.push(ConfigurationHosts {
                modules: Arc::downgrade(modules),
                hosts: vec![None; modules.len()],
            });
            made.len() - 1
        });
        let slot = made[place].hosts.get_mut(id.index());
        let (Some(slot), Some(module)) = (slot, modules.get(id)) else {
            // the number is that of a module of this configuration
            debug_assert!(false, "no module {id:?}");
            return Detached::host();
        };
        let configured = || (Arc::downgrade(modules), id);
        Rc::clone(slot.get_or_insert_with(|| (self.make)(module, configured())))
    }

    /// Drops the hosts of configurations that are not used any more. Called each second.
    pub(crate) fn forget_unused(&self) {
        let is_used = |it: &ConfigurationHosts| it.modules.strong_count() > 0;
        let mut made = self.made.borrow_mut();
        let unused: Vec<_> = made.extract_if(.., |it| !is_used(it)).collect();
        // a host may be the last to hold a future that calls in here when it is dropped
        drop(made);
        drop(unused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::cell::Cell;
    use weir_extend::{Exchange, Hooks, LoadError, Module, ModuleKind, Options};

    struct Nothing;

    impl ModuleKind for Nothing {
        fn name(&self) -> &'static str {
            "nothing"
        }

        fn load(&self, _: Options) -> Result<Arc<dyn Module>, LoadError> {
            Ok(Arc::new(Self))
        }
    }

    impl Module for Nothing {
        fn hooks(&self) -> Hooks {
            Hooks::NONE
        }

        fn begin(&self, _: &Rc<dyn Host>) -> Box<dyn Exchange> {
            Box::new(Self)
        }
    }

    impl Exchange for Nothing {}

    fn modules() -> Arc<LoadedModules> {
        let table = r#"{"name": "n", "kind": "nothing"}"#;
        let config = Config {
            modules: vec![serde_json::from_str(table).expect("a table")],
            ..Config::default()
        };
        let loaded = LoadedModules::load(&config, &[Arc::new(Nothing)]);
        Arc::new(loaded.expect("a module"))
    }

    #[test]
    fn host_is_made_once_a_configuration_and_dropped_with_it() {
        let count = Rc::new(Cell::new(0));
        let counted = Rc::clone(&count);
        let hosts = ModuleHosts::new(Box::new(move |_, _| {
            counted.set(counted.get() + 1);
            Detached::host()
        }));
        let id = ModuleId::new(0).expect("a number");
        let (first, second) = (modules(), modules());
        for modules in [&first, &second] {
            hosts.of(modules, id);
        }
        assert_eq!((count.get(), hosts.made.borrow().len()), (2, 2));
        hosts.forget_unused();
        assert_eq!(hosts.made.borrow().len(), 2);
        drop(first);
        hosts.forget_unused();
        assert_eq!(hosts.made.borrow().len(), 1);
        hosts.of(&second, id);
        assert_eq!(hosts.made.borrow().len(), 1);
    }
}
