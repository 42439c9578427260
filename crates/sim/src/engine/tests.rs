//! Whole conversations, and what must hold for every one.

mod conversations;
mod golden;
mod invariants;
mod ledger;
mod papers;
mod transfers;
mod world;
