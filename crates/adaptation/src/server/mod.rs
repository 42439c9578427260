//! The server: modules as services of ICAP, each at `icap://HOST:PORT/NAME`.
//!
//! `connection` has one connection, `run` one module at work on one message, `stage` a
//! transform and its content, `named` a module as a service, `services` those of a configuration,
//! which a reload replaces: a request keeps those that it began with. Each worker is a thread with
//! a runtime of its own, as in a proxy: modules need not know where they run.

mod access_log;
mod connection;
mod context;
mod decoder_memory;
mod heads;
mod host;
mod listener;
mod named;
pub(crate) mod run;
mod services;
pub(crate) mod stage;
mod timers;
mod worker;

pub use access_log::LOG_FIELDS;
pub use host::Log;
pub use listener::ListenAddress;
pub use named::NamedModule;
pub use weir_log::{Destination, LineLog};

use context::{Shared, WorkerContext};
use host::LimitedLog;
use listener::BoundSocket;
use services::Modules;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tokio::runtime::{Builder, LocalOptions};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use weir_net::clock::Clock;

/// What a server serves.
pub struct ServerSettings {
    /// The modules; a name stands for one of them.
    pub modules: Vec<NamedModule>,
    /// The most connections at once, of all clients: others wait to be accepted.
    pub connections_max: usize,
    /// Threads.
    pub workers: usize,
    /// Where lines of the log go.
    pub log: Log,
    /// A line for each request, with [`LOG_FIELDS`].
    pub access_log: LineLog,
}

impl std::fmt::Debug for ServerSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerSettings")
            .field("modules", &self.modules)
            .field("connections_max", &self.connections_max)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

/// A server that runs.
#[derive(Debug)]
pub struct IcapServer {
    address: ListenAddress,
    shared: Arc<Shared>,
    modules: watch::Sender<Modules>,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl IcapServer {
    /// Starts a server at `address`.
    ///
    /// # Errors
    ///
    /// The address cannot be had, or a thread or its runtime cannot be started.
    pub fn start(address: &ListenAddress, settings: ServerSettings) -> io::Result<Self> {
        let bound = BoundSocket::bind(address)?;
        let address = bound.address(address)?;
        let (stop, _) = watch::channel(false);
        let clock = Clock::system();
        let modules = watch::Sender::new(Modules::from(settings.modules));
        let shared = Arc::new(Shared {
            modules: modules.subscribe(),
            connections_max: settings.connections_max,
            places: Arc::new(Semaphore::new(settings.connections_max)),
            access_log: settings.access_log,
            log: Arc::new(LimitedLog::new(settings.log, clock.clone())),
            clock,
        });
        let mut server = Self {
            address,
            shared: Arc::clone(&shared),
            modules,
            stop,
            threads: Vec::new(),
        };
        for index in 0..settings.workers {
            let (socket, shared) = (bound.try_clone()?, Arc::clone(&shared));
            let stop = server.stop.subscribe();
            let thread = thread::Builder::new().name(format!("icap-{index}"));
            server.threads.push(thread.spawn(move || {
                let Ok(runtime) = Builder::new_current_thread()
                    .enable_io()
                    .enable_time()
                    .build_local(LocalOptions::default())
                else {
                    return;
                };
                runtime.block_on(async move {
                    if let Ok(listener) = socket.listen() {
                        let context = WorkerContext::new(&shared, index, stop);
                        worker::run(context, listener).await;
                    }
                });
            })?);
        }
        Ok(server)
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// Runs until SIGTERM or SIGINT, and stops as [`Self::stop`] does; a second signal ends it at
    /// once. `ready` is called when a signal would be noticed. At SIGHUP the modules that `load`
    /// gives take the place of the others, or these stay; `reloaded` is told which.
    ///
    /// # Errors
    ///
    /// Signals cannot be taken.
    pub fn run_until_signalled(
        self,
        ready: impl FnOnce(&Self),
        load: impl Fn() -> Result<Vec<NamedModule>, String> + Send + Sync + 'static,
        reloaded: impl Fn(&Self, Result<(), String>),
    ) -> io::Result<()> {
        let load = Arc::new(load);
        let runtime = Builder::new_current_thread().enable_io().build()?;
        runtime.block_on(async {
            let mut hang_up = signal(SignalKind::hangup())?;
            let mut terminate = signal(SignalKind::terminate())?;
            let mut interrupt = signal(SignalKind::interrupt())?;
            ready(&self);
            loop {
                tokio::select! {
                    _ = hang_up.recv() => {
                        let load = Arc::clone(&load);
                        // it reads files, and may take long
                        let loaded = tokio::task::spawn_blocking(move || load()).await;
                        let loaded = loaded.unwrap_or_else(|error| Err(error.to_string()));
                        reloaded(&self, loaded.map(|modules| self.replace_modules(modules)));
                    }
                    _ = terminate.recv() => break,
                    _ = interrupt.recv() => break,
                }
            }
            let stopped = tokio::task::spawn_blocking(move || self.stop());
            tokio::select! {
                stopped = stopped => stopped.map_err(io::Error::other),
                _ = terminate.recv() => Ok(()),
                _ = interrupt.recv() => Ok(()),
            }
        })
    }

    /// Opens the file of the access log again, after it was moved away.
    ///
    /// # Errors
    ///
    /// It cannot be opened: the old one stays in use.
    pub fn reopen_access_log(&self) -> io::Result<()> {
        self.shared.access_log.reopen()
    }

    /// Has `modules` take the place of the others, for requests that begin from now on.
    pub fn replace_modules(&self, modules: Vec<NamedModule>) {
        self.modules.send_replace(modules.into());
    }

    /// The services: the names of the modules, and the methods of each.
    #[must_use]
    pub fn services(&self) -> Vec<(String, Vec<&'static str>)> {
        let modules = self.modules.borrow();
        let services = modules.iter().map(|module| {
            let methods = module.methods().into_iter();
            let methods: Vec<&str> = methods.map(weir_icap::Method::as_str).collect();
            (module.name.clone(), methods)
        });
        services.collect()
    }

    /// Accepts nothing more, and returns when all requests under way are answered, or after 30
    /// seconds.
    pub fn stop(mut self) {
        self.stop.send_replace(true);
        for thread in self.threads.drain(..) {
            // one that panicked has ended
            let _ = thread.join();
        }
    }
}

impl Drop for IcapServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let ListenAddress::Unix(path) = &self.address {
            // it may be gone already
            let _ = std::fs::remove_file(path);
        }
    }
}
