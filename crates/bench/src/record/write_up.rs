//! The record of a run.

use super::phases::{phases, series, total};
use super::tool::tool;
use super::verdict::verdict;
use crate::conduct::{Role, RunOutcome, RunPlan};
use crate::usage::ThreadLoad;
use std::collections::BTreeMap;
use weir_measure::record::{
    FORMAT, Generator, Host, Record, Rule, Subject, VERSION, WrongResponse,
};
use weir_measure::{float, share};
use weir_workload::{RunFacts, Workload, check_rules};

/// Wrong responses that a record holds; all of them are counted.
const WRONG_RESPONSES_MAX: usize = 100;

/// Writes up what was gathered. `version` is the program's.
#[must_use]
pub fn write_up(plan: &RunPlan, gathered: &RunOutcome, version: &str) -> Record {
    let clients = &gathered.clients;
    let rules = rules(plan, gathered);
    let verdict = verdict(plan, gathered, &rules);
    Record {
        format: FORMAT.into(),
        version: VERSION,
        tool: tool(version, &plan.command),
        started: started(gathered),
        seconds: gathered.seconds,
        host: host(gathered),
        versions: versions(plan, gathered, version),
        seed: plan.seed,
        scale: plan.scenario.scale,
        scenario: plan.scenario.to_toml(),
        scenario_name: plan.scenario.name.clone(),
        subject: subject(plan),
        parameters: parameters(plan),
        link_shaping: gathered.link_shaping,
        is_valid: verdict.reasons.is_empty(),
        reasons: verdict.reasons,
        warnings: verdict.warnings,
        rules,
        phases: phases(clients, &gathered.origin),
        total: total(clients, &gathered.origin),
        series: series(&clients.series),
        usage: gathered.usage.clone(),
        generator: generator(gathered),
        wrong_responses: wrong_responses(gathered),
        samples: (!gathered.samples.is_empty()).then(|| gathered.samples.join(" ")),
    }
}

/// This moment in a form for file names: `20260302T093000Z`.
#[must_use]
pub fn stamp() -> String {
    jiff::Timestamp::now()
        .strftime("%Y%m%dT%H%M%SZ")
        .to_string()
}

fn started(gathered: &RunOutcome) -> String {
    let started = jiff::Timestamp::try_from(gathered.started).unwrap_or_default();
    format!("{started:.0}")
}

/// That of the first clients.
fn host(gathered: &RunOutcome) -> Host {
    let mut clients = gathered.with_role(Role::Clients);
    clients
        .next()
        .map(|one| one.host.clone())
        .unwrap_or_default()
}

fn versions(plan: &RunPlan, gathered: &RunOutcome, version: &str) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::from([("weir bench".to_owned(), version.to_owned())]);
    for one in &gathered.participants {
        if one.version != version {
            versions.insert(format!("{} {}", one.role, one.name), one.version.clone());
        }
    }
    if let Some(proxy) = &plan.proxy_version {
        versions.insert("proxy".into(), proxy.clone());
    }
    versions
}

fn subject(plan: &RunPlan) -> Subject {
    Subject {
        label: plan.label.clone(),
        proxy: plan
            .proxy
            .map_or_else(String::new, |proxy| proxy.to_string()),
        mode: plan.mode,
        is_caching: plan.is_caching && plan.proxy.is_some(),
    }
}

/// What runs are drawn against.
fn parameters(plan: &RunPlan) -> BTreeMap<String, f64> {
    let mut parameters =
        BTreeMap::from([("clients".to_owned(), f64::from(plan.scenario.agents()))]);
    let link = plan.scenario.clients.link.as_ref();
    if let Some(bits_per_s) = link.and_then(|link| link.down_bits_per_s) {
        parameters.insert("link_bits_per_s".into(), float(bits_per_s));
    }
    if let Some(bytes) = plan.cache_bytes {
        parameters.insert("cache_bytes".into(), float(bytes));
    }
    parameters
}

/// Only the Wisconsin benchmark has rules.
fn rules(plan: &RunPlan, gathered: &RunOutcome) -> Vec<Rule> {
    let Workload::Wpb(wpb) = &plan.scenario.workload else {
        return Vec::new();
    };
    let machines = |role| u32::try_from(gathered.with_role(role).count()).unwrap_or(u32::MAX);
    let fetched = gathered.clients.phases.iter();
    let facts = RunFacts {
        client_machines: machines(Role::Clients),
        server_machines: machines(Role::Origin),
        clients: wpb.clients,
        servers: wpb.servers,
        latency: &plan.scenario.origin.latency,
        seconds: gathered.seconds,
        fetched_bytes: fetched.map(|phase| phase.counts.client.content_bytes).sum(),
        cache_bytes: plan.cache_bytes,
    };
    let outcomes = check_rules(&facts).into_iter();
    outcomes
        .map(|outcome| Rule {
            rule: outcome.rule,
            required: outcome.required,
            found: outcome.found,
            holds: outcome.holds,
        })
        .collect()
}

fn generator(gathered: &RunOutcome) -> Generator {
    let health = &gathered.clients.health;
    let (clients, origin) = (&gathered.client_load, &gathered.origin_load);
    let busy = |load: &ThreadLoad| share(load.busy_seconds, load.seconds);
    // threads of one process share its memory
    let memory_peak_bytes = if gathered.is_one_process {
        clients.memory_peak_bytes.max(origin.memory_peak_bytes)
    } else {
        clients.memory_peak_bytes + origin.memory_peak_bytes
    };
    Generator {
        late_share: health.late_share(),
        late_max_us: health.late_max_us,
        busy_seconds_share: busy(clients).max(busy(origin)),
        cpu_share: clients.cpu_share.max(origin.cpu_share),
        cpu_wait_share: clients.wait_share.max(origin.wait_share),
        links_planned_us: health.links.planned_us,
        links_late_us: health.links.late_us,
        link_slowest_share: health.link_slowest_share,
        queue_max: u64::from(health.queue_max),
        dropped: health.queue_full,
        memory_peak_bytes,
    }
}

/// The first of all participants.
fn wrong_responses(gathered: &RunOutcome) -> Vec<WrongResponse> {
    let mut wrong = gathered.clients.wrong_responses.clone();
    wrong.sort_by(|one, two| one.at_s.total_cmp(&two.at_s));
    wrong.truncate(WRONG_RESPONSES_MAX);
    wrong
}
