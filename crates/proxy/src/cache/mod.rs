//! Using and changing what is stored: disk lookups, updates, invalidation, background validation.

pub(crate) mod chosen;
pub(crate) mod content_load;
pub(crate) mod disk_lookup;
pub(crate) mod freshen;
pub(crate) mod invalidate;
pub(crate) mod peer_purges;
pub(crate) mod purge;
pub(crate) mod refresh;
pub(crate) mod settling;
pub(crate) mod variants;
