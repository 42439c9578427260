//! Whether index, entries, catalog and accounts of a shard agree with each other.

use super::Shard;

impl Shard {
    /// See `MemoryStore::debug_check`.
    pub(crate) fn debug_check(&self) {
        self.catalog.debug_check();
        assert_eq!(self.entries.len(), self.catalog.slots());
        let mut findable = 0;
        for (primary, resource) in &self.index {
            let slots = resource.slots();
            assert!(!slots.is_empty(), "a target without responses");
            findable += slots.len();
            for slot in slots {
                let entry = self.entries[slot.index()].as_ref().expect("a vacant slot");
                assert_eq!(entry.primary, *primary, "another target's response");
            }
        }
        assert_eq!(findable, self.catalog.len(), "entries are lost");
        let held = self.in_flight.values().map(|entry| entry.held);
        assert_eq!(
            held.sum::<u64>() + self.lingering_bytes,
            self.catalog.held_bytes(),
            "held by nobody"
        );
    }
}
