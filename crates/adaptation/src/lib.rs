//! Modules behind ICAP (RFC 3507), both sides: [`Icap`] is a kind of module that has an ICAP server
//! adapt messages, and [`server`] serves modules to ICAP clients.

#![forbid(unsafe_code)]

mod caller;
mod client;
pub mod process;
pub mod server;
mod socket;

pub use client::Icap;

#[cfg(test)]
mod tests;
