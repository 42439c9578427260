//! A run beside the two things that it is compared with.
//!
//! PROXIM's abstract gives gains over a proxy that keeps neither responses nor connections, its text gains over no proxy at all: both are
//! always run, on the same rows, in one pass over the trace.

use crate::engine::Simulator;
use crate::outcome::Outcome;
use crate::settings::{Settings, SettingsError};
use serde::Serialize;
use weir_workload::trace::Row;

/// Three outcomes of one trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What was asked for.
    pub run: Outcome,
    /// Clients and servers without anything in between, connections as in the trace.
    pub no_proxy: Outcome,
    /// A proxy that keeps neither responses nor connections.
    pub no_caches: Outcome,
}

/// Three runs that are made together.
#[derive(Debug)]
pub struct Comparing {
    run: Simulator,
    no_proxy: Simulator,
    no_caches: Simulator,
}

impl Comparing {
    /// A run with these settings, and its baselines.
    ///
    /// # Errors
    /// Settings that cannot be run.
    pub fn new(settings: &Settings) -> Result<Self, SettingsError> {
        Ok(Self {
            no_proxy: Simulator::new(settings.without_proxy())?,
            no_caches: Simulator::new(settings.without_caches())?,
            run: Simulator::new(settings.clone())?,
        })
    }

    /// The next row of the trace.
    pub fn push(&mut self, row: &Row) {
        self.run.push(row);
        self.no_proxy.push(row);
        self.no_caches.push(row);
    }

    /// What they came to.
    #[must_use]
    pub fn finish(self) -> Comparison {
        Comparison {
            run: self.run.finish(),
            no_proxy: self.no_proxy.finish(),
            no_caches: self.no_caches.finish(),
        }
    }
}

/// Runs a trace that is at hand.
///
/// # Errors
/// Settings that cannot be run.
pub fn compare(
    settings: &Settings,
    rows: impl IntoIterator<Item = Row>,
) -> Result<Comparison, SettingsError> {
    let mut comparing = Comparing::new(settings)?;
    for row in rows {
        comparing.push(&row);
    }
    Ok(comparing.finish())
}
