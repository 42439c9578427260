//! A filter as a module: its kind, and its instances.

use crate::exchange::FilterExchange;
use crate::options::FilterOptions;
use crate::plugin::Plugin;
use crate::slot::Slot;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_extend::{
    Exchange, Hook, Hooks, Host, LoadError, Module, ModuleKind, ModuleMetric, Options, Pending,
};
use weir_wasm::{MetricValue, UnimplementedImport};

/// How often each worker sees to it that it has an instance.
const PERIOD: Duration = Duration::from_secs(1);

/// The kind `wasm`.
pub(crate) struct Wasm;

impl ModuleKind for Wasm {
    fn name(&self) -> &'static str {
        "wasm"
    }

    fn load(&self, options: Options) -> Result<Arc<dyn Module>, LoadError> {
        let settings = options.settings().clone();
        let options = FilterOptions::read(options)?;
        let plugin = Arc::new(Plugin::load(&options, &settings)?);
        // the configuration is refused if no instance starts; the first worker gets this one
        let started = plugin.start().map_err(|error| {
            let said = plugin.setup.counts.last_warning();
            let said = said.map_or_else(String::new, |line| format!("; it said: {line}"));
            let what = format!("`{}` does not start: {error}{said}", options.file.display());
            let hint = "correct `options.configuration`, `memory` or the filter";
            LoadError::new("file", what, hint)
        })?;
        *plugin.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(started);
        Ok(Arc::new(Filter {
            plugin,
            slots: Mutex::default(),
        }))
    }
}

/// A filter that was loaded. Its instances end with it.
struct Filter {
    plugin: Arc<Plugin>,
    /// By the number of the worker.
    slots: Mutex<Vec<Arc<Slot>>>,
}

impl Filter {
    fn slot(&self, worker: usize) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        while slots.len() <= worker {
            slots.push(Slot::new(&self.plugin.setup));
        }
        Arc::clone(&slots[worker])
    }
}

impl Module for Filter {
    fn hooks(&self) -> Hooks {
        let response = match self.plugin.stored {
            true => Hook::ResponseReceived,
            false => Hook::ResponseSent,
        };
        Hooks::NONE.with(Hook::RequestReceived).with(response)
    }

    fn may_transform(&self) -> bool {
        self.plugin.response_body
    }

    fn changes_stored(&self) -> bool {
        self.plugin.stored
    }

    fn state(&self) -> String {
        self.plugin.state.clone()
    }

    fn period(&self) -> Option<Duration> {
        Some(PERIOD)
    }

    /// Starts the instance of a worker, the next one after a failure too, and completes calls for
    /// which there was no task.
    fn tick(&self, host: &Rc<dyn Host>) -> Option<Pending<()>> {
        let slot = self.slot(host.worker());
        slot.ensure(&self.plugin, host, None);
        slot.complete_refused(host)
    }

    fn notes(&self) -> Vec<String> {
        let imports = self.plugin.module.unimplemented_imports();
        let mut notes = vec![format!(
            "written for ABI {}",
            self.plugin.module.abi_version()
        )];
        if !imports.is_empty() {
            let names: Vec<&str> = imports.iter().map(|import| import.name()).collect();
            notes.push(format!("calls that do nothing here: {}", names.join(", ")));
        }
        let called = imports.iter().filter(|import| import.calls() > 0);
        notes.extend(called.map(describe_calls));
        notes.extend(self.plugin.setup.counts.notes());
        notes
    }

    fn metrics(&self) -> Vec<ModuleMetric> {
        let metrics = self.plugin.settings.metrics.read();
        let numbers = metrics.into_iter().flat_map(|metric| {
            let name = String::from_utf8_lossy(&metric.name).into_owned();
            match metric.value {
                MetricValue::Counter(value) | MetricValue::Gauge(value) => vec![(name, value)],
                MetricValue::Histogram { sum, count } => vec![
                    (format!("{name}.sum"), sum),
                    (format!("{name}.count"), count),
                ],
            }
        });
        let metric = |(name, value)| ModuleMetric { name, value };
        numbers.map(metric).collect()
    }

    fn begin(&self, host: &Rc<dyn Host>) -> Box<dyn Exchange> {
        let slot = self.slot(host.worker());
        Box::new(FilterExchange::new(&self.plugin, slot, host))
    }
}

fn describe_calls(import: &Arc<UnimplementedImport>) -> String {
    format!(
        "called {} times, and does nothing here: {import}",
        import.calls()
    )
}
