//! HTTP/1.1 through the live proxy, as exact bytes on both sides (RFC 9110, RFC 9112), and the
//! tunnels that CONNECT and Upgrade open: what passes, when, and what never does (RFC 9110 §7.8,
//! §9.3.6, RFC 9931).

mod support;

#[path = "wire/connect.rs"]
mod connect;
#[path = "wire/fields.rs"]
mod fields;
#[path = "wire/framing.rs"]
mod framing;
#[path = "wire/host.rs"]
mod host;
#[path = "wire/interim.rs"]
mod interim;
#[path = "wire/keep_alive.rs"]
mod keep_alive;
#[path = "wire/methods.rs"]
mod methods;
#[path = "wire/phases.rs"]
mod phases;
#[path = "wire/upgrade.rs"]
mod upgrade;
