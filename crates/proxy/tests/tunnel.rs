//! Tunnels by CONNECT and by Upgrade: what passes, when, and what never does (RFC 9110 §7.8,
//! §9.3.6, RFC 9931).

mod support;

#[path = "tunnel/connect.rs"]
mod connect;
#[path = "tunnel/upgrade.rs"]
mod upgrade;
