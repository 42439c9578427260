//! Whether a run is valid, and if not why not.
//!
//! A run is valid when its numbers are true: no response was wrong, client and origin counts agree,
//! all took part to the end, and the generator kept its own time. Neither the proxy's results nor
//! the rules of a benchmark decide whether a run is valid.

use super::audit::audit;
use crate::conduct::{RunOutcome, RunPlan};
use crate::origin::connections_for;
use crate::tally::RequestCounts;
use std::collections::BTreeMap;
use std::time::Duration;
use weir_measure::record::Rule;
use weir_measure::share;

/// Reasons why a run is not valid, and warnings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) reasons: Vec<String>,
    pub(super) warnings: Vec<String>,
}

/// A thread that waited for a processor longer than this share of the time is worth a warning:
/// other processes of the machine, the proxy perhaps, took it.
const WAIT_SHARE_MAX: f64 = 0.10;

/// Hits beyond what is offered are worth a warning above this share of the requests: agents that
/// send requests at the same time have no order, so what one of them found may count as offered to
/// another.
const BEYOND_OFFERED_SHARE_MAX: f64 = 0.01;

/// Judges a run.
pub(super) fn verdict(plan: &RunPlan, gathered: &RunOutcome, rules: &[Rule]) -> Verdict {
    let mut verdict = Verdict::default();
    verdict.participants(gathered);
    let mut counts = RequestCounts::default();
    for phase in &gathered.clients.phases {
        counts.merge(&phase.counts);
    }
    verdict.wrong_responses(&counts);
    verdict.counts_agree(gathered);
    verdict.errors(plan, gathered, &counts);
    verdict.generator(plan, gathered);
    verdict.rules(plan, rules);
    verdict.notes(gathered, &counts);
    verdict
}

/// Is this the generator's limit, or the origin's? Nothing is known of the proxy then: a request
/// that failed may not be its doing.
pub(crate) fn is_of_generator(reason: &str) -> bool {
    let beginnings = [
        "The generator ",
        "The queue of an agent ",
        "The origin was out of ",
    ];
    beginnings.iter().any(|begin| reason.starts_with(begin)) || reason.contains(ORIGIN_FULL)
}

/// In the reason why an origin that has as many connections as it takes is no origin to measure
/// with.
const ORIGIN_FULL: &str = " connections waited because the origin ";

impl Verdict {
    fn because(&mut self, reason: impl Into<String>) {
        self.reasons.push(reason.into());
    }

    fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    fn participants(&mut self, gathered: &RunOutcome) {
        if gathered.is_interrupted {
            self.because(format!(
                "It was interrupted after {:.0} s.",
                gathered.seconds
            ));
        }
        self.reasons.extend(gathered.lost.iter().cloned());
    }

    fn wrong_responses(&mut self, counts: &RequestCounts) {
        let client = &counts.client;
        if client.wrong_count() == 0 {
            return;
        }
        self.because(format!(
            "{} of {} responses were not what the origin says: {}.",
            client.wrong_count(),
            client.requests,
            words(&client.wrong)
        ));
    }

    /// Without the counts of a lost participant the rest cannot agree.
    fn counts_agree(&mut self, gathered: &RunOutcome) {
        if !gathered.lost.is_empty() {
            return;
        }
        let audit = audit(&gathered.clients, &gathered.origin);
        self.reasons.extend(audit.imbalances);
        self.warnings.extend(audit.notes);
    }

    fn errors(&mut self, plan: &RunPlan, gathered: &RunOutcome, counts: &RequestCounts) {
        let errors = counts.client.error_count();
        let words = words(&counts.client.errors) + &first_refusal(gathered);
        if counts.client.answered() == 0 {
            self.because(match errors {
                0 => "No request was answered.".to_owned(),
                errors => format!("No request was answered; {errors} failed: {words}."),
            });
            return;
        }
        if errors == 0 {
            return;
        }
        let origin = gathered.origin.total();
        let faulted = &origin.faulted;
        let wanted = origin.aborted
            + faulted.cut
            + faulted.reset
            + faulted.hang
            + faulted.wrong_length
            + faulted.status;
        let unwanted = errors.saturating_sub(wanted);
        let share = share(unwanted, counts.client.requests);
        // an interrupted run leaves requests unfinished
        if share > plan.errors_share_max && !gathered.is_interrupted {
            self.because(format!(
                "{unwanted} of {} requests failed, which is {:.2} %; at most {:.2} % may: {words}.",
                counts.client.requests,
                100.0 * share,
                100.0 * plan.errors_share_max
            ));
        } else {
            self.warn(format!(
                "{errors} of {} requests failed: {words}.",
                counts.client.requests
            ));
        }
    }

    fn generator(&mut self, plan: &RunPlan, gathered: &RunOutcome) {
        self.reasons.extend(gathered.clients.health.reasons());
        let loads = [
            ("clients", &gathered.client_load),
            ("the origin", &gathered.origin_load),
        ];
        let overloads = loads.iter().filter_map(|(role, load)| load.overload(role));
        self.reasons.extend(overloads);
        if gathered.origin.accept_failures > 0 {
            self.because(format!(
                "The origin was out of descriptors or memory {} times when a connection came.",
                gathered.origin.accept_failures
            ));
        }
        let waited = gathered.origin.waiting_connections;
        if waited > 0 {
            self.because(format!(
                "{waited}{ORIGIN_FULL}had as many open as it takes ({}): what it was slow to answer is not the proxy's \
                 doing. Use fewer clients, or a proxy that keeps fewer connections idle.",
                connections_for(&plan.scenario)
            ));
        }
        for (role, load) in loads {
            if load.wait_share > WAIT_SHARE_MAX {
                self.warn(format!(
                    "A thread of {role} waited for a processor {:.0} % of the time: what else runs on its machine is in the numbers.",
                    100.0 * load.wait_share
                ));
            }
        }
    }

    fn rules(&mut self, plan: &RunPlan, rules: &[Rule]) {
        let scale = plan.scenario.scale;
        if (scale - 1.0).abs() > f64::EPSILON {
            self.warn(format!("It is scaled by {scale}: not the scenario, but a version of it with another length."));
        }
        for rule in rules.iter().filter(|rule| !rule.holds) {
            self.warn(format!(
                "Not by the benchmark's rules: {} is {}, required is {}.",
                rule.rule, rule.found, rule.required
            ));
        }
    }

    fn notes(&mut self, gathered: &RunOutcome, counts: &RequestCounts) {
        let beyond = counts.client.hits.saturating_sub(counts.client.could_hit);
        if share(beyond, counts.client.requests) > BEYOND_OFFERED_SHARE_MAX {
            self.warn(format!(
                "{} hits are more than the {} that the run's own requests offer: the proxy held responses from before this run. \
                 Clear its cache first.",
                counts.client.hits, counts.client.could_hit
            ));
        }
        let disagreeing = counts.client.cache_status.disagree;
        if disagreeing > 0 {
            self.warn(format!(
                "The proxy's word (Cache-Status or X-Cache) differs from the origin's marks in {disagreeing} responses."
            ));
        }
        if counts.condition_ignored > 0 {
            self.warn(format!(
                "{} requests whose condition held were answered with 200: allowed, and a waste.",
                counts.condition_ignored
            ));
        }
        if counts.reload_ignored > 0 {
            self.warn(format!(
                "{} requests that asked for no stored response got one.",
                counts.reload_ignored
            ));
        }
        let not_found = gathered.origin.total().not_found;
        if not_found > 0 {
            self.warn(format!(
                "The origin was asked {not_found} times for a path that names nothing of the scenario."
            ));
        }
        self.warnings
            .extend(gathered.usage_warnings.iter().cloned());
    }
}

/// The first refusal's status and reason.
fn first_refusal(gathered: &RunOutcome) -> String {
    let refusal = gathered.clients.first_refusal.as_ref();
    refusal.map_or_else(String::new, |refusal| {
        let at_s = Duration::from_micros(refusal.at_us).as_secs_f64();
        format!("; the first refusal, at {at_s:.1} s: {}", refusal.words)
    })
}

/// `reset 3, timeout 1`.
fn words(counts: &BTreeMap<String, u64>) -> String {
    let words: Vec<String> = counts
        .iter()
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    words.join(", ")
}
