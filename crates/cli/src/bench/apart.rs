//! Roles on separate machines: `weir bench master`, `origin`, `clients`.

use super::flags::{ClientsFlags, JoinFlags, MasterFlags, OriginFlags};
use super::{VERSION, outcome, plan};
use crate::messages::{Failure, tell};
use std::time::Duration;
use weir_bench::conduct::{ClientRole, ExpectedParticipants, JoinSettings, Master, OriginRole};
use weir_bench::progress::Progress;
use weir_bench::record;

/// Waits for the others, conducts the run, writes the record.
///
/// # Errors
/// As for `weir bench run`.
pub(super) fn master(flags: &MasterFlags) -> Result<(), Failure> {
    let (clients, out) = (flags.clients, flags.out.as_ref());
    let (plan, out) = plan::single_run(&flags.scenario, clients, &flags.proxy, out)?;
    outcome::try_files([out.as_path()])?;
    let expected = ExpectedParticipants {
        origins: flags.origin_hosts,
        clients: flags.client_hosts,
        within: Duration::from_secs(flags.wait),
    };
    let interrupt = plan::interrupt()?;
    let master = Master::bind(flags.listen, expected)?;
    tell(&format!(
        "waiting for {} origin and {} clients at {}",
        flags.origin_hosts,
        flags.client_hosts,
        master.address()
    ));
    let mut stderr = std::io::stderr();
    let mut progress = Progress::new(&mut stderr, plan::is_watched());
    let gathered = master.conduct(&plan, &interrupt, &mut progress)?;
    outcome::settle(record::write_up(&plan, &gathered, VERSION), &out)
}

/// Serves until the master says that the run is over.
///
/// # Errors
/// The master does not come or goes away, or an address cannot be had.
pub(super) fn origin(flags: &OriginFlags) -> Result<(), Failure> {
    let origin = OriginRole {
        threads: flags.threads,
        listen: flags.listen,
    };
    let interrupt = plan::interrupt()?;
    Ok(joining(&flags.join, "origin")?.run_origin(&origin, &interrupt)?)
}

/// Sends requests until the run is over.
///
/// # Errors
/// As for the origin.
pub(super) fn clients(flags: &ClientsFlags) -> Result<(), Failure> {
    let samples = &flags.samples;
    outcome::try_files(samples.samples.as_deref())?;
    let clients = ClientRole {
        threads: flags.threads,
        samples: samples
            .samples
            .clone()
            .map(|path| (path, samples.sample_every)),
        shaping: flags.shape,
    };
    let interrupt = plan::interrupt()?;
    Ok(joining(&flags.join, "clients")?.run_clients(&clients, &interrupt)?)
}

fn joining(flags: &JoinFlags, role: &str) -> Result<JoinSettings, Failure> {
    let name = flags.name.clone().unwrap_or_else(|| host_name(role));
    Ok(JoinSettings {
        within: Duration::from_secs(flags.wait),
        ..JoinSettings::new(plan::resolve(&flags.master)?, name, VERSION)
    })
}

/// Where a host has no name, the role and the process distinguish participants.
fn host_name(role: &str) -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => format!("{role}-{}", std::process::id()),
        name => format!("{name}-{}", std::process::id()),
    }
}
