//! Work that a module has asked for and waits for: a task of its own, so that its limits hold
//! whether the module looks at it or not.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use weir_extend::Pending;

/// A task that ends when this is dropped.
struct OwnTask<T> {
    task: JoinHandle<T>,
    /// What it comes to if it panics.
    failed: fn() -> T,
}

/// Runs `work` on this worker; `failed` makes the result if it cannot be had.
pub(super) fn run<T: 'static>(
    work: impl Future<Output = T> + 'static,
    failed: fn() -> T,
) -> Pending<T> {
    if Handle::try_current().is_err() {
        return Box::pin(async move { failed() });
    }
    // boxed: the task's memory is held only while it runs
    let work = Box::pin(work);
    Box::pin(OwnTask {
        task: tokio::task::spawn_local(work),
        failed,
    })
}

impl<T> Future for OwnTask<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let failed = self.failed;
        let task = Pin::new(&mut self.task);
        task.poll(cx).map(|done| done.unwrap_or_else(|_| failed()))
    }
}

impl<T> Drop for OwnTask<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
