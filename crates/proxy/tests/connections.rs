//! The connection cache: which next-hop connection carries a request, when one is opened, closed,
//! or given up, and when a request is repeated (RFC 9110 §9.2.2, RFC 9112 §9).

mod support;

#[path = "connections/background.rs"]
mod background;
#[path = "connections/balancing.rs"]
mod balancing;
#[path = "connections/disconnect.rs"]
mod disconnect;
#[path = "connections/limit.rs"]
mod limit;
#[path = "connections/preconnect.rs"]
mod preconnect;
#[path = "connections/probes.rs"]
mod probes;
#[path = "connections/report.rs"]
mod report;
#[path = "connections/response_end.rs"]
mod response_end;
#[path = "connections/retry.rs"]
mod retry;
#[path = "connections/reuse.rs"]
mod reuse;
#[path = "connections/shares.rs"]
mod shares;
#[path = "connections/wait.rs"]
mod wait;
