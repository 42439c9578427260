//! Wakes the thread that writes what links have spent.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// That the state of a link is to be written, or that no more is to be.
#[derive(Debug, Default)]
pub struct SaveSignal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_due: bool,
    is_over: bool,
}

impl SaveSignal {
    /// The state of a link is to be written.
    pub fn due(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut state.is_due, true) {
            self.changed.notify_all();
        }
    }

    /// Nothing is to be written any more.
    pub fn end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_over = true;
        self.changed.notify_all();
    }

    /// Blocks until something is to be written, `limit` at most; `false` if nothing is any more.
    pub fn wait(&self, limit: Duration) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = |state: &mut State| !state.is_due && !state.is_over;
        let waited = self.changed.wait_timeout_while(state, limit, idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.is_due = false;
        !state.is_over
    }
}
