//! A request that needs more than one pass: forwarded, answered with a large response, or
//! tunnelled.

pub(crate) mod attempts;
pub(crate) mod connect;
pub(crate) mod download;
pub(crate) mod follow;
pub(crate) mod forward;
pub(crate) mod heads;
pub(crate) mod module_calls;
pub(crate) mod next_hop;
pub(crate) mod respond;
pub(crate) mod response_outcome;
pub(crate) mod run;
pub(crate) mod state;
pub(crate) mod stored;
pub(crate) mod switch;
pub(crate) mod upload;
