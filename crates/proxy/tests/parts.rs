//! Responses that are not whole: fetches that are given up, parts that are kept and completed (RFC
//! 9111 §3.3, §3.4; RFC 9110 §14), many readers of one of them, and the accounts of all bytes (R37,
//! R40).
//!
//! The origin's bytes tell where they are from, and every byte a client gets is compared.

mod support;

#[path = "parts/abort.rs"]
mod abort;
#[path = "parts/accounts.rs"]
mod accounts;
#[path = "parts/background.rs"]
mod background;
#[path = "parts/changed.rs"]
mod changed;
#[path = "parts/early.rs"]
mod early;
#[path = "parts/kept.rs"]
mod kept;
#[path = "parts/mixture.rs"]
mod mixture;
#[path = "parts/paced.rs"]
mod paced;
#[path = "parts/ranges.rs"]
mod ranges;
#[path = "parts/readers.rs"]
mod readers;
#[path = "parts/refresh.rs"]
mod refresh;
#[path = "parts/room.rs"]
mod room;
#[path = "parts/shelf.rs"]
mod shelf;
#[path = "parts/slow.rs"]
mod slow;
