//! Responses that were stored before all of their content was written to disk. Once it is, their
//! blocks in memory are freed.
//!
//! No thread waits for that. The next store operation, disk lookup or report of the memory in use
//! settles the earlier responses; without such an operation the room is not needed either.

use crate::content::StoredContent;
use crate::memory::{MemoryStore, lock};
use crate::stored::StoredResponse;
use std::sync::{Arc, Mutex, Weak};
use weir_disk::{Extent, PendingRecord};
use weir_policy::Digest;

/// Those that are being written.
#[derive(Debug, Default)]
pub(crate) struct WriteBehind(Mutex<Vec<Entry>>);

#[derive(Debug)]
struct Entry {
    primary: Digest,
    /// Not kept alive: once it is evicted from memory, there is nothing to give back.
    response: Weak<StoredResponse>,
    pending: PendingRecord,
}

impl WriteBehind {
    /// The rest of `response` is on its way.
    pub(crate) fn push(
        &self,
        primary: Digest,
        response: &Arc<StoredResponse>,
        pending: PendingRecord,
    ) {
        lock(&self.0).push(Entry {
            primary,
            response: Arc::downgrade(response),
            pending,
        });
    }

    /// Whether `response` is one of them.
    pub(crate) fn has(&self, response: &Arc<StoredResponse>) -> bool {
        let entries = lock(&self.0);
        let mut responses = entries.iter().map(|entry| entry.response.as_ptr());
        responses.any(|it| std::ptr::eq(it, Arc::as_ptr(response)))
    }

    /// Gives back the memory of those that are written.
    pub(crate) fn settle(&self, store: &MemoryStore) {
        let written: Vec<(Entry, Vec<Extent>)> = {
            let mut entries = lock(&self.0);
            let written = entries.extract_if(.., |entry| entry.pending.extents().is_some());
            let with_extents = |entry: Entry| {
                let extents = entry.pending.extents()?.ok()?;
                Some((entry, extents))
            };
            written.filter_map(with_extents).collect()
        };
        for (entry, extents) in written {
            entry.settle(extents, store);
        }
    }
}

impl Entry {
    fn settle(self, extents: Vec<Extent>, store: &MemoryStore) {
        let Some(former) = self.response.upgrade() else {
            return;
        };
        let before = &former.body;
        let body = StoredContent::on_disk(extents, before.complete_length());
        let body = body.filter(|body| body.present_bytes() == before.present_bytes());
        if let Some(body) = body {
            let body = body.with_undelivered(before.undelivered_bytes());
            let response = Arc::new(former.with_body(body));
            store.replace(self.primary, &former, response);
        }
    }
}
