//! The host of one module on one worker.

use super::module_line;
use super::own_request::JudgedRequest;
use super::stored::calls::{Caller, StoredCalls};
use super::{own_exchange, own_task};
use crate::log::line_limit::LineLimit;
use crate::modules::hosts::{MakeHost, run_task};
use crate::modules::loaded::LoadedModules;
use crate::modules::own_work::OwnPlace;
use crate::modules::status::ModuleStatus;
use crate::worker::core::Worker;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use weir_extend::{
    ContentMemory, FetchError, Host, LogLevel, OwnRequest, OwnResponse, Pending, StoredResponses,
    TASKS_MAX,
};
use weir_measure::{Metric, ModuleRequestEnd};
use weir_policy::extension::{ModuleFailure, ModuleId};
use weir_store::ChargedMemory;

/// What one module on one worker has of the proxy. It does not keep its worker or its
/// configuration.
struct ModuleHost {
    /// Which has the hosts.
    worker: Weak<Worker>,
    /// Its number.
    worker_index: usize,
    name: String,
    status: Arc<ModuleStatus>,
    /// The module, which is not kept.
    configured: (std::sync::Weak<LoadedModules>, ModuleId),
    /// Requests of its own that it may have under way at once.
    requests_max: usize,
    lines: RefCell<LineLimit>,
    stored: StoredCalls,
}

/// Makes the hosts of modules on a worker.
pub(crate) fn maker(worker: &Weak<Worker>, worker_index: usize) -> MakeHost {
    let worker = Weak::clone(worker);
    Box::new(move |module, configured| {
        Rc::new(ModuleHost {
            worker: Weak::clone(&worker),
            worker_index,
            name: module.name.clone(),
            status: Arc::clone(module.status()),
            configured,
            requests_max: module.requests_max,
            lines: RefCell::default(),
            stored: StoredCalls::new(
                Weak::clone(&worker),
                Caller::Module {
                    status: Arc::clone(module.status()),
                    calls_max: module.requests_max,
                    may_store: module.may_store,
                },
            ),
        })
    })
}

impl ModuleHost {
    /// A request of the module's own, as it is begun.
    fn begin(
        &self,
        request: OwnRequest,
    ) -> Result<Pending<Result<OwnResponse, FetchError>>, FetchError> {
        let worker = self.worker.upgrade().ok_or(FetchError::Unreachable)?;
        let settings = worker.settings();
        let request = JudgedRequest::new(&settings, request)?;
        let module = (&self.status, self.requests_max);
        let place = OwnPlace::take(&worker.shared.own_work, Some(module));
        let mut place = place.ok_or(FetchError::TooMany)?;
        if !place.hold(request.content.len()) {
            return Err(FetchError::TooMany);
        }
        let limit = request.timeout;
        let work = async move {
            let counting = Rc::clone(&worker);
            let result = timeout(limit, own_exchange::run(worker, settings, request, place)).await;
            let result = result.unwrap_or(Err(FetchError::Timeout));
            count(&counting, &result);
            result
        };
        Ok(own_task::run(work, || Err(FetchError::Unreachable)))
    }
}

impl Host for ModuleHost {
    fn worker(&self) -> usize {
        self.worker_index
    }

    fn wall_ms(&self) -> u64 {
        let worker = self.worker.upgrade();
        worker.map_or(0, |worker| worker.shared.clock().wall_ms())
    }

    fn log(&self, level: LogLevel, line: &str) {
        let Some(worker) = self.worker.upgrade() else {
            return;
        };
        let permit = self.lines.borrow_mut().permit(worker.now().tick);
        let is_queued = permit.is_some_and(|dropped| {
            let line = module_line::form(&self.name, level, line, dropped);
            worker.shared.module_log.write(line)
        });
        if !is_queued {
            worker.counters().inc(Metric::ModuleLinesDropped);
        }
    }

    fn fetch(&self, request: OwnRequest) -> Pending<Result<OwnResponse, FetchError>> {
        self.begin(request).unwrap_or_else(|refused| {
            if let Some(worker) = self.worker.upgrade() {
                count(&worker, &Err(refused));
            }
            Box::pin(std::future::ready(Err(refused)))
        })
    }

    fn stored(&self) -> &dyn StoredResponses {
        &self.stored
    }

    fn spawn(&self, task: Pending<()>) -> bool {
        let Some(place) = TaskPlace::take() else {
            return false;
        };
        let (worker, configured) = (Weak::clone(&self.worker), self.configured.clone());
        tokio::task::spawn_local(async move {
            let _place = place;
            if let Err(failure) = run_task(task).await {
                note_failure(&worker, &configured, failure);
            }
        });
        true
    }

    fn memory(&self) -> Box<dyn ContentMemory> {
        let worker = self.worker.upgrade();
        let memory = worker.map(|worker| ChargedMemory::new(&worker.shared.store));
        Box::new(HostMemory(memory))
    }

    fn sleep(&self, time: Duration) -> Pending<()> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// A task of a module has failed. If its configuration is not used any more, that changes nothing.
fn note_failure(
    worker: &Weak<Worker>,
    (modules, id): &(std::sync::Weak<LoadedModules>, ModuleId),
    failure: ModuleFailure,
) {
    if let (Some(worker), Some(modules)) = (worker.upgrade(), modules.upgrade())
        && let Some(module) = modules.get(*id)
    {
        let metric = module.note_failure(failure, worker.now().tick);
        worker.counters().inc(metric);
    }
}

/// Memory of the store's budget; `None` if the proxy ends.
struct HostMemory(Option<ChargedMemory>);

impl ContentMemory for HostMemory {
    fn hold(&mut self, bytes: usize) -> bool {
        let memory = self.0.as_mut();
        memory.is_some_and(|memory| memory.hold(bytes as u64).is_ok())
    }

    fn another(&self) -> Box<dyn ContentMemory> {
        Box::new(Self(self.0.as_ref().map(ChargedMemory::another)))
    }
}

thread_local! {
    /// Tasks of modules on this worker.
    static TASKS: Cell<usize> = const { Cell::new(0) };
}

/// A place among the tasks of modules on a worker.
struct TaskPlace;

impl TaskPlace {
    /// One, if there is room.
    fn take() -> Option<Self> {
        let tasks = TASKS.get();
        if tasks >= TASKS_MAX {
            return None;
        }
        TASKS.set(tasks + 1);
        Some(Self)
    }
}

impl Drop for TaskPlace {
    fn drop(&mut self) {
        // the end of a thread may come before that of its tasks
        let _ = TASKS.try_with(|tasks| tasks.set(tasks.get() - 1));
    }
}

fn count(worker: &Worker, result: &Result<OwnResponse, FetchError>) {
    let end = match result {
        Ok(_) => ModuleRequestEnd::Answered,
        Err(FetchError::BadRequest) => ModuleRequestEnd::BadRequest,
        Err(FetchError::Forbidden) => ModuleRequestEnd::Forbidden,
        Err(FetchError::TooMany) => ModuleRequestEnd::TooMany,
        Err(FetchError::Unreachable) => ModuleRequestEnd::Unreachable,
        Err(FetchError::Timeout) => ModuleRequestEnd::Timeout,
        Err(FetchError::TooLarge) => ModuleRequestEnd::TooLarge,
    };
    worker.counters().inc(Metric::ModuleRequests(end));
}
