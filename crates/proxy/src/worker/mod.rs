//! What the tasks of one worker share, what all workers share, and the settings in force.

pub(crate) mod abandoned_waits;
pub(crate) mod client_rate;
pub(crate) mod content_in_queues;
pub(crate) mod core;
pub(crate) mod deferred_stores;
pub(crate) mod demand;
pub(crate) mod heartbeats;
pub(crate) mod in_box;
pub(crate) mod jobs;
pub(crate) mod kept_content;
pub(crate) mod links;
pub(crate) mod paused_fetches;
pub(crate) mod shared;
pub(crate) mod write_behind;
