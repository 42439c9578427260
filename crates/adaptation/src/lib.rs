//! Modules behind ICAP (RFC 3507), both sides: [`Icap`] is a kind of module that has an ICAP server
//! adapt messages, and [`server`] serves modules to ICAP clients.

#![forbid(unsafe_code)]

mod client;
pub mod server;
mod socket;

pub use client::Icap;

#[cfg(test)]
mod tests;
