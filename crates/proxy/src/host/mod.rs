//! The proxy as modules see it beside the messages that pass them (`weir_extend::Host`): requests
//! of their own, timers, the log, stored responses.
//!
//! What tells other nodes of purges and of the state of this one, and asks this node's own URL, is
//! here, too, as it sends requests of its own.
//!
//! It uses the whole proxy, and nothing but the start of a worker uses it: modules and exchanges
//! get hosts from `modules::hosts`, which does not know how they are made.

pub(crate) mod digest_fetch;
pub(crate) mod hop_probes;
pub(crate) mod member_message;
pub(crate) mod module_host;
mod module_line;
pub(crate) mod operator;
mod own_exchange;
mod own_request;
mod own_task;
pub(crate) mod own_url_check;
pub(crate) mod purge_sender;
pub(crate) mod state_exchange;
pub(crate) mod stored;
pub(crate) mod timers;
mod worker_task;
