//! Workloads: scenarios, the sites that answer them, and the content of every response, as
//! functions of a seed.
//!
//! Nothing here opens a socket, reads a clock or keeps a response. A [`Scenario`] is a file that
//! people write; a [`Site`] says, for a target and a time, what the right answer is; [`Content`]
//! says which bytes it has. With the scenario and the seed, a program can therefore check every
//! byte of a response that another machine made, without having talked to it.
//!
//! That is why transcendental functions come from `libm` here and not from the platform, whose last
//! digit depends on the version of its C library and on the processor: two machines would disagree
//! about a length by a byte, and report wrong content.

mod chance;
mod content;
mod law;
mod number;
pub mod output;
mod phase;
mod request;
mod rules;
mod scenario;
mod site;
mod stream;
mod target;
pub mod toml_text;

pub use chance::{Chance, MixHasher, chosen, mix, unit_of};
pub use content::Content;
pub use law::{Dimension, Law, LawError};
pub use number::{WholeNumber, microseconds, whole};
pub use phase::PhasePlan;
pub use request::{Method, RequestType, WorkloadRequest};
pub use rules::{RuleOutcome, RunFacts, check as check_rules};
pub use scenario::{
    Addresses, BodyPoint, CacheControl, Clients, ContentType, Fault, FaultKind, FaultTargets, Hits,
    Http, LINK_PRESETS, LifeCycle, Link, Load, Origin, PolyMix, PolyPhase, RampBy, Scenario,
    ScenarioError, Validators, Vary, Web, WebContent, Workload, Wpb,
};
pub use site::{
    HEURISTIC_LIFETIME_MIN_S, LENGTH_BYTES_MAX, NumberParts, Representation, Site, number,
    number_parts,
};
pub use stream::{ClosedAgent, Due, Schedule, Share, Stream, Zipf};
pub use target::Target;

/// Whole seconds since 1970: the resolution of an HTTP-date, and the time argument of everything
/// here.
pub use weir_semantics::Timestamp as UnixSeconds;
