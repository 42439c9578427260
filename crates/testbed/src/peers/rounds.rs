//! The rounds of a measurement: start all proxies, warm up, measure in turn, hold idle connections.

use super::cells::CELLS;
use super::{Options, Record, run};
use crate::origin::Origin;
use crate::process::affinity::Cores;
use crate::proxy::contender::Contender;
use crate::proxy::idle::{self, Idle};
use crate::proxy::server::{Place, Server};
use crate::proxy::template::Words;
use crate::record::benchmark::Participants;
use std::time::Duration;
use xtask::failure::{During, Failure};
use xtask::workplace::Workplace;

/// Everything that runs during a measurement. Servers end before their directory goes.
struct Bench {
    servers: Vec<(&'static Contender, Server)>,
    origin: Origin,
    words: Words,
    cores: Cores,
    life: Duration,
    workplace: Workplace,
}

/// Measures all proxies that are present, into the record.
pub(super) fn fill(record: &mut Record, participants: &Participants) -> Result<(), Failure> {
    let options = record.settings.clone();
    let present = &participants.present[..];
    let mut bench = Bench::open(record.figures.cores, &options, participants)?;
    bench.start_all(record, present);
    for (contender, server) in &bench.servers {
        for cell in CELLS.iter().filter(|cell| contender.takes_part_in(cell)) {
            if let Err(trouble) = run::warm_up(contender, server, cell, bench.cores) {
                eprintln!("{}: {}: {trouble}", contender.name, cell.name);
            }
        }
    }
    for round in 1..=options.rounds {
        eprintln!("round {round} of {}", options.rounds);
        bench.round(record, round, options.seconds);
    }
    // each gets a fresh process for this: memory that the runs left free would hide what
    // connections need
    bench.servers.clear();
    if options.idle_connections > 0 {
        bench.hold_idle(record, options.idle_connections, present);
    }
    Ok(())
}

impl Bench {
    fn open(cores: Cores, options: &Options, participants: &Participants) -> Result<Self, Failure> {
        let workplace = Workplace::make("peers")?;
        let life = life(options);
        let place = Place {
            core: Some(cores.load),
            ..Place::local(life)
        };
        let origin = Origin::start(&workplace.path().join("origin"), &place, None)?;
        Ok(Self {
            servers: Vec::new(),
            words: origin.words(&participants.words, place.host),
            origin,
            cores,
            life,
            workplace,
        })
    }

    fn start(&self, contender: &Contender, suffix: &str) -> Result<Server, Failure> {
        let name = format!("{}{suffix}", contender.name);
        let directory = self.workplace.path().join(name);
        let place = Place {
            core: Some(self.cores.server),
            ..Place::local(self.life)
        };
        Server::start(contender, &directory, &self.words, &place, CELLS[0].path)
    }

    /// One that does not start is left out; the others go on.
    fn start_all(&mut self, record: &mut Record, present: &[&'static Contender]) {
        for contender in present {
            if let Some(server) = record.kept(contender.name, self.start(contender, "")) {
                self.servers.push((contender, server));
            }
        }
    }

    fn round(&self, record: &mut Record, round: u32, seconds: u32) {
        for cell in &CELLS {
            for (contender, server) in &self.servers {
                if !contender.takes_part_in(cell) {
                    continue;
                }
                let how = (seconds, self.cores);
                let place = format!("{}, round {round}, {}", contender.name, cell.name);
                let run = run::measure(round, contender, server, &self.origin, cell, how);
                if let Some(run) = record.kept(place, run) {
                    eprintln!("  {}", run.summary());
                    record.figures.runs.push(run);
                }
            }
        }
    }

    fn idle(&self, contender: &Contender, connections: u32) -> Result<Idle, Failure> {
        let server = self.start(contender, "-idle")?;
        let [cell, ..] = &CELLS;
        run::warm_up(contender, &server, cell, self.cores)
            .during(format_args!("warm up {}", contender.name))?;
        let (name, path) = (contender.name, cell.path);
        Ok(idle::measure(name, &server, connections, path))
    }

    fn hold_idle(&self, record: &mut Record, connections: u32, present: &[&'static Contender]) {
        let is_cache = |contender: &&&Contender| contender.is_cache;
        for contender in present.iter().filter(is_cache) {
            let name = contender.name;
            if record.left_out.contains_key(name) {
                continue;
            }
            let idle = self.idle(contender, connections);
            if let Some(idle) = record.kept(format!("{name} (idle)"), idle) {
                let trouble = idle.trouble.as_deref().unwrap_or_default();
                let bytes = idle.bytes_per_connection();
                eprintln!("  idle {name:<14} {bytes} bytes a connection {trouble}");
                record.figures.idle.push(idle);
            }
        }
    }
}

/// Generous: a child that is still there after this has been forgotten.
fn life(options: &Options) -> Duration {
    let runs = u64::from(options.rounds) * u64::from(options.seconds + 1) * 40;
    Duration::from_secs(600 + runs)
}
