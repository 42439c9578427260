//! How far a fetch runs ahead of its client, the kernel's buffers included, and what happens when
//! the client leaves.

mod support;

#[path = "read_ahead/disconnect.rs"]
mod disconnect;
#[path = "read_ahead/endpoints.rs"]
mod endpoints;
#[path = "read_ahead/limit.rs"]
mod limit;
#[path = "read_ahead/streams.rs"]
mod streams;
#[path = "read_ahead/streams_client.rs"]
mod streams_client;
