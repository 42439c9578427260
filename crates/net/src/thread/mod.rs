//! Threads as the system has them: their priority and the time that they have used.

mod idle_priority;
mod thread_time;

pub use idle_priority::run_when_idle;
pub use thread_time::thread_time;
