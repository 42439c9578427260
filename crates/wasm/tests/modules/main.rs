//! Modules in text form against a host that records: each call of the ABI, the life of contexts,
//! WASI, what is refused at load, and modules that misuse all of it.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod hostile;
mod lifecycle;
mod load;
mod messages;
mod recorder;
mod script;
mod streams;
mod values;
mod wasi;
