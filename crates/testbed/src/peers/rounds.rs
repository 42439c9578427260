//! The course of a measurement: build, start everybody, warm up, go round, hold idle connections.

use super::contender::{CELLS, FLOOR};
use super::options::Options;
use super::origin::Origin;
use super::record::Record;
use super::{idle, run};
use crate::failure::{During, Failure};
use crate::host;
use crate::process::affinity::Cores;
use crate::process::files;
use crate::process::workplace::Workplace;
use crate::proxy::contender::{Contender, WEIR};
use crate::proxy::program;
use crate::proxy::server::{Place, Server};
use crate::proxy::template::Words;
use std::net::Ipv4Addr;
use std::time::Duration;

/// What was built from this repository.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    weir: Option<String>,
    floor: Option<String>,
}

impl Programs {
    /// Builds, in release, what takes part.
    pub(crate) fn build(present: &[&'static Contender]) -> Result<Self, Failure> {
        let takes_part = |name: &str| present.iter().any(|contender| contender.name == name);
        let mut programs = Self::default();
        if takes_part(WEIR) {
            programs.weir = Some(program::build(
                &["-p", "weir-cli", "--bin", "weir"],
                "weir",
            )?);
        }
        if takes_part(FLOOR) {
            programs.floor = Some(program::build(
                &["-p", "weir-testbed", "--example", "floor"],
                "floor",
            )?);
        }
        Ok(programs)
    }

    /// The words that name them in commands.
    pub(crate) fn words(&self) -> Words {
        let mut words = Words::default();
        words.set("WEIR", self.weir.as_deref().unwrap_or("weir"));
        words.set("FLOOR", self.floor.as_deref().unwrap_or("floor"));
        words
    }
}

/// Everything that runs during a measurement. Servers end before their directory goes.
struct Bench {
    servers: Vec<(&'static Contender, Server)>,
    origin: Origin,
    words: Words,
    cores: Cores,
    life: Duration,
    workplace: Workplace,
}

/// Measures everybody who is present, into the record.
pub(crate) fn fill(
    record: &mut Record,
    options: &Options,
    programs: &Programs,
    present: &[&'static Contender],
) -> Result<(), Failure> {
    let files = files::raise_limit(options.idle_connections, "`--idle N`")?;
    let mut bench = Bench::open(record.cores, options, programs, files)?;
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
    fn open(
        cores: Cores,
        options: &Options,
        programs: &Programs,
        files: u64,
    ) -> Result<Self, Failure> {
        let workplace = Workplace::make("peers")?;
        let mut words = programs.words();
        words.set("FILES", files);
        words.set("USER", host::user_name());
        let life = life(options);
        let directory = workplace.path().join("origin");
        std::fs::create_dir_all(&directory).during("make the origin's directory")?;
        let origin = Origin::start(&directory, &words, cores, life)?;
        words.set("ORIGIN", format_args!("127.0.0.1:{}", origin.port()));
        words.set("ORIGIN_HOST", "127.0.0.1");
        words.set("ORIGIN_PORT", origin.port());
        Ok(Self {
            servers: Vec::new(),
            origin,
            words,
            cores,
            life,
            workplace,
        })
    }

    fn start(&self, contender: &Contender, suffix: &str) -> Result<Server, Failure> {
        let directory = self
            .workplace
            .path()
            .join(format!("{}{suffix}", contender.name));
        let place = Place {
            host: Ipv4Addr::LOCALHOST,
            core: Some(self.cores.server),
            within: &[],
            life: self.life,
        };
        let mut server = Server::launch(contender, &directory, &self.words, &place)?;
        server.wait_until_it_answers("/hit/1k")?;
        Ok(server)
    }

    /// One that does not start is left out; the others go on.
    fn start_all(&mut self, record: &mut Record, present: &[&'static Contender]) {
        for contender in present {
            match self.start(contender, "") {
                Ok(server) => self.servers.push((contender, server)),
                Err(failure) => {
                    eprintln!("{}: {failure}", contender.name);
                    record
                        .left_out
                        .insert(contender.name.to_owned(), failure.to_string());
                }
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
                match run::measure(round, contender, server, &self.origin, cell, how) {
                    Ok(run) => {
                        eprintln!("  {}", run.summary());
                        record.runs.push(run);
                    }
                    Err(failure) => {
                        let place = format!("{}, round {round}, {}", contender.name, cell.name);
                        eprintln!("  {place}: {failure}");
                        record.left_out.insert(place, failure.to_string());
                    }
                }
            }
        }
    }

    fn hold_idle(&self, record: &mut Record, connections: usize, present: &[&'static Contender]) {
        let caches = present.iter().filter(|contender| contender.is_cache);
        for contender in caches
            .filter(|contender| !record.left_out.contains_key(contender.name))
            .collect::<Vec<_>>()
        {
            let measured = self
                .start(contender, "-idle")
                .and_then(|server| idle::measure(contender, &server, connections, self.cores));
            match measured {
                Ok(idle) => {
                    let trouble = idle.trouble.as_deref().unwrap_or_default();
                    let bytes = idle.bytes_per_connection();
                    eprintln!(
                        "  idle {:<14} {bytes} bytes a connection {trouble}",
                        contender.name
                    );
                    record.idle.push(idle);
                }
                Err(failure) => {
                    eprintln!("  idle {}: {failure}", contender.name);
                    record
                        .left_out
                        .insert(format!("{} (idle)", contender.name), failure.to_string());
                }
            }
        }
    }
}

/// Generous: a child that is still there after this has been forgotten.
fn life(options: &Options) -> Duration {
    let runs = u64::from(options.rounds) * u64::from(options.seconds + 1) * 40;
    Duration::from_secs(600 + runs)
}
