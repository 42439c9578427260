//! Stored responses as library calls (`weir_extend::StoredResponses`), for modules and for the
//! admin interface.
//!
//! A target is judged as that of a client's request, and requests to next hops are those of a
//! validation in the background: destination rules, storing rules and the budget of background
//! bytes hold. `calls` has the calls, `target` the request that one stands for, `lookup` what is
//! stored for it, `listing` all that is stored for a target, `explain` what would become of a
//! request, `refetch` the requests, `completion` and `paused_fetches` those for the rest of parts,
//! `window_refreshes` those for popular responses, `first_hop` and `link_room` where these go and
//! whether links have room for them, `injection` and `reading` content in pieces.

pub(crate) mod calls;
pub(crate) mod completion;
pub(crate) mod deferred_stores;
pub(crate) mod explain;
mod first_hop;
mod injection;
mod link_room;
pub(crate) mod listing;
mod lookup;
pub(crate) mod paused_fetches;
mod reading;
mod refetch;
pub(crate) mod target;
pub(crate) mod window_refreshes;
