//! Proxies of several makers, started side by side on this machine, each in a directory of its own
//! with configuration files from `peers/`. Which take part, and what is measured, belongs to the
//! benchmark.

pub(crate) mod bare;
pub(crate) mod contender;
pub(crate) mod idle;
mod next_release;
pub(crate) mod server;
pub(crate) mod template;
