//! The course of a measurement: build, start everybody, warm up, go round, hold idle connections.

use super::affinity::Cores;
use super::contender::{CELLS, Contender, FLOOR, WEIR};
use super::options::Options;
use super::origin::Origin;
use super::record::Record;
use super::server::Server;
use super::template::Words;
use super::{idle, run};
use crate::failure::{During, Failure};
use crate::root;
use std::path::PathBuf;
use std::process::Stdio;
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
            programs.weir = Some(build(&["-p", "weir-cli", "--bin", "weir"], "weir")?);
        }
        if takes_part(FLOOR) {
            programs.floor = Some(build(&["-p", "xtask", "--example", "floor"], "floor")?);
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

/// Builds one program and asks cargo where it is.
fn build(what: &[&str], name: &str) -> Result<String, Failure> {
    let output = root::cargo()
        .args([
            "build",
            "--release",
            "--locked",
            "--message-format",
            "json-render-diagnostics",
        ])
        .args(what)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .during("run cargo build")?;
    if !output.status.success() {
        return Err(Failure::Refused(format!("{name} cannot be built")));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let named = messages.filter(|message| message["target"]["name"] == name);
    let executable = named
        .filter_map(|message| message["executable"].as_str().map(str::to_owned))
        .next_back();
    executable.ok_or_else(|| Failure::Outside(format!("cargo does not say where {name} is")))
}

/// A directory that is removed at the end.
#[derive(Debug)]
struct Workplace(PathBuf);

impl Workplace {
    fn make() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("weir-peers-{}", std::process::id()));
        std::fs::create_dir_all(&path).during(format_args!("make `{}`", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // what stays behind lies in the system's temporary directory and does no harm
        let _ = std::fs::remove_dir_all(&self.0);
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
    let files = idle::raise_file_limit(options.idle_connections)?;
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
    // each gets a fresh process for this: memory that the runs left free would hide what connections need
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
        let workplace = Workplace::make()?;
        let mut words = programs.words();
        words.set("FILES", files);
        words.set("USER", user_name());
        let life = life(options);
        let directory = workplace.0.join("origin");
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
        let directory = self.workplace.0.join(format!("{}{suffix}", contender.name));
        Server::start(contender, &directory, &self.words, self.cores, self.life)
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

/// Whom nginx shall work as: itself.
fn user_name() -> String {
    let id = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut names = users.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    });
    names.next().unwrap_or_else(|| "nobody".to_owned())
}
