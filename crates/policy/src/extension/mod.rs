//! Which modules see a request, in which order, and what becomes of it when one fails.
//!
//! [`Cascade`] is the way of one request through the modules of its route; [`Breaker`] keeps a
//! module that fails again and again from being called; [`Variant`] names what of the stored
//! responses of a target a request may get.

mod breaker;
mod cascade;
mod variant;

pub use breaker::{Breaker, BreakerRules, FAILURES_MAX, Permit};
pub use cascade::{
    Cascade, ExecutionModel, FailurePolicy, MODULES_MAX, ModuleFailure, ModuleId, ModuleSet, Step,
};
pub use variant::{Variant, VariantHasher, configuration_digest};
