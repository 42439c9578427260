//! Values of time.

pub(in crate::config) mod span;
