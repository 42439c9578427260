//! A request to end the run, by a signal or by the caller.

use crate::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Set once the run is to end; all waiting threads share it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
}

/// What a second signal ends the process with: the record is given up.
const GIVEN_UP: i32 = 3;

impl Interrupt {
    /// Set by the first SIGINT or SIGTERM of this process; the second ends it at once.
    ///
    /// # Errors
    /// Signals cannot be waited for.
    pub fn on_signals() -> Result<Self, Failure> {
        let interrupt = Self::default();
        let failure = |error| Failure::outside("cannot wait for signals", error);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .map_err(failure)?;
        let (interrupts, terminations) = {
            let _inside = runtime.enter();
            (
                signal(SignalKind::interrupt()).map_err(failure)?,
                signal(SignalKind::terminate()).map_err(failure)?,
            )
        };
        let ours = interrupt.clone();
        std::thread::Builder::new()
            .name("weir-signals".into())
            .spawn(move || runtime.block_on(ours.follow(interrupts, terminations)))
            .map_err(failure)?;
        Ok(interrupt)
    }

    /// Whether the end of the run was requested.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Requests the end of the run.
    pub fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    async fn follow(self, mut interrupts: Signal, mut terminations: Signal) {
        loop {
            let is_open = tokio::select! {
                signal = interrupts.recv() => signal.is_some(),
                signal = terminations.recv() => signal.is_some(),
            };
            if !is_open {
                return;
            }
            if self.is_set() {
                std::process::exit(GIVEN_UP);
            }
            self.set();
        }
    }
}
