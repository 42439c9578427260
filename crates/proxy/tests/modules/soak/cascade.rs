//! Random cascades of scripted modules, as tables of a configuration.

use crate::content::random::Chance;
use crate::support::scripted;
use weir_proxy::config::{ExecutionModel, FailurePolicy, Module};

/// Most modules of a configuration, without the one that stamps.
pub(super) const STEPS_MAX: usize = 5;

/// Hooks at which modules act.
pub(super) const HOOKS: [&str; 4] = [
    "request-received",
    "request-sent",
    "response-received",
    "response-sent",
];

/// What a module does with content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Upper,
    Twice,
    Blocks,
    First,
    /// It gives up behind 100,000 bytes.
    Cut,
    Fail,
    Respond,
    /// It answers by itself behind 100,000 bytes.
    RespondLate,
    /// It puts the tag that it gave the request before it.
    Tag,
}

/// What a module does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Set,
    Defer,
    Respond,
    Fail,
    Panic,
    Content(How),
}

/// One module, which acts at one hook.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) hook: &'static str,
    pub(super) deed: Deed,
    /// What the paths begin with that it is for.
    pub(super) scope: &'static str,
    pub(super) may_fail: bool,
    is_threaded: bool,
}

impl Step {
    /// A module that fails no request, unless `fails`.
    fn random(chance: &mut Chance, fails: bool) -> Self {
        let hook = HOOKS[chance.below(4)];
        let deed = match chance.below(if fails { 12 } else { 8 }) {
            0 | 1 => Deed::Set,
            2 => Deed::Defer,
            3 if hook != "response-sent" => Deed::Respond,
            8 => Deed::Fail,
            9 => Deed::Panic,
            _ if hook == "request-sent" => Deed::Set,
            10 => Deed::Content(How::Fail),
            11 => Deed::Content(How::Cut),
            _ => Deed::Content(match chance.below(9) {
                0 | 1 => How::Upper,
                2 | 3 => How::Twice,
                4 => How::First,
                5 if fails => How::RespondLate,
                6 => How::Respond,
                7 if hook == "response-received" => How::Tag,
                _ => How::Blocks,
            }),
        };
        // answers and failures are for a part of the requests, so that others get further
        let scopes = match deed {
            Deed::Set
            | Deed::Defer
            | Deed::Content(How::Upper | How::Twice | How::Blocks | How::Tag) => 5,
            _ => 4,
        };
        Self {
            hook,
            deed,
            scope: ["/p/", "/s/0/", "/v/", "/e/", "/"][chance.below(scopes)],
            may_fail: chance.below(2) == 0,
            is_threaded: chance.below(3) == 0,
        }
    }

    /// Its name: those whose breakers may open share no status with others.
    pub(super) fn name(&self, at: usize) -> String {
        match self.deed {
            Deed::Panic => format!("p{at}"),
            _ => format!("m{at}"),
        }
    }

    /// The field that it sets.
    pub(super) fn field(&self, at: usize) -> String {
        match self.hook {
            "response-received" => format!("x-f{at}"),
            "response-sent" => format!("x-s{at}"),
            _ => format!("x-q{at}"),
        }
    }

    /// Its table. What it does does not tell generations apart: where they make the same of a
    /// response, they share what is stored.
    fn table(&self, at: usize) -> Module {
        let set = format!("set {} yes", self.field(at));
        let action = match self.deed {
            Deed::Set => &set,
            Deed::Defer => "defer",
            Deed::Respond => "respond 451 blocked",
            Deed::Fail => "fail",
            Deed::Panic => "panic",
            Deed::Content(How::Upper) => "content upper",
            Deed::Content(How::Twice) => "content twice",
            Deed::Content(How::Blocks) => "content blocks",
            Deed::Content(How::First) => "content first",
            Deed::Content(How::Cut) => "content cut",
            Deed::Content(How::Fail) => "content fail",
            Deed::Content(How::Respond) => "content respond",
            Deed::Content(How::RespondLate) => "content respond-late",
            Deed::Content(How::Tag) => "content tag",
        };
        let mut actions = vec![(self.hook, action)];
        if self.deed == Deed::Content(How::Tag) {
            actions.push(("request-received", "variant X-Group"));
        }
        let mut table = scripted(&self.name(at), &actions);
        table.path = self.scope.parse().expect("the beginning of a path");
        table.run = match self.is_threaded {
            true => ExecutionModel::Threads,
            false => ExecutionModel::Worker,
        };
        table.on_failure = match self.may_fail {
            true => FailurePolicy::Pass,
            false => FailurePolicy::Refuse,
        };
        table
    }
}

/// The modules of one configuration.
#[derive(Debug)]
pub(super) struct Generation {
    pub(super) number: usize,
    pub(super) steps: Vec<Step>,
}

impl Generation {
    pub(super) fn random(number: usize, chance: &mut Chance, fails: bool) -> Self {
        let steps = (0..STEPS_MAX).map(|_| Step::random(chance, fails));
        Self {
            number,
            steps: steps.collect(),
        }
    }

    /// Its tables. The first module stands nearest to the client, and says which configuration a
    /// request began with, is sent by, and was answered by.
    pub(super) fn tables(&self) -> Vec<Module> {
        let number = self.number;
        // it must not change what is stored: each generation had a variant of its own
        let hooks = ["request-received", "request-sent", "response-sent"];
        let stamps = ["began", "asked", "sent"].map(|name| format!("set x-{name} {number}"));
        let actions = hooks.into_iter().zip(stamps.iter().map(String::as_str));
        let actions: Vec<_> = actions.collect();
        let stamp = scripted("stamp", &actions);
        let steps = self.steps.iter().enumerate();
        let steps = steps.map(|(at, step)| step.table(at));
        std::iter::once(stamp).chain(steps).collect()
    }
}
