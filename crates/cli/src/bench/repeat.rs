//! Repetitions of runs within one command, and what is done before each.

use crate::messages::Failure;
use clap::Args;
use std::process::Command;
use weir_bench::conduct::RunPlan;
use weir_measure::record::Mode;

/// How often everything is measured.
#[derive(Clone, Debug, Args)]
pub(crate) struct RepeatFlags {
    /// Repeat each measurement so many times, with a record of each; the report has medians with
    /// minimum and maximum
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeat: u32,

    /// A shell command before each run, to clear the cache; WEIR_BENCH_PROXY, WEIR_BENCH_CLIENTS
    /// and WEIR_BENCH_CACHING are set
    #[arg(long, value_name = "COMMAND")]
    pub(crate) before_each: Option<String>,
}

impl RepeatFlags {
    /// The numbers of the repetitions; what was measured changes from one to the next slowly, so
    /// all proxies are measured once, then again.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        1..=self.repeat
    }

    /// What is behind the name of a repetition's file: nothing if there is one only.
    pub(super) fn suffix(&self, number: u32) -> String {
        if self.repeat > 1 {
            format!("-{number}")
        } else {
            String::new()
        }
    }

    /// A gateway's origin has one address, so the second repetition would find in the cache what
    /// the first one stored.
    ///
    /// # Errors
    /// There is a gateway, and nothing clears its cache.
    pub(super) fn check<'p>(
        &self,
        plans: impl IntoIterator<Item = &'p RunPlan>,
    ) -> Result<(), Failure> {
        let is_gateway = |plan: &&RunPlan| plan.is_caching && plan.mode == Mode::Gateway;
        if self.repeat == 1 || self.before_each.is_some() {
            return Ok(());
        }
        let Some(gateway) = plans.into_iter().find(is_gateway) else {
            return Ok(());
        };
        let cause = format!(
            "the gateway `{}` would answer from what it stored before",
            gateway.label
        );
        Err(Failure::usage("cannot repeat the run", cause)
            .hint("clear its cache with --before-each COMMAND"))
    }

    /// Clears the cache.
    ///
    /// # Errors
    /// The command failed: a proxy whose cache could not be cleared would give hits that are none.
    pub(super) fn before(&self, plan: &RunPlan, title: &str) -> Result<(), Failure> {
        let Some(command) = &self.before_each else {
            return Ok(());
        };
        let what = format!("cannot go on with {title}");
        let caching = if plan.is_caching { "on" } else { "off" };
        let status = Command::new("sh")
            .args(["-c", command])
            .env("WEIR_BENCH_PROXY", &plan.label)
            .env("WEIR_BENCH_CLIENTS", plan.scenario.agents().to_string())
            .env("WEIR_BENCH_CACHING", caching)
            .status()
            .map_err(|error| Failure::outside(what.clone(), &error))?;
        if status.success() {
            return Ok(());
        }
        let cause = format!("`{command}` ended with {status}");
        Err(Failure::outside(what, cause))
    }
}
