//! Another time for which stored responses are fresh, in both tiers.
//!
//! On disk a response is a record that is not changed. So the target is purged there, which is
//! durable, and what is in memory is written anew: after a crash a response has the new time, or is
//! not found. Content that is on disk stays where it is.

use crate::expected_response::ExpectedResponse;
use crate::memory::{MemoryStore, Purge, lock};
use crate::shard::StoredVariant;
use crate::stored::StoredResponse;
use std::sync::Arc;
use weir_policy::{Digest, Now, StoredFacts};

impl MemoryStore {
    /// Gives the stored responses of a target the facts that `change` makes of theirs, and purges
    /// those of its variants that only the disk has. What is on its way to the store is not stored.
    ///
    /// `found` is a response of the target that a look-up has found on disk, if memory has not
    /// taken it in, and what was expected since that began. `target` is the URL, for tools.
    ///
    /// How many responses have them is [`Purge::removed`]; the old times are purged durably once
    /// [`Purge::durable`] is ready.
    pub fn restate(
        self: &Arc<Self>,
        now: Now,
        primary: Digest,
        found: Option<(StoredVariant, ExpectedResponse)>,
        target: &str,
        change: &dyn Fn(&StoredFacts) -> StoredFacts,
    ) -> Purge {
        let _order = lock(&self.changing);
        let found = found.filter(|(_, expected)| !expected.is_outdated());
        let new = |old: &StoredResponse| Arc::new(old.with_facts(change(&old.facts)));
        let mut restated: Vec<StoredVariant> = Vec::new();
        let mut shard = self.shard(primary);
        let here = shard.begin_anew(primary);
        let is_here = |it: &StoredVariant| {
            let mut here = here.iter();
            here.any(|(vary, old)| Arc::ptr_eq(old, &it.1) || *vary == it.0)
        };
        // what was expected is dropped without the lock of the shard
        let is_elsewhere = found.as_ref().is_some_and(|(it, _)| !is_here(it));
        for (vary, old) in here {
            let new = new(&old);
            if shard.replace(primary, &old, Arc::clone(&new)) {
                restated.push((vary, new));
            }
        }
        drop(shard);
        if let Some(((vary, old), _)) = found.filter(|_| is_elsewhere) {
            restated.push((vary, new(&old)));
        }
        let purge = self.purge_on_disk(restated.len(), |disk| Box::pin(disk.purge(primary)));
        let Some(disk) = &self.disk else { return purge };
        // before what is requested from here on, and behind the purge
        let ticket = disk.ticket();
        let kept: Vec<_> = restated.iter().map(|(_, new)| Arc::clone(new)).collect();
        self.shard(primary).keep_only(primary, &kept);
        for (vary, new) in &restated {
            let expected = ExpectedResponse::new(Arc::clone(self), primary);
            let is_copy = self.shard(primary).is_copy(primary, new);
            let expected = expected.copied(is_copy).named(|| target.to_owned());
            expected.write_again(now, ticket, vary.as_ref(), new);
        }
        purge
    }
}
