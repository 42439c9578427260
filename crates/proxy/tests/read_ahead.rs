//! How far a fetch runs ahead of its client, the kernel's buffers included, and what happens when
//! the client leaves.

mod support;

#[path = "read_ahead/ahead.rs"]
mod ahead;
#[path = "read_ahead/flow.rs"]
mod flow;
#[path = "read_ahead/leaving.rs"]
mod leaving;
