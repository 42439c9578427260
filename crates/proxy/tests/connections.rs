//! The connection cache: which next-hop connection carries a request, when one is opened, closed,
//! or given up, and when a request is repeated (RFC 9110 §9.2.2, RFC 9112 §9).

mod support;

#[path = "connections/abandoned.rs"]
mod abandoned;
#[path = "connections/account.rs"]
mod account;
#[path = "connections/ahead.rs"]
mod ahead;
#[path = "connections/background.rs"]
mod background;
#[path = "connections/limit.rs"]
mod limit;
#[path = "connections/retry.rs"]
mod retry;
#[path = "connections/reuse.rs"]
mod reuse;
#[path = "connections/wait.rs"]
mod wait;
#[path = "connections/written.rs"]
mod written;
