//! ICAP conversations: each side against bytes, both sides against each other, and random bytes.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod client;
mod cuts;
mod events;
mod invariants;
mod pair;
mod random;
mod script;
mod server;
mod smuggling;
