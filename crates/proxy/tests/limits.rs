//! What one client may cost: heads, time, memory and work.

mod support;

#[path = "limits/heads.rs"]
mod heads;
#[path = "limits/pace.rs"]
mod pace;
#[path = "limits/pipelining.rs"]
mod pipelining;
