//! Hits only, and nothing about time: simulations of caches, bounds, miss-ratio curves.

pub mod bound;
pub mod hits;
pub mod keys;
pub mod mrc;
