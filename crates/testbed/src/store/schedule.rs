//! The schedule of a measurement: each store is filled with misses, then the stored responses of
//! all are requested in turn, round after round, and another store of each is killed and started
//! again.

use super::setup::{MeasuredProxy, Setup};
use super::{Record, restart};
use crate::process::affinity;
use crate::record::benchmark::Participants;
use xtask::failure::Failure;

/// Measures all proxies that are present, into the record.
pub(super) fn run(record: &mut Record, participants: &Participants) -> Result<(), Failure> {
    let (options, cores) = (record.settings.clone(), record.figures.cores);
    let options = &options;
    let Participants { present, words, .. } = participants;
    // load, origin and all that is started from here stay there; the server alone is sent to its
    // own core
    affinity::stay_on(cores.load)?;
    let setup = Setup::start(words, cores)?;
    let mut proxies = Vec::new();
    for &contender in present {
        eprintln!("{}: fill", contender.name);
        let mut proxy = MeasuredProxy::new(contender, options.cgroup_mib)?;
        if let Err(failure) = setup.fill(&mut proxy, options) {
            proxy.fail(record, "fill", &failure);
        }
        proxies.push(proxy);
    }
    for round in 1..=options.rounds {
        for proxy in &mut proxies {
            eprintln!("{}: hits, round {round}", proxy.contender.name);
            if let Err(failure) = setup.hit(proxy, options, round) {
                proxy.fail(record, "hits", &failure);
            }
        }
    }
    proxies.iter_mut().for_each(|proxy| proxy.server = None);
    for mut proxy in proxies {
        if options.responses > 0 {
            eprintln!("{}: restart", proxy.contender.name);
            match restart::measure(&setup, &proxy, options) {
                Ok(restart) => proxy.row.restart = Some(restart),
                Err(failure) => proxy.fail(record, "restart", &failure),
            }
        }
        eprintln!("  {:?}", proxy.row);
        record.figures.rows.push(proxy.row);
    }
    Ok(())
}
