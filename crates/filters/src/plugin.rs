//! What all workers share of one filter: the compiled file, and how instances are started.

use crate::clock::{TICK, Ticking};
use crate::compiled;
use crate::guest::Guest;
use crate::options::FilterOptions;
use crate::setup::Setup;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_extend::{LoadError, ModuleSettings};
use weir_wasm::{Instance, InstanceSettings, Limits, ModuleOptions, StartError, Template};

/// An instance, and the clock that it needs.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) instance: Instance<Guest>,
    pub(crate) ticking: Ticking,
}

/// What all workers share of one filter.
pub(crate) struct Plugin {
    pub(crate) setup: Arc<Setup>,
    pub(crate) module: weir_wasm::Module,
    template: Template<Guest>,
    pub(crate) settings: InstanceSettings,
    /// An instance that no worker has taken.
    pub(crate) spare: Mutex<Option<Started>>,
    /// The filter gets the content of requests.
    pub(crate) request_body: bool,
    /// The filter gets the content of responses.
    pub(crate) response_body: bool,
    /// It is called for a response when that is received.
    pub(crate) stored: bool,
    /// Content codings of responses are undone.
    pub(crate) plain: bool,
    /// What the file contains.
    pub(crate) state: String,
}

impl Plugin {
    /// Compiles the file, or finds what was compiled of it.
    ///
    /// # Errors
    ///
    /// What is wrong with the file.
    pub(crate) fn load(
        options: &FilterOptions,
        settings: &ModuleSettings,
    ) -> Result<Self, LoadError> {
        let strict = ModuleOptions {
            strict: options.strict,
        };
        let compiled = compiled::load(&options.file, strict)?;
        let module = compiled.module;
        let template = Template::new(&module);
        let template = template.map_err(|error| compiled::refusal(&options.file, &error))?;
        let setup = Arc::new(Setup::new(settings.hold_bytes, options));
        Ok(Self {
            request_body: options.request_body && module.has_callback("proxy_on_request_body"),
            response_body: options.response_body && module.has_callback("proxy_on_response_body"),
            stored: options.stored,
            plain: options.plain,
            state: compiled.digest.to_text(),
            settings: instance_settings(options, settings),
            setup,
            module,
            template,
            spare: Mutex::default(),
        })
    }

    /// Starts an instance, on a thread that serves no requests.
    ///
    /// # Errors
    ///
    /// It does not start.
    pub(crate) fn start(&self) -> Result<Started, StartError> {
        let ticking = Ticking::new();
        let guest = Guest::new(Arc::clone(&self.setup));
        let instance = self.template.start(guest, self.settings.clone())?;
        Ok(Started { instance, ticking })
    }

    /// The instance that was started at load, once.
    pub(crate) fn take_spare(&self) -> Option<Started> {
        self.spare
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

fn instance_settings(options: &FilterOptions, settings: &ModuleSettings) -> InstanceSettings {
    let ticks = |time: Duration| {
        let ticks = time.as_nanos().div_ceil(TICK.as_nanos());
        // the first tick can follow at once
        u64::try_from(ticks).unwrap_or(u64::MAX).saturating_add(1)
    };
    InstanceSettings {
        plugin_name: settings.name.clone(),
        root_id: options.root_id.clone(),
        vm_id: settings.name.clone(),
        vm_configuration: options.vm_configuration.as_bytes().into(),
        plugin_configuration: options.configuration.as_bytes().into(),
        arguments: options.arguments.clone(),
        environment: options.environment.clone(),
        limits: Limits {
            memory_bytes_max: options.memory_bytes_max,
            call_deadline_ticks: ticks(settings.deadline),
            start_deadline_ticks: ticks(Duration::from_millis(options.start_deadline_ms)),
            ..Limits::default()
        },
        ..InstanceSettings::default()
    }
}
