//! How far a fetch runs ahead of its client, the kernel's buffers included, and what happens when
//! the client leaves.

mod support;

#[path = "lead/ahead.rs"]
mod ahead;
#[path = "lead/flow.rs"]
mod flow;
#[path = "lead/leaving.rs"]
mod leaving;
