//! Modules of a request: their order, answers and failures; and the breaker of one, as scripts.

use weir_extend::Hook;
use weir_policy::Tick;
use weir_policy::extension::{
    Breaker, BreakerRules, Cascade, FailurePolicy, MODULES_MAX, ModuleFailure, ModuleId, ModuleSet,
    Permit, Step,
};

/// Plays a script, and fails with the difference if the conversation goes otherwise.
///
/// The first line names the modules in their order, each with `/pass` if it may fail. Each further
/// line is a hook that is reached, or what a module does, and behind `=>` the next step.
#[track_caller]
fn check(script: &str) {
    let lines: Vec<&str> = script.lines().map(str::trim).collect();
    let modules: Vec<&str> = lines[0].split_whitespace().collect();
    let all = (0..modules.len())
        .map(id)
        .fold(ModuleSet::NONE, ModuleSet::with);
    let mut conversation = Conversation {
        modules,
        cascade: Cascade::new(all),
        all,
    };
    for line in &lines[1..] {
        let (event, expected) = line.split_once(" => ").expect("an event and a step");
        let step = conversation.play(event.trim());
        assert_eq!(conversation.name(step), expected.trim(), "after `{event}`");
    }
}

fn id(index: usize) -> ModuleId {
    ModuleId::new(index).expect("a module")
}

struct Conversation<'a> {
    modules: Vec<&'a str>,
    cascade: Cascade,
    all: ModuleSet,
}

impl Conversation<'_> {
    fn play(&mut self, event: &str) -> Step {
        let words: Vec<&str> = event.split_whitespace().collect();
        if let Some(hook) = Hook::ALL.into_iter().find(|hook| hook.as_str() == words[0]) {
            // `but b`: at this hook b is not called
            let hooked = match words[1..] {
                ["but", module] => self.all.without(self.module(module).0),
                _ => self.all,
            };
            return self.cascade.reach(hook, hooked);
        }
        let (module, policy) = self.module(words[0]);
        match words[1..] {
            // `continues to a c`: from here on these see it
            ["continues", "to", ..] => {
                let names = words[3..].iter();
                let modules = names.map(|name| self.module(name).0);
                let modules = modules.fold(ModuleSet::NONE, ModuleSet::with);
                self.cascade.retargeted(module, modules)
            }
            ["continues"] => self.cascade.continued(module),
            ["defers"] => self.cascade.deferred(module),
            ["responds"] => self.cascade.responded(module, policy),
            ["fails", word] => {
                let mut all = ModuleFailure::ALL.into_iter();
                let failure = all.find(|failure| failure.as_str() == word);
                let failure = failure.expect("a failure");
                self.cascade.failed(module, failure, policy)
            }
            _ => panic!("`{event}` is no event"),
        }
    }

    fn module(&self, name: &str) -> (ModuleId, FailurePolicy) {
        let is_it = |module: &&str| module.split('/').next() == Some(name);
        let at = self.modules.iter().position(is_it).expect("a module");
        let policy = if self.modules[at].ends_with("/pass") {
            FailurePolicy::Pass
        } else {
            FailurePolicy::Refuse
        };
        (id(at), policy)
    }

    fn name(&self, step: Step) -> String {
        let name = |module: ModuleId| {
            self.modules[module.index()]
                .split('/')
                .next()
                .expect("a name")
        };
        match step {
            Step::Call(module) => format!("call {}", name(module)),
            Step::Wait(module) => format!("wait {}", name(module)),
            Step::Continue => "continue".to_owned(),
            Step::Respond(module) => format!("respond {}", name(module)),
            Step::Refuse(module, failure) => {
                format!("refuse {} {}", name(module), failure.as_str())
            }
        }
    }
}

#[test]
fn modules_are_called_in_order_for_the_request_and_in_reverse_for_the_response() {
    check(
        "a b c
         request-received  => call a
         a continues       => call b
         b continues       => call c
         c continues       => continue
         request-sent      => call a
         a continues       => call b
         b continues       => call c
         c continues       => continue
         response-received => call c
         c continues       => call b
         b continues       => call a
         a continues       => continue
         response-sent     => call c
         c continues       => call b
         b continues       => call a
         a continues       => continue
         done              => call a
         a continues       => call b
         b continues       => call c
         c continues       => continue",
    );
}

#[test]
fn module_is_called_only_at_the_hooks_that_it_has_named() {
    check(
        "a b
         request-received but a => call b
         b continues            => continue
         response-sent but b    => call a
         a continues            => continue",
    );
}

#[test]
fn modules_of_the_new_target_see_a_request_from_the_module_on_that_changed_it() {
    check(
        "a b c d
         request-received   => call a
         a continues        => call b
         b continues to a d => call d
         d continues        => continue
         request-sent       => call a
         a continues        => call d
         d continues        => continue
         response-sent      => call d
         d continues        => call a
         a continues        => continue
         done               => call a
         a continues        => call b
         b continues        => call d
         d continues        => continue",
    );
}

#[test]
fn last_module_of_all_may_change_the_target() {
    let last = id(MODULES_MAX - 1);
    let all = (0..MODULES_MAX).map(id);
    let all = all.fold(ModuleSet::NONE, ModuleSet::with);
    let mut cascade = Cascade::new(ModuleSet::NONE.with(last));
    assert_eq!(cascade.reach(Hook::RequestReceived, all), Step::Call(last));
    assert_eq!(cascade.retargeted(last, all), Step::Continue);
}

#[test]
fn module_that_answers_keeps_the_request_from_those_behind_it() {
    check(
        "a b c
         request-received  => call a
         a continues       => call b
         b responds        => respond b
         response-sent     => call a
         a continues       => continue
         done              => call a
         a continues       => call b
         b continues       => continue",
    );
}

#[test]
fn module_that_replaces_the_response_is_seen_by_those_before_it_alone() {
    check(
        "a b c
         request-received  => call a
         a continues       => call b
         b continues       => call c
         c continues       => continue
         response-received => call c
         c continues       => call b
         b responds        => respond b
         response-sent     => call a
         a continues       => continue",
    );
}

#[test]
fn deferred_module_is_called_again_before_the_next_one() {
    check(
        "a b
         request-received  => call a
         a defers          => wait a
         a continues       => call b
         b continues       => continue",
    );
}

#[test]
fn request_is_refused_when_a_module_fails_that_it_cannot_do_without() {
    check(
        "a b c
         request-received  => call a
         a continues       => call b
         b fails deadline  => refuse b deadline
         response-sent     => call a
         a continues       => continue
         done              => call a
         a continues       => continue",
    );
}

#[test]
fn request_continues_without_a_module_that_failed_and_may() {
    check(
        "a/pass b
         request-received  => call a
         a fails crashed   => call b
         b continues       => continue
         response-sent     => call b
         b continues       => continue
         done              => call b
         b continues       => continue",
    );
}

#[test]
fn answer_at_a_hook_that_takes_none_is_a_failure() {
    check(
        "a b/pass
         response-sent     => call b
         b responds        => call a
         a responds        => refuse a bad-answer",
    );
    check(
        "a
         done              => call a
         a fails crashed   => continue",
    );
}

#[test]
fn request_without_modules_continues_at_every_hook() {
    let mut cascade = Cascade::new(ModuleSet::NONE);
    for hook in Hook::ALL {
        assert_eq!(
            cascade.reach(hook, ModuleSet::NONE.with(id(0))),
            Step::Continue
        );
    }
    assert_eq!(ModuleId::new(MODULES_MAX), None);
    // the last module is one as any other
    let last = ModuleSet::NONE.with(id(MODULES_MAX - 1));
    let mut cascade = Cascade::new(last.with(id(0)));
    let step = cascade.reach(Hook::ResponseSent, last.with(id(0)));
    assert_eq!(step, Step::Call(id(MODULES_MAX - 1)));
    assert_eq!(cascade.continued(id(MODULES_MAX - 1)), Step::Call(id(0)));
}

/// Plays a script of a breaker: at a millisecond `fails`, `succeeds` (with the permit that it had)
/// or `permit`.
#[track_caller]
fn check_breaker(script: &str) {
    let mut breaker = Breaker::new(BreakerRules::default());
    let mut permit = Permit::Closed;
    for line in script.lines().map(str::trim) {
        let (event, expected) = line.split_once(" => ").expect("an event and an outcome");
        let (at, what) = event.trim().split_once(' ').expect("a time");
        let now = Tick(at.parse().expect("milliseconds"));
        let outcome = match what.trim() {
            "permit" => {
                permit = breaker.permit(now);
                format!("{permit:?}").to_lowercase()
            }
            "fails" => if breaker.failed(now) {
                "opens"
            } else {
                "counted"
            }
            .to_owned(),
            "succeeds" => if breaker.succeeded(permit) {
                "closes"
            } else {
                "nothing"
            }
            .to_owned(),
            other => panic!("`{other}` is no event"),
        };
        assert_eq!(outcome, expected.trim(), "after `{event}`");
    }
}

#[test]
fn breaker_opens_at_the_fifth_failure_within_its_window() {
    check_breaker(
        "0 permit      => closed
         0 fails       => counted
         2500 fails    => counted
         5000 fails    => counted
         7500 fails    => counted
         9999 permit   => closed
         10000 fails   => opens
         10000 permit  => open
         39999 permit  => open",
    );
}

#[test]
fn failures_further_apart_than_the_window_leave_the_breaker_closed() {
    check_breaker(
        "0 fails       => counted
         2501 fails    => counted
         5002 fails    => counted
         7503 fails    => counted
         10004 fails   => counted
         10005 permit  => closed",
    );
}

const OPENED: &str = "0 fails => counted
         0 fails => counted
         0 fails => counted
         0 fails => counted
         0 fails => opens";

#[test]
fn one_request_tries_the_module_after_the_rest() {
    check_breaker(&format!(
        "{OPENED}
         30000 permit   => trial
         30001 permit   => open
         30002 permit   => open"
    ));
}

#[test]
fn breaker_closes_after_a_trial_that_succeeds() {
    check_breaker(&format!(
        "{OPENED}
         30000 permit   => trial
         30500 succeeds => closes
         30500 permit   => closed
         30500 fails    => counted"
    ));
}

#[test]
fn breaker_rests_again_after_a_trial_that_fails() {
    check_breaker(&format!(
        "{OPENED}
         30000 permit   => trial
         30500 fails    => opens
         60499 permit   => open
         60500 permit   => trial"
    ));
}

/// Requests that began before it opened end meanwhile.
#[test]
fn late_results_of_other_requests_neither_close_nor_prolong_it() {
    check_breaker(&format!(
        "0 permit => closed
         {OPENED}
         20000 succeeds => nothing
         29000 fails    => counted
         30000 permit   => trial"
    ));
}

#[test]
fn trial_of_which_nothing_is_heard_is_given_up() {
    check_breaker(&format!(
        "{OPENED}
         30000 permit   => trial
         59999 permit   => open
         60000 permit   => trial"
    ));
}
