//! The request head as facts: what is asked for, and whether it may be.

pub(crate) mod answer;
pub(crate) mod facts;
pub(crate) mod fields;
pub(crate) mod judge;
pub(crate) mod max_forwards;
pub(crate) mod vary;
