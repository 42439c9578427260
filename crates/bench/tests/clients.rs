//! Clients over real sockets: against the origin, proxies that lie, and servers that exact bytes
//! are wanted from.

mod support;

#[path = "clients/liars.rs"]
mod liars;
#[path = "clients/links.rs"]
mod links;
#[path = "clients/overload.rs"]
mod overload;
#[path = "clients/rig.rs"]
mod rig;
#[path = "clients/truth.rs"]
mod truth;
