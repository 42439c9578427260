//! What an operator reads when the breaker of a module opens or closes.
//!
//! One line each time: a module whose breaker is open is not called, so that each has at most one
//! line for each time that it rests, and one when it is called again.

use weir_policy::extension::{BreakerRules, FAILURES_MAX, FailurePolicy, ModuleFailure};

/// The breaker of `module` opens, with `failure`: for the first time, or as a trial failed.
/// `failures` are all since the proxy started.
pub(super) fn opened(
    module: &str,
    (failure, is_trial): (ModuleFailure, bool),
    (rules, on_failure): (BreakerRules, FailurePolicy),
    failures: u64,
) -> String {
    let last = failure.as_str();
    let rest_s = rules.rest_ms / 1000;
    let why = match is_trial {
        true => format!("failed again when it was tried ({last})"),
        false => format!(
            "failed {FAILURES_MAX} times within {} s, the last time by {last}",
            rules.window_ms / 1000
        ),
    };
    let then = match on_failure {
        FailurePolicy::Refuse => "its requests are refused",
        FailurePolicy::Pass => "requests continue without it",
    };
    format!(
        "module `{module}` {why}: it is not called for {rest_s} s, and {then}; failures since the start: {failures}"
    )
}

/// The breaker of `module` closes.
pub(super) fn closed(module: &str) -> String {
    format!("module `{module}` worked when it was tried: it is called again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_has_the_failures_the_last_reason_and_the_time_without_the_module() {
        let rules = BreakerRules::default();
        let refuse = (rules, FailurePolicy::Refuse);
        assert_eq!(
            opened("m", (ModuleFailure::Deadline, false), refuse, 17),
            "module `m` failed 5 times within 10 s, the last time by deadline: it is not called for \
             30 s, and its requests are refused; failures since the start: 17"
        );
        let pass = (rules, FailurePolicy::Pass);
        assert_eq!(
            opened("m", (ModuleFailure::Crashed, true), pass, 6),
            "module `m` failed again when it was tried (crashed): it is not called for 30 s, and \
             requests continue without it; failures since the start: 6"
        );
    }
}
