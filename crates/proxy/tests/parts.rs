//! Responses that are not whole: fetches that are given up, parts that are kept and completed (RFC
//! 9111 §3.3, §3.4; RFC 9110 §14), many readers of one of them, and the accounts of all bytes (R37,
//! R40).
//!
//! The origin's bytes tell where they are from, and every byte a client gets is compared.

mod support;

#[path = "parts/abort.rs"]
mod abort;
#[path = "parts/background.rs"]
mod background;
#[path = "parts/byte_counts.rs"]
mod byte_counts;
#[path = "parts/changed_representation.rs"]
mod changed_representation;
#[path = "parts/disconnect_before_head.rs"]
mod disconnect_before_head;
#[path = "parts/no_room.rs"]
mod no_room;
#[path = "parts/random_readers.rs"]
mod random_readers;
#[path = "parts/range_origin.rs"]
mod range_origin;
#[path = "parts/ranges.rs"]
mod ranges;
#[path = "parts/refresh.rs"]
mod refresh;
#[path = "parts/scenarios.rs"]
mod scenarios;
#[path = "parts/sent_from_memory.rs"]
mod sent_from_memory;
#[path = "parts/setup.rs"]
mod setup;
#[path = "parts/slow_clients.rs"]
mod slow_clients;
#[path = "parts/stored_parts.rs"]
mod stored_parts;
