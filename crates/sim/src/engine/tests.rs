//! Whole conversations, and what must hold for every one.

mod conversations;
mod invariants;
mod transfers;
mod world;
