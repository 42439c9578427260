//! What would happen: the decisions of `policy` under a virtual clock, on anybody's traffic.
//!
//! The live proxy and the simulator step the same values, so what is measured here is what runs
//! there. A run reads a trace once, in the order of arrival, and keeps what is stored and what is
//! under way: its memory grows with distinct targets, clients and servers, not with requests.
//! Nothing here has a socket or a clock of the machine's, and the same trace, settings and seed
//! give the same outcome to the last byte; threads only share out runs that have nothing in common.
//!
//! What is on the way between hosts is TCP packets in queues ([`tcp`], [`link`](mod@link)); what a
//! request costs is computed from them, not from averages. Content is numbers only.

pub mod bound;
mod cache;
mod compare;
mod connections;
mod engine;
mod facts;
mod hashing;
pub mod hits;
pub mod journal;
pub mod keys;
pub mod link;
pub mod mrc;
mod outcome;
pub mod paper;
mod request_result;
mod rows;
mod server_times;
mod settings;
mod spread;
pub mod sweep;
mod table;
pub mod tcp;
mod world;

pub use compare::{Comparing, Comparison, compare};
pub use engine::Simulator;
pub use facts::{Assumed, Assumptions};
pub use outcome::{Aborts, Connections, Latency, Outcome, Requests, Traffic};
pub use request_result::{RequestResult, ResultSink};
pub use rows::SimulatedRows;
pub use server_times::ServerTimes;
pub use settings::{ASSUMED_LIFETIME_S, Caching, Keep, Network, Path, Settings, SettingsError};
pub use spread::{Bin, Spread, Summary};
