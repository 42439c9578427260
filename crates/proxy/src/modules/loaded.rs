//! The modules of a configuration.

use super::breaker_lines;
use super::report::{ModuleReport, ModuleState, hook_names};
use super::status::ModuleStatus;
use super::threads::pool::ThreadPool;
use crate::config::{self, Config, ExecutionModel, FailurePolicy, Invalid};
use crate::log::module_log::ModuleLog;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_extend::{Hook, Module, ModuleKind, ModuleSettings, OptionValue, Options};
use weir_measure::{Metric, ModuleFault};
use weir_policy::extension::{
    Breaker, BreakerRules, ModuleFailure, ModuleId, ModuleSet, Permit, configuration_digest,
};
use weir_policy::route::Scope;
use weir_policy::{Digest, Tick};

/// Numbers of its own that a module shows.
const METRICS_MAX: usize = 256;

/// What distinguishes the code of the kinds of modules: results of another version of the program
/// are not used.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");

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

/// Refuses a configuration as [`check_modules`] does, and has each of its modules say what is wrong
/// outside of it: what to tell the operator, a line each. A module may take five seconds for that.
///
/// # Errors
///
/// As [`check_modules`].
pub fn module_warnings(
    config: &Config,
    kinds: &[Arc<dyn ModuleKind>],
) -> Result<Vec<String>, Invalid> {
    let loaded = LoadedModules::load(config, kinds)?;
    let warnings = loaded.modules.iter().flat_map(|loaded| {
        let warnings = loaded.module.warnings().into_iter();
        warnings.map(|warning| format!("module `{}`: warning: {warning}", loaded.name))
    });
    Ok(warnings.collect())
}

/// A `[[module]]` table, and the module that was made of it.
pub struct TableModule {
    /// The table.
    pub table: config::Module,
    /// The module.
    pub module: Arc<dyn Module>,
}

/// Loads the modules of a configuration, in the operator's order, to be served by another program
/// than the proxy.
///
/// # Errors
///
/// As [`check_modules`].
pub fn load_modules(
    config: &Config,
    kinds: &[Arc<dyn ModuleKind>],
) -> Result<Vec<TableModule>, Invalid> {
    let loaded = LoadedModules::load(config, kinds)?;
    let modules = loaded.modules.into_iter().map(|loaded| loaded.module);
    let modules = config.modules.iter().cloned().zip(modules);
    Ok(modules
        .map(|(table, module)| TableModule { table, module })
        .collect())
}

/// The modules of a configuration, in the operator's order. They belong to a snapshot of the
/// settings: a request keeps those that it began with.
#[derive(Default)]
pub(crate) struct LoadedModules {
    modules: Vec<LoadedModule>,
    /// Those that are called at each hook, by its place in [`Hook::ALL`].
    hooked: [ModuleSet; Hook::ALL.len()],
    /// Those that may change content, and those that may do so when it is sent.
    transforming: ModuleSet,
    transforming_sent: ModuleSet,
    /// Those whose changes to responses may be stored.
    changing_stored: ModuleSet,
    /// Those that are not called on the fast path.
    slow: ModuleSet,
    /// The shortest deadline of them, microseconds; 0 if there is none.
    shortest_deadline_us: u64,
    /// Whether a call on the fast path may have been late.
    may_be_late: AtomicBool,
    /// Until when calls on the fast path are timed one by one, milliseconds of the tick.
    timed_until_ms: AtomicU64,
}

/// For so long calls on the fast path are timed one by one if one may have been late: as long as a
/// breaker counts failures.
const TIMED_MS: u64 = 10_000;

/// One module, and how the operator wants it to be called.
pub(crate) struct LoadedModule {
    pub(crate) name: String,
    kind: String,
    /// The digest of its kind and options.
    pub(crate) configuration: Digest,
    /// The requests that it is called for.
    scope: Scope,
    /// Shared with the module of the same name in former configurations.
    status: Arc<ModuleStatus>,
    /// Where the operator reads of it; none if nothing is served by it.
    log: Option<Arc<ModuleLog>>,
    pub(crate) module: Arc<dyn Module>,
    run: ExecutionModel,
    pub(crate) on_failure: FailurePolicy,
    /// Where it is called, if that is not the worker.
    pub(crate) threads: Option<Arc<ThreadPool>>,
    /// How long a call may take.
    pub(crate) deadline: Duration,
    /// How long a request may wait for what the module deferred for.
    pub(crate) wait: Duration,
    /// Bytes of content that it may leave for a later call.
    pub(crate) hold_bytes: usize,
    /// It may have a response stored that the rules would not store.
    pub(crate) may_store: bool,
    /// Requests and calls of its own that it may have under way at once.
    pub(crate) requests_max: usize,
    breaker: Mutex<Breaker>,
    /// Whether the breaker is closed. Read without a lock: most breakers are closed at most times.
    /// The breaker is locked only if this is false.
    is_closed: AtomicBool,
}

impl LoadedModule {
    /// Its breaker; locked for one decision.
    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a request that begins now may call it.
    pub(crate) fn permit(&self, tick: Tick) -> Permit {
        if self.is_closed.load(Ordering::Relaxed) {
            return Permit::Closed;
        }
        self.breaker().permit(tick)
    }

    /// A request that was permitted has ended without a failure of it.
    pub(crate) fn note_success(&self, permit: Permit) {
        let mut breaker = self.breaker();
        let closes = breaker.succeeded(permit);
        if closes {
            self.is_closed.store(true, Ordering::Relaxed);
        }
        drop(breaker);
        if closes {
            self.say(|| breaker_lines::closed(&self.name));
        }
    }

    /// Tells the operator, unless too many lines wait.
    fn say(&self, line: impl FnOnce() -> String) {
        if let Some(log) = &self.log {
            log.write(line());
        }
    }

    /// What outlasts its configuration.
    pub(crate) fn status(&self) -> &Arc<ModuleStatus> {
        &self.status
    }

    /// A call failed.
    fn count_failure(&self) {
        self.status.count_failure();
    }

    /// It has failed for a request: tells its breaker. What to count.
    #[must_use]
    pub(crate) fn note_failure(&self, failure: ModuleFailure, tick: Tick) -> Metric {
        let fault = match failure {
            ModuleFailure::Deadline => ModuleFault::Deadline,
            ModuleFailure::Crashed => ModuleFault::Crashed,
            ModuleFailure::BadAnswer => ModuleFault::BadAnswer,
            ModuleFailure::GaveUp => ModuleFault::GaveUp,
            ModuleFailure::Unavailable => ModuleFault::Unavailable,
            ModuleFailure::NoMemory => ModuleFault::NoMemory,
            ModuleFailure::BreakerOpen => ModuleFault::BreakerOpen,
        };
        if failure != ModuleFailure::BreakerOpen {
            self.count_failure();
        }
        // any client could send messages that a module gives up, or fill the memory for content
        let is_of_message = matches!(
            failure,
            ModuleFailure::BreakerOpen | ModuleFailure::GaveUp | ModuleFailure::NoMemory
        );
        if !is_of_message {
            self.tell_breaker(failure, tick);
        }
        Metric::ModuleFailures(fault)
    }

    fn tell_breaker(&self, failure: ModuleFailure, tick: Tick) {
        let mut breaker = self.breaker();
        let (is_trial, rules) = (breaker.is_open(), breaker.rules());
        let opens = breaker.failed(tick);
        if opens {
            self.is_closed.store(false, Ordering::Relaxed);
        }
        drop(breaker);
        if opens {
            let rules = (rules, self.on_failure);
            let failures = self.status.failures();
            self.say(|| breaker_lines::opened(&self.name, (failure, is_trial), rules, failures));
        }
    }

    fn metrics(&self) -> BTreeMap<String, u64> {
        let metrics = self.module.metrics().into_iter();
        let metrics = metrics.map(|metric| (metric.name, metric.value));
        metrics.take(METRICS_MAX).collect()
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn report(&self) -> ModuleReport {
        let is_open = self.breaker().is_open();
        let hooks = self.module.hooks();
        ModuleReport {
            name: self.name.clone(),
            kind: self.kind.clone(),
            host: self.scope.host().map(ToString::to_string),
            path: self.scope.path_prefix().to_owned(),
            state: match (self.status.is_disabled(), is_open) {
                (true, _) => ModuleState::Disabled,
                (false, true) => ModuleState::BreakerOpen,
                (false, false) => ModuleState::Enabled,
            },
            run: self.run,
            on_failure: self.on_failure,
            may_store: self.may_store,
            hooks: hook_names(|hook| hooks.contains(hook)),
            failures: self.status.failures(),
            notes: self.module.notes(),
            metrics: self.metrics(),
        }
    }
}

/// The options of a module, and the digest of its configuration.
fn options_of(table: &config::Module) -> (BTreeMap<String, OptionValue>, Digest) {
    let options = table.options.iter();
    let options = options.map(|(name, value)| (name.clone(), value.to_value()));
    let options: BTreeMap<_, _> = options.collect();
    let named = options.iter().map(|(name, value)| (name.as_str(), value));
    // what it cannot hold it may leave as it is
    let hold = i64::try_from(table.hold.as_usize()).unwrap_or(i64::MAX);
    let hold = OptionValue::Number(hold);
    let named = named.chain([(":hold", &hold)]);
    let configuration = configuration_digest(PROGRAM, &table.kind, named);
    (options, configuration)
}

/// Refuses threads for a module that cannot run there.
fn check_threads(index: usize, table: &config::Module, module: &dyn Module) -> Result<(), Invalid> {
    if table.run != ExecutionModel::Threads || !module.decides_by_content() {
        return Ok(());
    }
    Err(Invalid::new(
        format!("module[{index}].run"),
        format!(
            "a module of kind `{}` decides by content, which is not handed to threads",
            table.kind
        ),
        "leave `run` out, or write `run = \"process\"`",
    ))
}

impl LoadedModules {
    fn note_abilities(&mut self, id: ModuleId, module: &dyn Module) {
        for hook in Hook::ALL {
            if module.hooks().contains(hook) {
                let set = &mut self.hooked[hook.index()];
                *set = set.with(id);
            }
        }
        if module.may_transform() {
            self.transforming = self.transforming.with(id);
        }
        if module.may_transform_sent() {
            self.transforming_sent = self.transforming_sent.with(id);
        }
        if module.changes_stored() {
            self.changing_stored = self.changing_stored.with(id);
        }
    }

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
            let (options, configuration) = options_of(table);
            let settings = ModuleSettings {
                name: table.name.clone(),
                deadline: table.deadline.as_duration(),
                wait: table.wait.as_duration(),
                hold_bytes: table.hold.as_usize(),
            };
            let options = Options::new(options).with_settings(settings);
            let module = match table.run {
                ExecutionModel::Worker | ExecutionModel::Threads => kind.load(options),
                ExecutionModel::Process => kind.load_in_process(options),
            };
            let module = module.map_err(|error| {
                let option = match error.option.as_str() {
                    "" => String::new(),
                    option => format!(".{option}"),
                };
                let key = format!("module[{index}].options{option}");
                Invalid::new(key, error.what, error.hint)
            })?;
            check_threads(index, table, &*module)?;
            loaded.note_abilities(id, &*module);
            let deadline = table.deadline.as_duration();
            let deadline_us = u64::try_from(deadline.as_micros()).unwrap_or(u64::MAX);
            loaded.shortest_deadline_us = match index {
                0 => deadline_us,
                _ => loaded.shortest_deadline_us.min(deadline_us),
            };
            let threads = match table.run {
                ExecutionModel::Worker | ExecutionModel::Process => None,
                ExecutionModel::Threads => Some(ThreadPool::new(&table.name, &module, deadline)),
            };
            // a call there and back takes longer than the fast path may
            if table.run != ExecutionModel::Worker {
                loaded.slow = loaded.slow.with(id);
            }
            loaded.modules.push(LoadedModule {
                threads,
                name: table.name.clone(),
                kind: table.kind.clone(),
                configuration,
                scope: Scope::new(
                    table.host.as_ref().map(config::HostPattern::pattern),
                    table.path.as_str(),
                ),
                status: Arc::default(),
                log: None,
                module,
                run: table.run,
                on_failure: table.on_failure,
                deadline: table.deadline.as_duration(),
                wait: table.wait.as_duration(),
                hold_bytes: table.hold.as_usize(),
                may_store: table.may_store,
                requests_max: table.requests_max as usize,
                breaker: Mutex::new(Breaker::new(BreakerRules::default())),
                is_closed: AtomicBool::new(true),
            });
        }
        Ok(loaded)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.modules.is_empty()
    }

    /// Shares the status of modules of the same names in the configuration before.
    pub(crate) fn continuing(mut self, before: &Self) -> Self {
        for module in &mut self.modules {
            let mut former = before.modules.iter();
            if let Some(former) = former.find(|former| former.name == module.name) {
                module.status = Arc::clone(&former.status);
            }
        }
        self
    }

    /// The same, whose operator reads `log`.
    pub(crate) fn logging_to(mut self, log: &Arc<ModuleLog>) -> Self {
        for module in &mut self.modules {
            module.log = Some(Arc::clone(log));
        }
        self
    }

    /// Those that are for a target: its host without port, and its path as received.
    pub(crate) fn covering(&self, host: &[u8], path: &str) -> ModuleSet {
        self.set_of(|module| module.scope.covers(host, path))
    }

    /// Those that are called for a new request: they are for its target, and not disabled. Mostly
    /// there is none, and their scopes say so.
    #[inline]
    pub(crate) fn called(&self, host: &[u8], path: &str) -> ModuleSet {
        let mut called = ModuleSet::NONE;
        for (id, module) in self.iter() {
            if module.scope.covers(host, path) && !module.status.is_disabled() {
                called = called.with(id);
            }
        }
        called
    }

    /// Those that may be called for a new request, whatever its target becomes: all that are not
    /// disabled.
    pub(crate) fn enabled(&self) -> ModuleSet {
        self.set_of(|module| !module.status.is_disabled())
    }

    fn set_of(&self, contains: impl Fn(&LoadedModule) -> bool) -> ModuleSet {
        let contained = self.iter().filter(|(_, module)| contains(module));
        contained.fold(ModuleSet::NONE, |set, (id, _)| set.with(id))
    }

    /// Enables or disables the module `name` for new requests; `false` if there is none.
    pub(crate) fn set_enabled(&self, name: &str, enabled: bool) -> bool {
        let mut modules = self.modules.iter();
        let module = modules.find(|module| module.name == name);
        module
            .map(|module| module.status.set_enabled(enabled))
            .is_some()
    }

    /// What an operator sees of them, in their order.
    pub(crate) fn reports(&self) -> Vec<ModuleReport> {
        self.modules.iter().map(LoadedModule::report).collect()
    }

    /// All of them, with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ModuleId, &LoadedModule)> {
        let modules = self.modules.iter().enumerate();
        modules.filter_map(|(index, module)| Some((ModuleId::new(index)?, module)))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.modules.len()
    }

    /// A request was answered at once in so many microseconds. If a call of a module may have been
    /// late in them, calls are timed one by one for a while.
    #[inline]
    pub(crate) fn note_time(&self, total_us: u64) {
        if total_us > self.shortest_deadline_us && self.shortest_deadline_us > 0 {
            self.may_be_late.store(true, Ordering::Relaxed);
        }
    }

    /// Whether calls on the fast path are timed one by one.
    pub(crate) fn times_calls(&self, now: Tick) -> bool {
        if self.may_be_late.load(Ordering::Relaxed) {
            self.may_be_late.store(false, Ordering::Relaxed);
            let until = now.plus_ms(TIMED_MS).0;
            self.timed_until_ms.store(until, Ordering::Relaxed);
        }
        now.0 < self.timed_until_ms.load(Ordering::Relaxed)
    }

    /// Those that may change content at `hook`.
    pub(crate) fn transforming(&self, hook: Hook) -> ModuleSet {
        let transforming = match hook {
            Hook::ResponseSent => self.transforming_sent,
            _ => self.transforming,
        };
        transforming.intersection(self.hooked(hook))
    }

    /// Those whose changes to responses may be stored.
    pub(crate) fn changing_stored(&self) -> ModuleSet {
        self.changing_stored
    }

    /// Those whose requests do not stay on the fast path: they are called on threads of their own.
    pub(crate) fn slow(&self) -> ModuleSet {
        self.slow
    }

    /// Whether a received request passes modules before it is judged and its response chosen, as a
    /// module changes it, may change the content of its response, or changes what is stored.
    pub(crate) fn may_change_requests(&self) -> bool {
        let hooked = self.hooked(Hook::RequestReceived);
        let changing = self.transforming.union(self.changing_stored);
        !hooked.union(changing).is_empty()
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
