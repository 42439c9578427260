//! The schedule: for each step fresh proxies, a `weir bench run` against each, and a record; then
//! the report.

use super::plan::{Plan, Variant};
use super::{Options, is_gateway, set_store};
use crate::process::affinity::{self, Cores};
use crate::process::guarded::{self, GuardedProcess};
use crate::proxy::contender::{Contender, WEIR};
use crate::proxy::server::{self, Place, Server};
use crate::proxy::template::Words;
use crate::record::benchmark::Participants;
use crate::record::host;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xtask::failure::{During, Failure};
use xtask::program;
use xtask::workplace::Workplace;

/// Where Debian keeps the modules of Apache.
const APACHE_MODULES: &str = "/usr/lib/apache2/modules";

/// How much longer than expected a run may take: four times, and a minute for those that take no
/// time.
const PATIENCE: f64 = 4.0;
const PATIENCE_LEAST_S: f64 = 60.0;

/// How long the report may take.
const REPORT_MAX: Duration = Duration::from_secs(300);

/// What became of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) report: PathBuf,
    /// Runs that are missing or not valid: a line each.
    pub(crate) troubles: Vec<String>,
}

/// Where and how everything runs.
struct Schedule<'a> {
    options: &'a Options,
    /// The options' plan, and then the one that follows it.
    plan: &'static Plan,
    out: &'a Path,
    words: Words,
    versions: Vec<(&'static str, String)>,
    weir: String,
    cores: Cores,
    scale: f64,
    life: Duration,
    workplace: Workplace,
    records: Vec<PathBuf>,
    troubles: Vec<String>,
    /// Proxies that have failed where the load rises until then.
    failed: Vec<&'static str>,
}

/// A proxy and the benchmark that drives it. The benchmark ends first.
struct Run {
    contender: &'static Contender,
    variant: Variant,
    record: PathBuf,
    bench: GuardedProcess,
    log: PathBuf,
    _server: Server,
}

/// Measures all proxies that are present, and writes records, report and figures into `out`.
pub(super) fn run(
    options: &Options,
    participants: Participants,
    out: &Path,
) -> Result<Outcome, Failure> {
    let Participants {
        present, mut words, ..
    } = participants;
    let present = &present[..];
    let weir = program::build(&["-p", "weir-cli", "--bin", "weir"], WEIR)?;
    std::fs::create_dir_all(out).during(format_args!("make `{}`", out.display()))?;
    words.set("MODULES", APACHE_MODULES);
    let version =
        |contender: &&'static Contender| (contender.name, host::version(contender.version, &words));
    let versions = present.iter().map(version).collect();
    let cores = Cores::choose()?;
    let scale = options.scale(turns(options, present.len()));
    let mut schedule = Schedule {
        options,
        plan: options.plan(),
        out,
        words,
        versions,
        weir,
        cores,
        scale,
        life: life(options.plan(), scale),
        workplace: Workplace::make("bench")?,
        records: Vec::new(),
        troubles: Vec::new(),
        failed: Vec::new(),
    };
    // this process, the benchmark and all that is started from here stay there; the proxies alone
    // are sent to their own core
    affinity::stay_on(cores.load)?;
    for variants in steps(options) {
        schedule.step(&variants, present);
    }
    // given numbers of clients are the whole schedule
    let then = options.plan().then.filter(|_| options.clients.is_empty());
    if let Some(then) = then.and_then(Plan::named) {
        schedule.plan = then;
        schedule.scale = then.scale;
        schedule.life = life(then, then.scale);
        for variants in then.steps() {
            schedule.step(&variants, present);
        }
    }
    schedule.report()
}

/// How long a run may take before it is given up.
fn life(plan: &Plan, scale: f64) -> Duration {
    Duration::from_secs_f64((plan.seconds * scale).mul_add(PATIENCE, PATIENCE_LEAST_S))
}

/// The steps of the scenario, or those for the numbers of clients that were given.
fn steps(options: &Options) -> Vec<Vec<Variant>> {
    let mut steps: Vec<Vec<Variant>> = options.plan().steps().collect();
    if options.clients.is_empty() {
        return steps;
    }
    steps.truncate(1);
    let Some(first) = steps.pop() else {
        return Vec::new();
    };
    let clients = options.clients.iter().map(|&clients| Some(clients));
    let with = |clients| {
        first.iter().map(move |variant| Variant {
            clients,
            ..*variant
        })
    };
    clients.map(|clients| with(clients).collect()).collect()
}

fn turns(options: &Options, peers: usize) -> usize {
    let steps = steps(options);
    if options.is_together() {
        return steps.len();
    }
    steps.iter().map(Vec::len).sum::<usize>() * peers
}

impl Schedule<'_> {
    fn step(&mut self, variants: &[Variant], present: &[&'static Contender]) {
        let goes_on = |contender: &&&Contender| !self.failed.contains(&contender.name);
        let present = present.iter().filter(goes_on);
        let of = |&variant: &Variant| present.clone().map(move |&contender| (contender, variant));
        let all: Vec<(&'static Contender, Variant)> = variants.iter().flat_map(of).collect();
        if self.options.is_together_in(self.plan) {
            self.turn(&all);
            return;
        }
        for one in &all {
            self.turn(std::slice::from_ref(one));
        }
    }

    /// Runs that go on at the same time.
    fn turn(&mut self, turn: &[(&'static Contender, Variant)]) {
        let mut runs = Vec::new();
        for &(contender, variant) in turn {
            eprintln!("{}: {}", self.plan.name, called(contender, variant));
            match self.begin(contender, variant) {
                Ok(run) => runs.push(run),
                Err(failure) => self.trouble(contender, variant, &failure.to_string()),
            }
        }
        for run in runs {
            self.end(run);
        }
    }

    fn trouble(&mut self, contender: &Contender, variant: Variant, what: &str) {
        let line = format!("{}: {}: {what}", self.plan.name, called(contender, variant));
        eprintln!("  {line}");
        self.troubles.push(line);
    }

    fn begin(&self, contender: &'static Contender, variant: Variant) -> Result<Run, Failure> {
        let name = self.file_name(contender, variant);
        let directory = self.workplace.path().join(&name);
        let mut words = self.words.clone();
        set_store(&mut words, self.cache_mib(), variant.is_caching);
        let origin_port = server::take_port()?;
        words.set("ORIGIN_HOST", Ipv4Addr::LOCALHOST);
        words.set("ORIGIN_PORT", origin_port);
        let place = Place {
            core: Some(self.cores.server),
            ..Place::local(self.life)
        };
        let mut server = Server::launch(contender, &directory, &words, &place)?;
        server.wait_until_it_listens()?;
        let record = self.out.join(format!("{name}.json"));
        let log = directory.join("bench");
        let arguments = self.arguments(contender, variant, &server, origin_port, &record);
        let mut command = guarded::command(&arguments, self.life);
        let bench = GuardedProcess::spawn_logged(Some(self.cores.load), &mut command, &log)?;
        Ok(Run {
            contender,
            variant,
            record,
            bench,
            log,
            _server: server,
        })
    }

    fn cache_mib(&self) -> u32 {
        self.options.cache_mib.unwrap_or(self.plan.cache_mib)
    }

    /// The plan that follows another has its name in those of its files.
    fn file_name(&self, contender: &Contender, variant: Variant) -> String {
        let name = file_name(contender, variant);
        if self.plan.name == self.options.scenario {
            return name;
        }
        format!("{}-{name}", self.plan.name)
    }

    fn arguments(
        &self,
        contender: &Contender,
        variant: Variant,
        server: &Server,
        origin_port: u16,
        record: &Path,
    ) -> Vec<String> {
        let words = [&self.weir, "bench", "run", self.plan.name];
        let mut arguments = words.map(str::to_owned).to_vec();
        let mut option = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
        option("--proxy", server.address().to_string());
        option("--proxy-pid", server.id().to_string());
        option("--label", contender.name.to_owned());
        option("--seed", self.options.seed.to_string());
        option("--scale", self.scale.to_string());
        option("--out", record.display().to_string());
        option("--cache-bytes", format!("{}MiB", self.cache_mib()));
        let mut versions = self.versions.iter();
        if let Some((_, version)) = versions.find(|(name, _)| *name == contender.name) {
            option("--proxy-version", version.clone());
        }
        if let Some(clients) = variant.clients {
            option("--clients", clients.to_string());
        }
        if !variant.has_link {
            option("--set", "clients.link=none".to_owned());
        }
        for set in &self.options.set {
            option("--set", set.clone());
        }
        if is_gateway(contender) {
            option("--origin-listen", format!("127.0.0.1:{origin_port}"));
            arguments.push("--gateway".to_owned());
        }
        if !variant.is_caching {
            arguments.push("--uncached".to_owned());
        }
        arguments
    }

    fn end(&mut self, mut run: Run) {
        let status = run.bench.wait();
        let said = last_line(&run.log);
        let what = match status {
            Ok(status) if status.success() => None,
            // it was measured and is not valid: the record says why
            Ok(status) if status.code() == Some(1) && run.record.is_file() => {
                if self.plan.is_until_failure {
                    // what was looked for
                    eprintln!("  no more clients for {}: {said}", run.contender.name);
                    self.failed.push(run.contender.name);
                    None
                } else {
                    Some(format!("not valid: {said}"))
                }
            }
            Ok(status) => Some(format!("`weir bench` ended with {status}: {said}")),
            Err(error) => Some(format!("cannot wait for `weir bench`: {error}")),
        };
        if let Some(what) = what {
            self.trouble(run.contender, run.variant, &what);
        }
        // one report shows all records; the page that `weir bench run` puts beside each has nothing
        // else
        let _ = std::fs::remove_file(run.record.with_extension("html"));
        if run.record.is_file() {
            self.records.push(run.record);
        }
    }

    fn report(self) -> Result<Outcome, Failure> {
        let report = self.out.join("report.html");
        if self.records.is_empty() {
            let why = self.troubles.join("; ");
            return Err(Failure::Outside(format!("no run left a record: {why}")));
        }
        let mut arguments = [&self.weir, "bench", "report"].map(str::to_owned).to_vec();
        let paths = self
            .records
            .iter()
            .map(|record| record.display().to_string());
        arguments.extend(paths);
        for (option, path) in [("--out", &report), ("--figures", &self.out.join("figures"))] {
            arguments.extend([option.to_owned(), path.display().to_string()]);
        }
        guarded::output(self.cores.load, &arguments, REPORT_MAX)?;
        Ok(Outcome {
            report,
            troubles: self.troubles,
        })
    }
}

/// A run as it is spoken of.
fn called(contender: &Contender, variant: Variant) -> String {
    let clients = variant
        .clients
        .map_or_else(String::new, |clients| format!(", {clients} clients"));
    let caching = if variant.is_caching { "" } else { ", no cache" };
    let link = if variant.has_link { "" } else { ", no link" };
    format!("{}{clients}{caching}{link}", contender.name)
}

fn file_name(contender: &Contender, variant: Variant) -> String {
    called(contender, variant)
        .replace(", ", "-")
        .replace(' ', "-")
}

/// What a program said last.
fn last_line(log: &Path) -> String {
    let said = std::fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    // a hint says what to do, the line before it why
    let is_telling = |line: &&str| !line.trim().is_empty() && !line.starts_with("hint:");
    let last = said.lines().rfind(is_telling);
    last.unwrap_or("it said nothing").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::scenario::{CONTENDERS, parsed};

    #[test]
    fn requested_client_counts_become_the_steps() {
        let steps = steps(&parsed("--scenario wpb --clients 8,24"));
        let clients: Vec<Option<u32>> = steps.iter().map(|step| step[0].clients).collect();
        assert_eq!(clients, [Some(8), Some(24)]);
        assert!(steps.iter().all(|step| step.len() == 2));
    }

    #[test]
    fn every_run_has_its_own_record_file() {
        let options = parsed("--scenario wpb");
        let mut names: Vec<String> = Vec::new();
        for variant in steps(&options).into_iter().flatten() {
            names.extend(
                CONTENDERS
                    .iter()
                    .map(|contender| file_name(contender, variant)),
            );
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!((names.len(), count), (72, 72));
    }

    #[test]
    fn runs_one_by_one_take_a_turn_for_each_peer_and_variant() {
        assert_eq!(turns(&parsed("--scenario wpb"), 4), 6);
        assert_eq!(turns(&parsed("--scenario wpb --together no"), 4), 48);
        assert_eq!(turns(&parsed("--scenario hits"), 4), 4);
    }
}
