//! What one client may cost: heads, time, memory and work.

mod support;

#[path = "limits/heads.rs"]
mod heads;
#[path = "limits/links/mod.rs"]
mod links;
#[path = "limits/next_hop_pace.rs"]
mod next_hop_pace;
#[path = "limits/pace.rs"]
mod pace;
#[path = "limits/pipelining.rs"]
mod pipelining;
