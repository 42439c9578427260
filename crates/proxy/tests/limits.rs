//! What one client may cost: heads, time, memory and work (RELIABILITY R41, R42, I5).

mod support;

#[path = "limits/heads.rs"]
mod heads;
#[path = "limits/pace.rs"]
mod pace;
#[path = "limits/pipelining.rs"]
mod pipelining;
