//! The modules of a configuration.

use crate::config::{Config, FailurePolicy, Invalid};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_extend::{Hook, Module, ModuleKind, Options};
use weir_policy::extension::{Breaker, BreakerRules, ModuleId, ModuleSet};

/// The kinds of modules that a proxy has.
pub type ModuleKinds = Vec<Arc<dyn ModuleKind>>;

/// Refuses a configuration whose modules cannot be loaded. They are loaded, and dropped.
///
/// # Errors
///
/// [`Invalid`] with the key, the reason and what to do.
pub fn check_modules(config: &Config, kinds: &[Arc<dyn ModuleKind>]) -> Result<(), Invalid> {
    LoadedModules::load(config, kinds).map(drop)
}

/// The modules of a configuration, in the operator's order. They belong to a snapshot of the
/// settings: a request keeps those that it began with.
#[derive(Default)]
pub(crate) struct LoadedModules {
    modules: Vec<LoadedModule>,
    /// Those that are called at each hook, by its place in [`Hook::ALL`].
    hooked: [ModuleSet; Hook::ALL.len()],
}

/// One module, and how the operator wants it to be called.
pub(crate) struct LoadedModule {
    pub(crate) name: String,
    pub(crate) module: Arc<dyn Module>,
    pub(crate) on_failure: FailurePolicy,
    /// How long a call may take.
    pub(crate) deadline: Duration,
    /// How long a request may wait for what the module deferred for.
    pub(crate) wait: Duration,
    /// It may have a response stored that the rules would not store.
    pub(crate) may_store: bool,
    breaker: Mutex<Breaker>,
}

impl LoadedModule {
    /// Its breaker; locked for one decision.
    pub(crate) fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LoadedModules {
    /// Loads the modules of `config`.
    ///
    /// # Errors
    ///
    /// One of them cannot be loaded: the configuration is refused.
    pub(crate) fn load(config: &Config, kinds: &[Arc<dyn ModuleKind>]) -> Result<Self, Invalid> {
        let mut loaded = Self::default();
        for (index, table) in config.modules.iter().enumerate() {
            let Some(id) = ModuleId::new(index) else {
                // the configuration was checked
                break;
            };
            let Some(kind) = kinds.iter().find(|kind| kind.name() == table.kind) else {
                let known: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                return Err(Invalid::new(
                    format!("module[{index}].kind"),
                    format!("there is no kind of module `{}`", table.kind),
                    format!("use one of: {}", known.join(", ")),
                ));
            };
            let options = table.options.iter();
            let options = options.map(|(name, value)| (name.clone(), value.to_value()));
            let module = kind
                .load(Options::new(options.collect()))
                .map_err(|error| {
                    let option = match error.option.as_str() {
                        "" => String::new(),
                        option => format!(".{option}"),
                    };
                    let key = format!("module[{index}].options{option}");
                    Invalid::new(key, error.what, error.hint)
                })?;
            for hook in Hook::ALL {
                if module.hooks().contains(hook) {
                    let set = &mut loaded.hooked[hook.index()];
                    *set = set.with(id);
                }
            }
            loaded.modules.push(LoadedModule {
                name: table.name.clone(),
                module,
                on_failure: table.on_failure,
                deadline: table.deadline.as_duration(),
                wait: table.wait.as_duration(),
                may_store: table.may_store,
                breaker: Mutex::new(Breaker::new(BreakerRules::default())),
            });
        }
        Ok(loaded)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.modules.is_empty()
    }

    /// All of them.
    pub(crate) fn all(&self) -> ModuleSet {
        let ids = (0..self.modules.len()).filter_map(ModuleId::new);
        ids.fold(ModuleSet::NONE, ModuleSet::with)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.modules.len()
    }

    /// Those that are called at `hook`.
    pub(crate) fn hooked(&self, hook: Hook) -> ModuleSet {
        self.hooked[hook.index()]
    }

    /// One of them, by a number that a cascade gave.
    pub(crate) fn get(&self, id: ModuleId) -> Option<&LoadedModule> {
        self.modules.get(id.index())
    }
}
