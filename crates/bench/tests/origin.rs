//! The origin, asked by curl and by exact bytes over the kernel's own sockets.

mod support;

#[path = "origin/answers.rs"]
mod answers;
#[path = "origin/conditions.rs"]
mod conditions;
#[path = "origin/counts.rs"]
mod counts;
#[path = "origin/described.rs"]
mod described;
#[path = "origin/faults.rs"]
mod faults;
#[path = "origin/listening.rs"]
mod listening;
#[path = "origin/persistence.rs"]
mod persistence;
#[path = "origin/time.rs"]
mod time;
