//! Work that another thread hands to a worker.

use crate::worker::core::Worker;
use std::fmt;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc;

/// Jobs that may wait for the worker.
const JOBS_MAX: usize = 32;

/// Begins work on a worker. It must not block.
pub(crate) type Job = Box<dyn FnOnce(&Rc<Worker>) + Send>;

/// Jobs on their way to the first worker.
pub(crate) struct Jobs {
    sender: mpsc::Sender<Job>,
    /// Until the worker has taken it.
    inbox: Mutex<Option<mpsc::Receiver<Job>>>,
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Jobs")
    }
}

impl Default for Jobs {
    fn default() -> Self {
        let (sender, inbox) = mpsc::channel(JOBS_MAX);
        Self {
            sender,
            inbox: Mutex::new(Some(inbox)),
        }
    }
}

impl Jobs {
    /// Hands over a job; `false` if too many wait, or the worker has ended.
    pub(crate) fn hand_over(&self, job: Job) -> bool {
        self.sender.try_send(job).is_ok()
    }

    /// Does the jobs on `worker`, if it is the first one. To be called once on each worker.
    pub(crate) fn serve(&self, worker: &Rc<Worker>) {
        if worker.net().index() > 0 {
            return;
        }
        let inbox = self.inbox.lock();
        let inbox = inbox.unwrap_or_else(PoisonError::into_inner).take();
        let (Some(mut inbox), worker) = (inbox, Rc::clone(worker)) else {
            return;
        };
        tokio::task::spawn_local(async move {
            while let Some(job) = inbox.recv().await {
                job(&worker);
            }
        });
    }
}
