//! How far the shutdown of a process has come.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::watch;

/// From serving to stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Accepting and serving.
    Serving,
    /// Not accepting; what is under way may finish.
    Draining,
    /// What is still under way is cut.
    Cut,
}

/// The stage, and the workers that still accept connections.
#[derive(Debug)]
pub(super) struct Shutdown {
    stage: watch::Sender<Stage>,
    /// The stage is past [`Stage::Serving`]; to be read without the lock of `stage`.
    draining: AtomicBool,
    accepting: AtomicUsize,
}

impl Shutdown {
    /// So many workers accept connections.
    pub(super) fn new(workers: usize) -> Self {
        Self {
            stage: watch::Sender::new(Stage::Serving),
            draining: AtomicBool::new(false),
            accepting: AtomicUsize::new(workers),
        }
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Advances to `stage`; never back.
    pub(super) fn advance(&self, stage: Stage) {
        self.draining
            .store(stage > Stage::Serving, Ordering::Relaxed);
        self.stage.send_if_modified(|known| {
            let moves = *known < stage;
            *known = stage.max(*known);
            moves
        });
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    /// One worker accepts no more.
    pub(super) fn accepts_no_more(&self) {
        self.accepting.fetch_sub(1, Ordering::Release);
    }

    pub(super) fn is_accepting(&self) -> bool {
        self.accepting.load(Ordering::Acquire) > 0
    }
}
