//! The cluster of LARD's papers: a front end, and back ends with CPU, disk and cache.
//!
//! M. Aron, P. Druschel, W. Zwaenepoel: Efficient Support for P-HTTP in Cluster-Based Web Servers
//! (USENIX 1999), section 6, after V. Pai et al.: Locality-Aware Request Distribution in
//! Cluster-based Network Servers (ASPLOS 1998), section 3. Front end and network take no time,
//! unless the front end relays. The policies are those of the live proxy; docs/lard.md has the
//! model and what the papers leave open.

mod back_end;
mod connection;
mod cost_name;
mod disk_costs;
mod elsewhere;
mod engine;
mod front_end;
mod mechanism_costs;
mod micros;
mod outcome;
mod server_costs;
mod setting;
mod station;
mod timeline;

pub use cost_name::CostName;
pub use disk_costs::DiskCosts;
pub(crate) use elsewhere::Elsewhere;
pub use engine::ClusterRun;
pub use mechanism_costs::{CROSSOVER_BYTES, Mechanism, MechanismCosts};
pub use micros::{CostError, Micros};
pub use outcome::{ClusterOutcome, NodeOutcome, ReasonCount};
pub use server_costs::{Server, ServerCosts};
pub use setting::{
    ADMITTED_MAX, BackEndsSetting, CACHE_BYTES, Http, LIMITS_USENIX_1999, SettingError, admitted,
};
