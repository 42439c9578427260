//! What an operator has put into the way of requests and responses, in its order.

use crate::config::route::{HostPattern, PathPrefix};
use crate::config::setting::invalid::Invalid;
use crate::config::setting::mistakes::Mistakes;
use crate::config::setting::{Setting, check_range};
use crate::config::values::byte_size::ByteSize;
use crate::config::values::module_option::ModuleOption;
use crate::config::values::name::{self, Names};
use crate::config::values::text::Form;
use crate::config::values::time::span::Span;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_policy::extension::{ExecutionModel, FailurePolicy, MODULES_MAX};

/// One `[[module]]` table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// What messages call it.
    pub name: String,
    /// Which kind of module it is.
    pub kind: String,
    /// Hosts it is for; absent for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostPattern>,
    /// Path prefix it is for.
    #[serde(default)]
    pub path: PathPrefix,
    /// Where it is called.
    #[serde(default)]
    pub run: ExecutionModel,
    /// What becomes of a request for which it fails.
    #[serde(default)]
    pub on_failure: FailurePolicy,
    /// How long one call may take.
    #[serde(default = "deadline")]
    pub deadline: Span,
    /// How long a request may wait for what it deferred for.
    #[serde(default = "wait")]
    pub wait: Span,
    /// How much content it may leave for a later call.
    #[serde(default = "hold")]
    pub hold: ByteSize,
    /// Whether it may have a response stored that the rules would not store.
    #[serde(default)]
    pub may_store: bool,
    /// How many requests and calls of its own it may have under way at once.
    #[serde(default = "requests_max")]
    pub requests_max: u32,
    /// What the kind takes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, ModuleOption>,
}

const fn deadline() -> Span {
    Span::from_millis(10)
}

const fn wait() -> Span {
    Span::from_secs(5)
}

const fn hold() -> ByteSize {
    ByteSize::from_kib(256)
}

const fn requests_max() -> u32 {
    16
}

/// The most requests of its own that a module may be permitted: as many as all modules have in
/// common beside the share of each.
const REQUESTS_MAX: u32 = 128;

/// The least and the most content that a module may hold.
const HOLDS: [ByteSize; 2] = [ByteSize::from_bytes(0), ByteSize::from_mib(64)];

/// The shortest and the longest time for one call.
const DEADLINES: [Span; 2] = [Span::from_millis(1), Span::from_secs(60)];

/// The shortest and the longest time for what a module deferred for.
const WAITS: [Span; 2] = [Span::from_millis(1), Span::from_mins(10)];

/// What messages call a table of this kind.
const KIND: &str = "module";

impl Form for ExecutionModel {
    const FORM: &'static str = Self::FORM;
}

impl Form for FailurePolicy {
    const FORM: &'static str = Self::FORM;
}

impl Module {
    /// The table of a module with this name, and all else by default.
    #[must_use]
    pub fn new(name: &str, kind: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            host: None,
            path: PathPrefix::default(),
            run: ExecutionModel::default(),
            on_failure: FailurePolicy::default(),
            deadline: deadline(),
            wait: wait(),
            hold: hold(),
            may_store: false,
            requests_max: requests_max(),
            options: BTreeMap::new(),
        }
    }

    /// Refuses what cannot be the name of a module; `key` is where it stands.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the key, the reason and what to do.
    pub fn check_name(key: &str, name: &str) -> Result<(), Invalid> {
        name::check(KIND, key, name)
    }

    pub(super) fn settings() -> Vec<Setting> {
        let mut settings = Self::scope_settings();
        settings.extend(Self::call_settings());
        settings
    }

    /// What it is, and what it is for.
    fn scope_settings() -> Vec<Setting> {
        vec![
            Setting::new::<String>(
                "module[].name",
                &["What messages, logs and counters call the module; each name once."],
            ),
            Setting::new::<String>(
                "module[].kind",
                &[
                    "The kind of the module. Modules are called in the order of their tables on the way of a request,",
                    "and in the reverse order on the way of its response: the first stands nearest to the client.",
                ],
            ),
            Setting::new::<HostPattern>(
                "module[].host",
                &[
                    "Hosts whose requests the module is called for: a name, an address, or `*.` and a name for all names below it.",
                    "Without it, any host.",
                ],
            ),
            Setting::new::<PathPrefix>(
                "module[].path",
                &[
                    "What the path of these requests begins with, in whole segments, as in `route[].path`. Paths are compared as they",
                    "were received: a server may read `/%61` as `/a`, so this does not keep anything out.",
                ],
            )
            .by_default(&PathPrefix::default()),
        ]
    }

    /// How it is called, and what it may do.
    fn call_settings() -> Vec<Setting> {
        vec![
            Setting::new::<ExecutionModel>(
                "module[].run",
                &[
                    "Where the module is called: `worker` is the thread that serves the request, which costs least; `threads` are up",
                    "to 4 threads of the module's own, for one that may block: a call on these is given up after `deadline`.",
                    "`process` is a process of its own with a lower priority (nice 10): a call there is given up after `wait`.",
                ],
            )
            .by_default(&ExecutionModel::default()),
            Setting::new::<FailurePolicy>(
                "module[].on_failure",
                &[
                    "What becomes of a request for which the module fails: `refuse` answers 502, `pass` does without the module.",
                    "Five failures within 10 s count as failure of every request for the next 30 s.",
                ],
            )
            .by_default(&FailurePolicy::default()),
            Setting::new::<Span>(
                "module[].deadline",
                &[
                    "How long one call may take. On a worker, a call that takes longer cannot be stopped: it counts as a failure, and",
                    "what it answered holds. On threads of the module's own the request does not wait longer.",
                ],
            )
            .by_default(&deadline())
            .within(&DEADLINES[0], &DEADLINES[1]),
            Setting::new::<Span>(
                "module[].wait",
                &["How long a request may wait, at one call, for what the module deferred for."],
            )
            .by_default(&wait())
            .within(&WAITS[0], &WAITS[1]),
            Setting::new::<ByteSize>(
                "module[].hold",
                &[
                    "How much content of one message the module may leave for a later call, for each message that it changes.",
                    "If it leaves more, it fails.",
                ],
            )
            .by_default(&hold())
            .within(&HOLDS[0], &HOLDS[1]),
            Setting::new::<bool>(
                "module[].may_store",
                &[
                    "Whether the module may have responses stored that the rules of HTTP would not store as they came.",
                    "Without it, a response whose Cache-Control, Expires, Vary, Set-Cookie or validators it changes is not stored.",
                ],
            )
            .by_default(&false),
            Setting::new::<u32>(
                "module[].requests_max",
                &[
                    "How many requests and calls of its own the module may have under way at once, on all workers; 0 permits none.",
                    "All modules together may have 256; 4 of them are left to each. A destination is permitted to a module as it is to a client of a forward proxy.",
                ],
            )
            .by_default(&requests_max())
            .within(&0_u32, &REQUESTS_MAX),
            Setting::new::<BTreeMap<String, ModuleOption>>(
                "module[].options",
                &["What the kind of module takes; docs/modules.md lists it."],
            ),
        ]
    }
}

/// Refuses names that are not distinct, and values outside their range.
pub(super) fn check(modules: &[Module], mistakes: &mut Mistakes) {
    if modules.len() > MODULES_MAX {
        mistakes.note(Err(Invalid::new(
            "module",
            format!("{} modules, more than {MODULES_MAX}", modules.len()),
            "remove some",
        )));
    }
    let mut names = Names::new(KIND);
    for (index, module) in modules.iter().enumerate() {
        let key = |name: &str| format!("module[{index}].{name}");
        let [least, most] = &DEADLINES;
        mistakes.note(names.add(&key("name"), &module.name));
        mistakes.note(check_range(&key("deadline"), &module.deadline, least, most));
        mistakes.note(check_range(
            &key("hold"),
            &module.hold,
            &HOLDS[0],
            &HOLDS[1],
        ));
        mistakes.note(check_range(
            &key("wait"),
            &module.wait,
            &WAITS[0],
            &WAITS[1],
        ));
        let requests = &module.requests_max;
        mistakes.note(check_range(
            &key("requests_max"),
            requests,
            &0,
            &REQUESTS_MAX,
        ));
    }
}
