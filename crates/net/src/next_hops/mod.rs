//! Connections to next hops: an idle one if there is one, else a new one, or the first that becomes
//! free.

mod advance;
mod connection;
mod destination;
mod dial;
mod failure;
mod hop_key;
mod link;
mod open;
pub(crate) mod open_connections;
mod pending;
pub(crate) mod pool;
mod rules;
mod set_up;
mod socket;
mod uses;

pub use advance::keep_ready;
pub use connection::{Connection, IdleConnection};
pub use destination::{ConnectObserver, ConnectOutcome, Destination};
pub(crate) use dial::dial;
pub use failure::ConnectFailure;
pub(crate) use hop_key::ByHop;
pub use hop_key::{ClientEnds, HopKey, ProxyHeaderVersion};
pub(crate) use link::{ConnectionLink, LinkReads, LinkUse};
pub use link::{LinkCounts, LinkMeter, Links, SaveSignal, SpentLink};
pub(crate) use open_connections::IdlePlace;
pub use open_connections::{ClientUse, Limit, OpenConnections, Permit};
pub use pool::check_in;
pub use rules::ConnectionRules;
pub use set_up::obtain;
pub use socket::{NextHopSocket, is_quiet};
pub(crate) use socket::{ReadEnd, WriteEnd};
pub use uses::{DistinctPeers, Uses};
