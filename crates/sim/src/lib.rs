//! The decisions of `policy` under a virtual clock, on the traffic of any trace.
//!
//! The live proxy and the simulator step the same values, so what is measured here is what runs
//! there. A run reads a trace once, in the order of arrival, and keeps what is stored and what is
//! under way: its memory grows with distinct targets, clients and servers, not with requests.
//! Nothing here has a socket or a clock of the machine's, and the same trace, settings and seed
//! give the same outcome to the last byte; threads only share out runs that have nothing in common.
//!
//! What is on the way between hosts is TCP packets in queues ([`tcp`], [`link`](mod@link)); what a
//! request costs is computed from them, not from averages. Content is numbers only.

mod cache;
pub mod cluster;
mod engine;
mod facts;
mod hashing;
mod hit_ratio;
pub mod journal;
mod network;
pub mod paper;
mod results;
mod rules;
mod settings;
pub mod sweep;
mod world;

pub use engine::Simulator;
pub use facts::{Assumption, Assumptions};
pub use hit_ratio::{bound, hits, keys, mrc};
pub use network::server_times::ServerTimes;
pub use network::{link, tcp};
pub use results::compare::{Comparing, Comparison, compare};
pub use results::forecast::{ForecastPeriod, LinkForecast, LinkSetting};
pub use results::outcome::{Aborts, Connections, Latency, Outcome, Requests, Traffic};
pub use results::request_result::{RequestResult, ResultSink};
pub use results::rows::SimulatedRows;
pub use results::spread::{Bin, Spread, Summary};
pub use rules::{LeftOutRule, simulated};
pub use settings::{ASSUMED_LIFETIME_S, Caching, Keep, Network, Path, Settings, SettingsError};
