//! How many connections a scenario may need, and the file descriptors for them.

use crate::descriptors;
use crate::origin::{CONNECTIONS_MAX, connections_for};
use std::io;
use weir_workload::Scenario;

/// Beside the connections: runtimes, the master, standard streams, files.
const OTHER_DESCRIPTORS: u64 = 128;

/// Connections that all clients may have open at once.
fn of_clients(scenario: &Scenario) -> u32 {
    let all = scenario
        .agents()
        .saturating_mul(scenario.clients.connections_max);
    all.min(CONNECTIONS_MAX)
}

/// Makes room for the clients of a process.
pub(super) fn raise_for_clients(scenario: &Scenario) -> io::Result<()> {
    descriptors::raise(u64::from(of_clients(scenario)) + OTHER_DESCRIPTORS)?;
    Ok(())
}

/// Makes room for clients and origin in one process, as far as it is given: either says by itself
/// what it lacks.
pub(super) fn raise_for_both(scenario: &Scenario) {
    let connections = u64::from(of_clients(scenario)) + u64::from(connections_for(scenario));
    descriptors::raise_towards(connections + OTHER_DESCRIPTORS);
}
