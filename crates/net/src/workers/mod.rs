//! Worker threads: what each of them has, what they share, and how they start, accept and drain.

mod clients;
mod listener;
mod network;
mod reset_budget;
mod shutdown;
mod sleepers;
mod stream_places;
mod window_pool;
mod worker;
mod worker_pool;

pub use clients::{ClientPlace, DetachedWork, LastWork};
pub use listener::Sockets;
pub use network::{Network, NetworkSettings};
pub use reset_budget::ResetBudget;
pub use shutdown::Stage;
pub use sleepers::{COARSE_FROM, SleeperPlace};
pub use stream_places::{ClientStreams, StreamPlace};
pub(crate) use window_pool::STEP_BYTES;
pub use window_pool::WindowGrant;
pub use worker::{Pass, SCRATCH_BYTES, Worker};
pub use worker_pool::{Accepted, OpenListener, Service, WorkerPool};
