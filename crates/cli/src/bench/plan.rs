//! From flags to a plan.

use super::VERSION;
use super::failure::scenario as scenario_failure;
use super::flags::{AboutFlags, ChangeFlags, ProxyFlags, ScenarioFlags, ThreadFlags};
use crate::messages::Failure;
use std::io::IsTerminal as _;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_bench::conduct::{ClientRole, LocalPlan, OriginRole, RunPlan};
use weir_measure::record::Mode;
use weir_workload::{Scenario, Workload};

/// The scenario of that name, changed as the flags say, not scaled yet.
pub(super) fn scenario(name: &str, changes: &ChangeFlags) -> Result<Scenario, Failure> {
    let mut scenario = read_scenario(name)?;
    let mut assignments: Vec<String> = Vec::new();
    if changes.keep_alive {
        assignments.extend(KEEP_ALIVE.map(str::to_owned));
    }
    if let Some(link) = &changes.link {
        assignments.push(format!("clients.link={link}"));
    }
    assignments.extend(changes.set.iter().cloned());
    scenario
        .set_all(assignments.iter().map(String::as_str))
        .map_err(|error| scenario_failure(name, &error))?;
    Ok(scenario)
}

/// What `--keep-alive` stands for.
const KEEP_ALIVE: [&str; 4] = [
    "clients.keep_alive=true",
    "clients.http=1.1",
    "origin.keep_alive=true",
    "origin.http=1.1",
];

fn read_scenario(name: &str) -> Result<Scenario, Failure> {
    let is_file = name.contains(['/', '.']) || Path::new(name).is_file();
    if !is_file || Scenario::names().any(|known| known == name) {
        return Scenario::built_in(name).map_err(|error| scenario_failure(name, &error));
    }
    let text = std::fs::read_to_string(name).map_err(|error| {
        Failure::usage(format!("cannot read scenario `{name}`"), error)
            .hint("`weir bench scenarios` lists those that are built in")
    })?;
    Scenario::parse(name, &text).map_err(|error| scenario_failure(name, &error))
}

/// The scenario with so many clients, and as many servers for each as before.
pub(super) fn with_clients(scenario: &Scenario, clients: u32) -> Result<Scenario, Failure> {
    let assignments = match &scenario.workload {
        Workload::Wpb(wpb) => {
            let servers = u64::from(clients) * u64::from(wpb.servers);
            let servers = servers.div_ceil(u64::from(wpb.clients.max(1))).max(1);
            vec![
                format!("workload.clients={clients}"),
                format!("workload.servers={servers}"),
            ]
        }
        Workload::Web(_) => vec![format!("workload.agents={clients}")],
        Workload::Hits(_) => vec![format!("workload.connections={clients}")],
        Workload::PolyMix(_) => {
            let cause = format!("the robots of `{}` follow from its rate", scenario.name);
            return Err(Failure::usage(format!("cannot have {clients} clients"), cause).hint("robots are the peak rate over 0.4: --set workload.peak_rate_per_s=40 makes 100"));
        }
    };
    let mut with = scenario.clone();
    with.set_all(assignments.iter().map(String::as_str))
        .map_err(|error| scenario_failure(&scenario.name, &error))?;
    Ok(with)
}

/// The scenario in so much of its time.
pub(super) fn scaled(scenario: &Scenario, factor: f64) -> Result<Scenario, Failure> {
    if !(factor.is_finite() && factor > 0.0) {
        return Err(Failure::usage(
            "cannot scale the scenario",
            format!("{factor} is not more than 0"),
        ));
    }
    if factor.to_bits() == 1.0_f64.to_bits() {
        return Ok(scenario.clone());
    }
    Ok(scenario.scaled(factor))
}

/// The scenario as it is run: changed, with so many clients, scaled.
pub(super) fn whole_scenario(
    what: &ScenarioFlags,
    clients: Option<u32>,
) -> Result<Scenario, Failure> {
    let changes = &what.changes;
    let mut scenario = scenario(&what.scenario, changes)?;
    if let Some(clients) = clients {
        scenario = with_clients(&scenario, clients)?;
    }
    scaled(&scenario, changes.scale)
}

/// What `weir bench master` is to do, and where the record goes.
pub(super) fn single_run(
    what: &ScenarioFlags,
    clients: Option<u32>,
    proxy: &ProxyFlags,
    out: Option<&PathBuf>,
) -> Result<(RunPlan, PathBuf), Failure> {
    let changes = &what.changes;
    let scenario = whole_scenario(what, clients)?;
    let address = proxy.proxy.as_deref();
    let plan = run_plan(scenario, changes.seed, address, proxy.gateway, &proxy.about)?;
    let by_name = || default_path(&[&plan.scenario.name, &plan.label], ".json");
    let out = out.cloned().unwrap_or_else(by_name);
    Ok((plan, out))
}

/// One run of many.
pub(super) fn run_plan(
    scenario: Scenario,
    seed: u64,
    proxy: Option<&str>,
    is_gateway: bool,
    about: &AboutFlags,
) -> Result<RunPlan, Failure> {
    if !(0.0..=1.0).contains(&about.errors_max) {
        let cause = format!("{} is no share from 0 to 1", about.errors_max);
        return Err(Failure::usage("cannot use `--errors-max`", cause));
    }
    let mode = match (proxy, is_gateway) {
        (None, _) => Mode::Direct,
        (Some(_), true) => Mode::Gateway,
        (Some(_), false) => Mode::Forward,
    };
    let proxy = proxy.map(resolve).transpose()?;
    let default = if proxy.is_none() { "origin" } else { "proxy" };
    Ok(RunPlan {
        scenario: Arc::new(scenario),
        seed,
        label: about.label.clone().unwrap_or_else(|| default.into()),
        proxy,
        mode,
        is_caching: !about.uncached,
        cache_bytes: about.cache_bytes.map(|size| size.bytes()),
        proxy_pid: about.proxy_pid,
        proxy_version: about.proxy_version.clone(),
        errors_share_max: about.errors_max,
        command: command(),
    })
}

/// An address and port, or a name and port.
pub(super) fn resolve(text: &str) -> Result<SocketAddr, Failure> {
    let bad = |cause: &dyn std::fmt::Display| {
        Failure::usage(format!("cannot use address `{text}`"), cause)
            .hint("an address has a port, such as 127.0.0.1:3128")
    };
    let mut addresses = text.to_socket_addrs().map_err(|error| bad(&error))?;
    addresses
        .next()
        .ok_or_else(|| bad(&"the name has no address"))
}

/// `127.0.0.1` or `127.0.0.1:8000`.
pub(super) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    text.parse::<IpAddr>()
        .map(|address| SocketAddr::new(address, 0))
        .map_err(|_| format!("`{text}` is no address such as 10.0.0.1 or 10.0.0.1:8000"))
}

/// All roles in this process.
pub(super) fn local_plan(threads: &ThreadFlags, samples: Option<(PathBuf, u32)>) -> LocalPlan {
    LocalPlan {
        clients: ClientRole {
            threads: threads.threads,
            samples,
            shaping: threads.shape,
        },
        origin: OriginRole {
            threads: threads.origin_threads,
            listen: threads.origin_listen,
        },
        version: VERSION.into(),
    }
}

/// How this process was called, so that a shell would take it.
fn command() -> String {
    let mut words = vec!["weir".to_owned()];
    words.extend(std::env::args().skip(1).map(|word| quoted(&word)));
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@+%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Whether stderr is a terminal.
pub(super) fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}

/// `bench/wpb-squid-20260302T093000Z` with whatever is behind it.
pub(super) fn default_path(parts: &[&str], suffix: &str) -> PathBuf {
    let stamp = weir_bench::record::stamp();
    PathBuf::from("bench").join(format!("{}-{stamp}{suffix}", file_name(parts)))
}

/// Words as a file's name.
pub(super) fn file_name(parts: &[&str]) -> String {
    let is_plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    let name: Vec<String> = parts
        .iter()
        .map(|part| part.chars().map(is_plain).collect())
        .collect();
    name.join("-")
}

/// Signals end runs from now on.
pub(super) fn interrupt() -> Result<weir_bench::conduct::Interrupt, Failure> {
    Ok(weir_bench::conduct::Interrupt::on_signals()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wpb_has_a_server_per_four_clients_and_polymix_takes_no_client_count() {
        let scenario = Scenario::built_in("wpb").expect("it is built in");
        for clients in [1, 8, 96] {
            let with = with_clients(&scenario, clients).expect("it can have them");
            let Workload::Wpb(wpb) = &with.workload else {
                panic!("another workload");
            };
            assert_eq!((wpb.clients, wpb.servers), (clients, clients.div_ceil(4)));
        }
        let polymix = Scenario::built_in("polymix3").expect("it is built in");
        let failure = with_clients(&polymix, 8).expect_err("robots follow from the rate");
        assert!(failure.hint.expect("a hint").contains("peak_rate"));
    }

    #[test]
    fn shell_word_is_quoted_where_the_shell_would_split_or_change_it() {
        for (word, expected) in [
            ("--seed=1", "--seed=1"),
            (
                "origin.latency=constant(3s)",
                "'origin.latency=constant(3s)'",
            ),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn origin_address_is_an_ip_address_whose_port_defaults_to_0() {
        let check = |text: &str, expected: Option<&str>| {
            let found = listen_address(text).ok().map(|address| address.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        check("10.0.0.1", Some("10.0.0.1:0"));
        check("10.0.0.1:8000", Some("10.0.0.1:8000"));
        check("[::1]:8000", Some("[::1]:8000"));
        check("::1", Some("[::1]:0"));
        check("localhost", None);
    }
}
