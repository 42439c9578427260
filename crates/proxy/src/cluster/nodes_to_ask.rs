//! The nodes that are to be asked at once how they are.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Names of members that something suggests are not as they are known to be. Their own proved
/// answers decide. Each is in here once, however often that is suggested.
#[derive(Debug, Default)]
pub(crate) struct NodesToAsk {
    names: Mutex<BTreeSet<String>>,
    added: Notify,
}

impl NodesToAsk {
    /// The member of this name is to be asked.
    pub(crate) fn add(&self, name: &str) {
        if self.names().insert(name.to_owned()) {
            self.added.notify_one();
        }
    }

    /// Ready when members were added since. For one task.
    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }

    /// Takes out all that are not `put_off`.
    pub(crate) fn take(&self, put_off: impl Fn(&str) -> bool) -> BTreeSet<String> {
        let mut names = self.names();
        let (later, now) = names.iter().cloned().partition(|name| put_off(name));
        *names = later;
        now
    }

    fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
