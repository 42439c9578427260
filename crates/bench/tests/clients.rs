//! Clients over real sockets: against the origin, proxies with faults, and servers that exact bytes
//! are wanted from.

mod support;

#[path = "clients/faulty_proxies.rs"]
mod faulty_proxies;
#[path = "clients/links.rs"]
mod links;
#[path = "clients/overload.rs"]
mod overload;
#[path = "clients/rig.rs"]
mod rig;
#[path = "clients/truth.rs"]
mod truth;
