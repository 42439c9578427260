//! WPB's rules for a run that may be compared with others.
//!
//! Almeida and Cao, 1998, section on benchmarking rules: two client machines for each server
//! machine, four client processes for each server process, a server latency of 3 s or more, runs of
//! 10 minutes or more, and at least four times the proxy's cache in fetched bytes. A run that
//! breaks one of them is still a run; it says so.

use std::fmt;

use crate::{Dimension, Law};

/// One rule, held against a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleOutcome {
    /// What is ruled, for example `client machines to server machines`.
    pub rule: String,
    /// What the rule requires, with its unit.
    pub required: String,
    /// What was found, with its unit.
    pub found: String,
    /// Does the run keep the rule?
    pub holds: bool,
}

/// What the rules look at.
#[derive(Clone, Debug)]
pub struct RunFacts<'run> {
    /// Machines that clients ran on.
    pub client_machines: u32,
    /// Machines that servers ran on.
    pub server_machines: u32,
    /// Client processes: the agents of the run.
    pub clients: u32,
    /// Server processes.
    pub servers: u32,
    /// How long a server waits before it answers.
    pub latency: &'run Law,
    /// How long the run took, in seconds.
    pub seconds: f64,
    /// Bytes that clients received.
    pub fetched_bytes: u64,
    /// The size of the proxy's cache, in bytes; `None`: it is not known.
    pub cache_bytes: Option<u64>,
}

/// Every rule with what was found.
#[must_use]
pub fn check(facts: &RunFacts<'_>) -> Vec<RuleOutcome> {
    vec![
        ratio(
            "client machines to server machines",
            facts.client_machines,
            facts.server_machines,
            MACHINES_A_SERVER_MACHINE,
        ),
        ratio(
            "client processes to server processes",
            facts.clients,
            facts.servers,
            CLIENTS_A_SERVER,
        ),
        latency(facts.latency),
        seconds(facts.seconds),
        fetched(facts.fetched_bytes, facts.cache_bytes),
    ]
}

/// Exactly `wanted` to one.
fn ratio(rule: &str, clients: u32, servers: u32, wanted: u32) -> RuleOutcome {
    let holds = servers > 0 && u64::from(clients) == u64::from(wanted) * u64::from(servers);
    outcome(
        rule,
        format!("{wanted} : 1"),
        format!("{clients} : {servers}"),
        holds,
    )
}

/// The mean, since later versions of the benchmark wait for a constant time, of which that is the
/// mean.
fn latency(law: &Law) -> RuleOutcome {
    let mean_s = law.mean().filter(|_| law.is_of(Dimension::Seconds));
    let found = mean_s.map_or_else(|| law.to_string(), |mean_s| Seconds(mean_s).to_string());
    outcome(
        "server latency",
        format!("at least {}", Seconds(LATENCY_S_MIN)),
        found,
        mean_s.is_some_and(|mean_s| mean_s >= LATENCY_S_MIN),
    )
}

fn seconds(seconds: f64) -> RuleOutcome {
    outcome(
        "length of the run",
        format!("at least {}", Seconds(RUN_S_MIN)),
        Seconds(seconds).to_string(),
        seconds >= RUN_S_MIN,
    )
}

fn fetched(fetched_bytes: u64, cache_bytes: Option<u64>) -> RuleOutcome {
    let rule = "bytes fetched";
    let Some(cache_bytes) = cache_bytes else {
        return outcome(
            rule,
            format!("at least {CACHES_FETCHED_MIN} x the proxy's cache"),
            format!("{fetched_bytes} B, and the size of the cache is not known"),
            false,
        );
    };
    let required = cache_bytes.saturating_mul(CACHES_FETCHED_MIN);
    outcome(
        rule,
        format!("at least {required} B ({CACHES_FETCHED_MIN} x a cache of {cache_bytes} B)"),
        format!("{fetched_bytes} B"),
        fetched_bytes >= required,
    )
}

fn outcome(rule: &str, required: String, found: String, holds: bool) -> RuleOutcome {
    RuleOutcome {
        rule: rule.to_owned(),
        required,
        found,
        holds,
    }
}

/// Rounded for display: as many digits as distinguish it from the rule.
struct Seconds(f64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", (self.0 * 1000.0).floor() / 1000.0)
    }
}

const MACHINES_A_SERVER_MACHINE: u32 = 2;
const CLIENTS_A_SERVER: u32 = 4;
const LATENCY_S_MIN: f64 = 3.0;
const RUN_S_MIN: f64 = 600.0;
const CACHES_FETCHED_MIN: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn facts(latency: &Law) -> RunFacts<'_> {
        RunFacts {
            client_machines: 4,
            server_machines: 2,
            clients: 96,
            servers: 24,
            latency,
            seconds: 600.0,
            fetched_bytes: 300 * MIB,
            cache_bytes: Some(75 * MIB),
        }
    }

    fn law(text: &str) -> Law {
        text.parse().expect("a law")
    }

    /// The rules that are broken, in order.
    fn broken(facts: &RunFacts<'_>) -> Vec<(String, String, String)> {
        let outcomes = check(facts);
        assert_eq!(outcomes.len(), 5);
        let broken = outcomes.into_iter().filter(|outcome| !outcome.holds);
        broken
            .map(|outcome| (outcome.rule, outcome.required, outcome.found))
            .collect()
    }

    fn expect_broken(facts: &RunFacts<'_>, rule: &str, required: &str, found: &str) {
        assert_eq!(
            broken(facts),
            [(rule.to_owned(), required.to_owned(), found.to_owned())]
        );
    }

    #[test]
    fn run_of_the_paper_satisfies_every_rule() {
        assert_eq!(broken(&facts(&law("constant(3s)"))), []);
    }

    #[test]
    fn run_just_below_a_requirement_breaks_exactly_that_rule() {
        let latency = law("constant(3s)");
        let whole = facts(&latency);
        let short = RunFacts {
            client_machines: 3,
            ..whole.clone()
        };
        expect_broken(
            &short,
            "client machines to server machines",
            "2 : 1",
            "3 : 2",
        );
        let none = RunFacts {
            server_machines: 0,
            client_machines: 0,
            ..whole.clone()
        };
        expect_broken(
            &none,
            "client machines to server machines",
            "2 : 1",
            "0 : 0",
        );
        let short = RunFacts {
            clients: 95,
            ..whole.clone()
        };
        expect_broken(
            &short,
            "client processes to server processes",
            "4 : 1",
            "95 : 24",
        );
        let short = RunFacts {
            seconds: 599.999_9,
            ..whole.clone()
        };
        expect_broken(&short, "length of the run", "at least 600 s", "599.999 s");
        let short = RunFacts {
            fetched_bytes: 300 * MIB - 1,
            ..whole.clone()
        };
        expect_broken(
            &short,
            "bytes fetched",
            "at least 314572800 B (4 x a cache of 78643200 B)",
            "314572799 B",
        );
        let quick = law("constant(2.99s)");
        let short = RunFacts {
            latency: &quick,
            ..whole
        };
        expect_broken(&short, "server latency", "at least 3 s", "2.99 s");
    }

    #[test]
    fn cache_of_unknown_size_breaks_the_fetched_bytes_rule() {
        let latency = law("constant(3s)");
        let unknown = RunFacts {
            cache_bytes: None,
            ..facts(&latency)
        };
        expect_broken(
            &unknown,
            "bytes fetched",
            "at least 4 x the proxy's cache",
            "314572800 B, and the size of the cache is not known",
        );
    }

    #[test]
    fn varying_latency_is_judged_by_its_mean() {
        for (text, holds) in [("uniform(0s, 10s)", true), ("normal(2.5s, 1s)", false)] {
            let latency = law(text);
            assert_eq!(broken(&facts(&latency)).is_empty(), holds, "{text}");
        }
    }
}
