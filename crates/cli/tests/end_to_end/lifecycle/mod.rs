//! A process from its start by its reloads to its end.

mod drain;
mod reload;
mod start;
