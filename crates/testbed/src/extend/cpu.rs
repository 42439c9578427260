//! CPU time of requests, all cases in turn, in the bed of `peers`, each between two runs of no
//! module.

use super::Record;
use super::cases::{BASELINE, Case, Work};
use super::copy;
use super::setup::Setup;
use crate::client::get;
use crate::origin::Origin;
use crate::peers::{self, Cell};
use crate::proxy::server::{Place, Server};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use xtask::failure::{During, Failure};

/// A child that is still there after this has been forgotten.
const LIFE: Duration = Duration::from_secs(2 * 3600);

pub(super) const HIT_256K: &str = "hit 256 KiB";

/// The kinds of requests.
pub(super) static CELLS: [Cell; 3] = [
    Cell::hit(peers::HIT_1K, "/hit/1k?size=1024", 1 << 10),
    Cell::hit(HIT_256K, "/hit/256k?size=262144", 256 << 10),
    Cell::forward(peers::FORWARD_1K, "/forward/1k?size=1024&store=no", 1 << 10),
];

/// Measures all cases, into the record.
pub(super) fn measure(record: &mut Record, setup: &Setup<'_>) -> Result<(), Failure> {
    let (seconds, rounds) = (record.settings.seconds, record.settings.rounds);
    let cores = record.figures.cores;
    let directory = setup.directory.join("cpu");
    let place = |core| Place {
        core: Some(core),
        ..Place::local(LIFE)
    };
    let origin = Origin::start(&directory.join("origin"), &place(cores.load), None)?;
    let mut servers: Vec<(&'static Case, Server)> = Vec::new();
    let has_cell = |case: &&Case| CELLS.iter().any(|cell| takes_part_in(case, cell));
    for case in setup.cases.iter().copied().filter(has_cell) {
        let server = setup.words(case).and_then(|words| {
            let words = origin.words(&words, place(cores.server).host);
            let directory = directory.join(case.file_name());
            let place = place(cores.server);
            let server = Server::start(&case.contender, &directory, &words, &place, CELLS[0].path)?;
            check_fields(case, &server).map(|()| server)
        });
        if let Some(server) = record.kept(format!("{}, CPU", case.name()), server) {
            servers.push((case, server));
        }
    }
    for (case, server) in &servers {
        for cell in CELLS.iter().filter(|cell| takes_part_in(case, cell)) {
            if let Err(trouble) = peers::warm_up(&case.contender, server, cell, cores) {
                eprintln!("{}: {}: {trouble}", case.name(), cell.name);
            }
        }
    }
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        let copied = copy::measure(cores.server);
        if let Some(copy_us) = record.kept(format!("copy, round {round}"), copied) {
            eprintln!("  a copy of 256 KiB: {copy_us:.1} us");
            record.figures.copies_us.push(copy_us);
        }
        for cell in &CELLS {
            let run = |record: &mut Record, (case, server): &(&'static Case, Server)| {
                let how = (seconds, cores);
                let run = peers::measure(round, &case.contender, server, &origin, cell, how);
                let place = format!("{}, round {round}, {}", case.name(), cell.name);
                let run = record.kept(place, run)?;
                eprintln!("  {}", run.summary());
                let cpu_us = run.trouble.is_none().then(|| run.cpu_us_per_request());
                record.figures.runs.push(run);
                cpu_us
            };
            let mut turns = servers.iter().filter(|(case, _)| takes_part_in(case, cell));
            let Some(baseline) = turns.next().filter(|(case, _)| case.name() == BASELINE) else {
                continue;
            };
            let mut before = run(record, baseline);
            for server in turns {
                let cpu_us = run(record, server);
                let after = run(record, baseline);
                if let (Some(cpu_us), Some(before), Some(after)) = (cpu_us, before, after) {
                    record.figures.pairs.push(Pair {
                        round,
                        case: server.0.name().to_owned(),
                        cell: cell.name.to_owned(),
                        ratio: cpu_us / f64::midpoint(before, after),
                    });
                }
                before = after;
            }
        }
    }
    Ok(())
}

/// The CPU time of a request beside that of one without a module: of the runs of no module just
/// before and just after. A shared machine is faster for a minute and slower for the next one, by
/// more than what is measured here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Pair {
    pub(super) round: u32,
    pub(super) case: String,
    pub(super) cell: String,
    pub(super) ratio: f64,
}

/// A module that is not called costs little.
fn check_fields(case: &Case, server: &Server) -> Result<(), Failure> {
    let answer = get::get_once(server.address(), CELLS[0].path).during("request a response")?;
    if answer.is_probed == case.work.adds_fields() {
        return Ok(());
    }
    let what = format!("field of the module: {}", answer.is_probed);
    Err(Failure::Refused(what))
}

/// Content of 256 KiB is for what changes content, and for what that is compared with.
fn takes_part_in(case: &Case, cell: &Cell) -> bool {
    match case.work {
        Work::Baseline | Work::Body => true,
        Work::Enabled | Work::Empty | Work::Headers => cell.name != HIT_256K,
        // the load does not accept it
        Work::Compressed => false,
    }
}
