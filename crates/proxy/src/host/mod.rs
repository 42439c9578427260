//! The proxy as modules see it beside the messages that pass them (`weir_extend::Host`).
//!
//! It uses the whole proxy, and nothing but the start of a worker uses it: modules and exchanges
//! get hosts from `modules::hosts`, which does not know how they are made.

pub(crate) mod module_host;
