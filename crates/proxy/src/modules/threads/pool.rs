//! The threads of one module of one configuration.

use super::host::{HOST_CALLS_MAX, HostCall, serve_host_calls};
use super::message::Message;
use super::service;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use weir_extend::{ContentMemory, Host, Module};
use weir_policy::extension::ModuleFailure;

/// Threads of one module. One begins when all others are in a call.
pub(crate) const THREADS_MAX: usize = 4;

/// Threads of one module that are stuck in a call, and were replaced. With more of them none is
/// begun: the module has failed, and its breaker opens.
pub(crate) const STUCK_THREADS_MAX: usize = 4;

/// Exchanges that wait to be begun by one thread.
const BEGINS_MAX: usize = 1024;

/// Threads for one module. They end with it.
pub(crate) struct ThreadPool {
    name: String,
    module: Arc<dyn Module>,
    /// How long a call may take.
    deadline: Duration,
    threads: Mutex<Threads>,
    /// Calls at the end of an exchange that failed since these were counted: no request waits for
    /// them.
    failed_ends: Arc<AtomicU64>,
}

#[derive(Default)]
struct Threads {
    running: Vec<PoolThread>,
    /// Those that were replaced, as long as they are in the call that they are stuck in.
    stuck: Vec<Arc<Busy>>,
    next: usize,
    /// By worker: where calls of the host go.
    links: Vec<(usize, mpsc::Sender<HostCall>)>,
}

struct PoolThread {
    begins: mpsc::Sender<Begin>,
    busy: Arc<Busy>,
}

/// An exchange that a thread is to begin.
pub(super) struct Begin {
    pub(super) inbox: mpsc::Receiver<Message>,
    /// The worker that it is for.
    pub(super) worker: usize,
    pub(super) host: mpsc::Sender<HostCall>,
    /// Of which that for its content is made.
    pub(super) memory: Box<dyn ContentMemory>,
}

/// Since when a thread is in a call of the module.
#[derive(Debug, Default)]
pub(super) struct Busy(Mutex<Option<Instant>>);

impl Busy {
    fn since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the module.
    pub(super) fn call<T>(&self, call: impl FnOnce() -> T) -> T {
        *self.since() = Some(Instant::now());
        let result = call();
        *self.since() = None;
        result
    }

    /// For how long it has been in a call.
    pub(super) fn time(&self) -> Option<Duration> {
        self.since().map(|since| since.elapsed())
    }
}

/// Where an exchange is.
pub(super) struct Place {
    pub(super) messages: mpsc::Sender<Message>,
    pub(super) busy: Arc<Busy>,
}

impl ThreadPool {
    /// A pool for the module `name`, whose calls may take so long. Its threads begin when they are
    /// needed.
    pub(crate) fn new(name: &str, module: &Arc<dyn Module>, deadline: Duration) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            module: Arc::clone(module),
            deadline,
            threads: Mutex::default(),
            failed_ends: Arc::default(),
        })
    }

    /// Calls at the end of an exchange, and tasks, that failed since the last time.
    pub(crate) fn take_failed_ends(&self) -> u64 {
        match self.failed_ends.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.failed_ends.swap(0, Ordering::Relaxed),
        }
    }

    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Begins an exchange on a thread.
    ///
    /// # Errors
    ///
    /// All threads are stuck, or have as much to do as they may.
    pub(super) fn begin(&self, host: &Rc<dyn Host>) -> Result<Place, ModuleFailure> {
        let mut threads = self.threads();
        let memory = host.memory();
        let host = threads.link(host);
        let at = self.choose(&mut threads)?;
        let thread = &threads.running[at];
        let (messages, inbox) = mpsc::channel(super::message::MESSAGES_MAX);
        let (worker, host) = host;
        let begin = Begin {
            inbox,
            worker,
            host,
            memory,
        };
        let begun = thread.begins.try_send(begin);
        begun.map_err(|_| ModuleFailure::Unavailable)?;
        Ok(Place {
            messages,
            busy: Arc::clone(&thread.busy),
        })
    }

    /// The place of a thread that is in no call; of a new one if there may be another; else of the
    /// next one in turn.
    fn choose(&self, threads: &mut Threads) -> Result<usize, ModuleFailure> {
        let mut running = threads.running.iter();
        if let Some(idle) = running.position(|thread| thread.busy.time().is_none()) {
            return Ok(idle);
        }
        threads.stuck.retain(|busy| busy.time().is_some());
        let is_full = threads.running.len() >= THREADS_MAX;
        if !is_full && threads.stuck.len() < STUCK_THREADS_MAX {
            threads.running.push(self.start()?);
            return Ok(threads.running.len() - 1);
        }
        if threads.running.is_empty() {
            return Err(ModuleFailure::Unavailable);
        }
        threads.next = (threads.next + 1) % threads.running.len();
        Ok(threads.next)
    }

    fn start(&self) -> Result<PoolThread, ModuleFailure> {
        let (begins, inbox) = mpsc::channel(BEGINS_MAX);
        let busy = Arc::<Busy>::default();
        let (module, own) = (Arc::clone(&self.module), Arc::clone(&busy));
        let failed_ends = Arc::clone(&self.failed_ends);
        let thread = std::thread::Builder::new().name(format!("module-{}", self.name));
        let started = thread.spawn(move || service::run(&module, &own, &failed_ends, inbox));
        started.map_err(|_| ModuleFailure::Unavailable)?;
        Ok(PoolThread { begins, busy })
    }

    /// A call on the thread with this `busy` was given up: if the thread is stuck in a call, it
    /// gets nothing to do any more.
    pub(super) fn suspect(&self, busy: &Arc<Busy>) {
        if busy.time().is_none_or(|time| time < self.deadline) {
            return;
        }
        let mut threads = self.threads();
        let mut running = threads.running.iter();
        if let Some(at) = running.position(|thread| Arc::ptr_eq(&thread.busy, busy)) {
            let thread = threads.running.swap_remove(at);
            threads.stuck.push(thread.busy);
        }
    }

    /// Threads that run, and those that are stuck.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        let threads = self.threads();
        (threads.running.len(), threads.stuck.len())
    }
}

impl Threads {
    /// The worker of `host`, and where calls of that go.
    fn link(&mut self, host: &Rc<dyn Host>) -> (usize, mpsc::Sender<HostCall>) {
        let worker = host.worker();
        let mut links = self.links.iter();
        if let Some((_, link)) = links.find(|(known, link)| *known == worker && !link.is_closed()) {
            return (worker, link.clone());
        }
        let (link, calls) = mpsc::channel(HOST_CALLS_MAX);
        tokio::task::spawn_local(serve_host_calls(Rc::clone(host), calls));
        self.links.retain(|(known, _)| *known != worker);
        self.links.push((worker, link.clone()));
        (worker, link)
    }
}
