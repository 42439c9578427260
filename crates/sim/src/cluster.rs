//! Clusters on paper, request by request.
//!
//! Three models: nodes that share what they store, in front of an origin ([`peers`]); networks of
//! up to 1024 of those ([`scale`]); and the back ends of LARD's papers, which have all content on
//! their disks, behind a front end ([`ClusterRun`]).

mod back_ends;
pub mod peers;
pub mod scale;

pub(crate) use back_ends::Elsewhere;
pub use back_ends::{
    ADMITTED_MAX, BackEndsSetting, CACHE_BYTES, CROSSOVER_BYTES, ClusterOutcome, ClusterRun,
    CostError, CostName, DiskCosts, Http, LIMITS_USENIX_1999, Mechanism, MechanismCosts, Micros,
    NodeOutcome, ReasonCount, Server, ServerCosts, SettingError, admitted,
};
