//! The host of a module on a thread of its own: what it wants of the proxy is done by the worker
//! that its request came from.

use crate::modules::hosts::run_task;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};
use weir_extend::{
    ContentMemory, FetchError, Host, InjectedHead, Injection, LogLevel, OwnRequest, OwnResponse,
    Pending, StoredContent, StoredError, StoredInfo, StoredReader, StoredResponses, StoredTarget,
    TASKS_MAX, Validation,
};

/// Calls of the host of one module that wait for a worker.
pub(super) const HOST_CALLS_MAX: usize = 64;

/// Something that a worker does with the host that the module has there.
pub(super) type HostCall = Box<dyn FnOnce(&Rc<dyn Host>) -> Pending<()> + Send>;

/// Does on a worker what comes from threads, until they have ended.
pub(super) async fn serve_host_calls(host: Rc<dyn Host>, mut calls: mpsc::Receiver<HostCall>) {
    while let Some(call) = calls.recv().await {
        let done = call(&host);
        // where there is no room for a task, the caller sees its call fail
        let _ = host.spawn(done);
    }
}

/// The host of an exchange on a thread.
pub(super) struct ThreadHost {
    worker: usize,
    calls: mpsc::Sender<HostCall>,
    /// Of which others are made.
    memory: Box<dyn ContentMemory>,
    /// Where tasks that panicked are counted.
    failed_ends: Arc<AtomicU64>,
}

impl ThreadHost {
    /// Of an exchange for a worker that takes these calls, with content in memory of the budget of
    /// `memory`.
    pub(super) fn new(
        worker: usize,
        calls: mpsc::Sender<HostCall>,
        memory: Box<dyn ContentMemory>,
        failed_ends: &Arc<AtomicU64>,
    ) -> Self {
        Self {
            worker,
            calls,
            memory,
            failed_ends: Arc::clone(failed_ends),
        }
    }

    /// Has the worker do this; `failed` where it does not.
    fn ask<T: Send + 'static>(
        &self,
        failed: T,
        call: impl FnOnce(&Rc<dyn Host>) -> Pending<T> + Send + 'static,
    ) -> Pending<T> {
        let (mut reply, answer) = oneshot::channel();
        let call: HostCall = Box::new(move |host| {
            let done = call(host);
            Box::pin(async move {
                // what nothing waits for any more is given up
                tokio::select! {
                    () = reply.closed() => {}
                    result = done => drop(reply.send(result)),
                }
            })
        });
        let sent = self.calls.try_send(call);
        Box::pin(async move {
            match sent {
                Ok(()) => answer.await.unwrap_or(failed),
                Err(_) => failed,
            }
        })
    }
}

thread_local! {
    /// Tasks of the module on this thread.
    static TASKS: Cell<usize> = const { Cell::new(0) };
}

impl Host for ThreadHost {
    fn worker(&self) -> usize {
        self.worker
    }

    fn wall_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
    }

    fn log(&self, level: LogLevel, line: &str) {
        let line = line.to_owned();
        drop(self.ask((), move |host| {
            host.log(level, &line);
            Box::pin(std::future::ready(()))
        }));
    }

    fn fetch(&self, request: OwnRequest) -> Pending<Result<OwnResponse, FetchError>> {
        self.ask(Err(FetchError::TooMany), |host| host.fetch(request))
    }

    fn stored(&self) -> &dyn StoredResponses {
        self
    }

    fn spawn(&self, task: Pending<()>) -> bool {
        let tasks = TASKS.get();
        if tasks >= TASKS_MAX {
            return false;
        }
        TASKS.set(tasks + 1);
        let failed_ends = Arc::clone(&self.failed_ends);
        tokio::task::spawn_local(async move {
            let _place = TaskPlace;
            if run_task(task).await.is_err() {
                failed_ends.fetch_add(1, Ordering::Relaxed);
            }
        });
        true
    }

    fn memory(&self) -> Box<dyn ContentMemory> {
        self.memory.another()
    }

    fn sleep(&self, time: Duration) -> Pending<()> {
        Box::pin(tokio::time::sleep(time))
    }
}

struct TaskPlace;

impl Drop for TaskPlace {
    fn drop(&mut self) {
        let _ = TASKS.try_with(|tasks| tasks.set(tasks.get() - 1));
    }
}

/// Injecting and reading in parts are not there: what they begin would stay on the worker.
impl StoredResponses for ThreadHost {
    fn query(&self, target: StoredTarget) -> Pending<Result<StoredInfo, StoredError>> {
        self.ask(Err(StoredError::TooMany), |host| {
            host.stored().query(target)
        })
    }

    fn fetch(&self, target: StoredTarget) -> Pending<Result<StoredInfo, StoredError>> {
        self.ask(Err(StoredError::TooMany), |host| {
            host.stored().fetch(target)
        })
    }

    fn validate(&self, target: StoredTarget) -> Pending<Result<Validation, StoredError>> {
        self.ask(Err(StoredError::TooMany), |host| {
            host.stored().validate(target)
        })
    }

    fn set_expiry(
        &self,
        target: StoredTarget,
        fresh_for: Duration,
    ) -> Pending<Result<(), StoredError>> {
        self.ask(Err(StoredError::TooMany), move |host| {
            host.stored().set_expiry(target, fresh_for)
        })
    }

    fn delete(&self, target: StoredTarget) -> Pending<Result<u64, StoredError>> {
        self.ask(Err(StoredError::TooMany), |host| {
            host.stored().delete(target)
        })
    }

    fn inject(
        &self,
        head: InjectedHead,
        content: Vec<u8>,
    ) -> Pending<Result<StoredInfo, StoredError>> {
        self.ask(Err(StoredError::TooMany), |host| {
            host.stored().inject(head, content)
        })
    }

    fn start_injection(
        &self,
        _: InjectedHead,
        _: Option<u64>,
    ) -> Pending<Result<Box<dyn Injection>, StoredError>> {
        Box::pin(std::future::ready(Err(StoredError::Unavailable)))
    }

    fn read(
        &self,
        target: StoredTarget,
        content_bytes_max: usize,
    ) -> Pending<Result<StoredContent, StoredError>> {
        self.ask(Err(StoredError::TooMany), move |host| {
            host.stored().read(target, content_bytes_max)
        })
    }

    fn start_read(&self, _: StoredTarget) -> Pending<Result<Box<dyn StoredReader>, StoredError>> {
        Box::pin(std::future::ready(Err(StoredError::Unavailable)))
    }
}
