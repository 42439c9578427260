//! The real binary between real parts: nginx as origin, curl as client, raw sockets where exact
//! bytes matter.
//!
//! One module per promise; what is decided without sockets is tested where it is decided.

#[path = "../support/mod.rs"]
mod support;

mod access;
mod access_log;
mod admin;
mod bodies;
mod caching;
mod cluster;
mod exhaustion;
mod forward;
mod gateway;
mod icap;
mod kinds;
mod lifecycle;
mod names;
mod operate;
mod tls;
