//! Which hits leave the fast path, and where.

use super::multiplexed_tests::{Connection, WIDE, check};
use crate::client::fast::{self, HeadTime, Input, InputResult, Receiver};
use crate::config::Module as ModuleTable;
use crate::exchange::state::Plan;
use crate::log::client::ClientFacts;
use crate::modules::loaded::LoadedModules;
use crate::settings::Settings;
use crate::settings::hooks::{Hook, HookFuture, Hooks};
use std::rc::Rc;
use std::sync::Arc;
use weir_extend::{
    Answer, Call, Exchange, Hook as ModuleHook, Hooks as ModuleHooks, Host, LoadError, Module,
    ModuleKind, Options, RequestHead, ResponseHead,
};
use weir_policy::{Phase, Phases};

struct Silent;

impl Hook for Silent {
    fn reached(&self, _: Phase) -> HookFuture<'_> {
        Box::pin(std::future::ready(()))
    }
}

/// Takes a request for `/stored` with hooks on the phases `hooked`; returns the phase at which it
/// left the fast path, and its plan, or `None` if it was answered at once.
fn left(connection: &Connection, hooked: Phases) -> Option<(Phases, Plan)> {
    let config = connection.worker.settings().config.clone();
    let hooks = Hooks::new(hooked, Arc::new(Silent));
    left_under(connection, Settings::new(config, "x").with_hooks(hooks))
}

/// The same under `settings`.
fn left_under(connection: &Connection, settings: Settings) -> Option<(Phases, Plan)> {
    let worker = &connection.worker;
    let settings = Arc::new(settings);
    let client = ClientFacts {
        listener: &connection.listener,
        peer: connection.peer,
        connection: 2,
        sequence: 1,
    };
    let receiver = Receiver::new(worker, &settings, client, HeadTime::Now);
    let origin = connection.origin;
    let text = format!("GET http://{origin}/stored HTTP/1.1\r\nHost: {origin}\r\n\r\n");
    let input = Input {
        bytes: text.as_bytes(),
        at: 0,
    };
    let (mut out, mut served) = (Vec::new(), Vec::new());
    match fast::take(&receiver, input, &mut out, &mut served) {
        InputResult::Answered { .. } => {
            assert!(out.ends_with(b"\r\n\r\nstored"), "{out:?}");
            None
        }
        InputResult::Exchange { exchange, .. } => {
            assert!(out.is_empty() && served.is_empty());
            Some((exchange.log.reached(), exchange.plan))
        }
        InputResult::Partial | InputResult::Login(_) => panic!("the head is whole"),
    }
}

#[test]
fn hit_leaves_the_fast_path_if_and_only_if_a_phase_is_hooked() {
    check(|connection| {
        Box::pin(async move {
            let (content, _) = connection.get("/stored", WIDE).read_all().await;
            assert_eq!(content, b"stored");
            assert!(left(&connection, Phases::NONE).is_none());
            for phase in Phase::ALL {
                let left = left(&connection, Phases::NONE.with(phase));
                let (reached, plan) = left.expect("it leaves");
                let received = Phases::NONE.with(Phase::RequestHead);
                if phase < Phase::Choose {
                    assert_eq!(reached, received, "{phase:?}");
                    assert!(matches!(plan, Plan::Judge), "{phase:?}: {plan:?}");
                } else {
                    let chosen = received.with(Phase::Authorise).with(Phase::Choose);
                    assert_eq!(reached, chosen, "{phase:?}");
                    assert!(matches!(plan, Plan::Serve { .. }), "{phase:?}: {plan:?}");
                }
            }
            assert!(left(&connection, Phases::NONE).is_none());
        })
    });
}

/// A kind of module that defers at this hook.
struct Defers(ModuleHook);

impl ModuleKind for Defers {
    fn name(&self) -> &'static str {
        self.0.as_str()
    }

    fn load(&self, _: Options) -> Result<Arc<dyn Module>, LoadError> {
        Ok(Arc::new(Self(self.0)))
    }
}

impl Module for Defers {
    fn hooks(&self) -> ModuleHooks {
        ModuleHook::ALL.into_iter().collect()
    }

    fn begin(&self, _: &Rc<dyn Host>) -> Box<dyn Exchange> {
        Box::new(Self(self.0))
    }
}

impl Defers {
    fn at(&self, hook: ModuleHook) -> Answer {
        if self.0 == hook {
            Answer::Defer
        } else {
            Answer::Continue
        }
    }
}

impl Exchange for Defers {
    fn request_received(&mut self, _: &mut RequestHead<'_>, _: &Call) -> Answer {
        self.at(ModuleHook::RequestReceived)
    }

    fn response_sent(&mut self, _: &mut ResponseHead<'_>, _: &Call) -> Answer {
        self.at(ModuleHook::ResponseSent)
    }
}

/// The settings with a module that defers at `hook`, for the requests to `host`.
fn with_module(connection: &Connection, hook: ModuleHook, host: Option<&str>) -> Settings {
    let mut config = connection.worker.settings().config.clone();
    let table = serde_json::json!({ "name": "a", "kind": hook.as_str() });
    let mut table: ModuleTable = serde_json::from_value(table).expect("a module");
    table.host = host.map(|host| host.parse().expect("a host"));
    config.modules = vec![table];
    let modules = LoadedModules::load(&config, &[Arc::new(Defers(hook))]).expect("it loads");
    Settings::new(config, "x").with_modules(modules)
}

#[test]
fn hit_leaves_the_fast_path_where_a_module_defers_and_only_there() {
    check(|connection| {
        Box::pin(async move {
            let (content, _) = connection.get("/stored", WIDE).read_all().await;
            assert_eq!(content, b"stored");
            for (hook, is_judged) in [
                (ModuleHook::RequestReceived, Some(false)),
                (ModuleHook::ResponseSent, Some(true)),
                // it is not called for a hit
                (ModuleHook::RequestSent, None),
            ] {
                for _ in 0..2 {
                    let settings = with_module(&connection, hook, None);
                    let plan = left_under(&connection, settings).map(|left| left.1);
                    match is_judged {
                        None => assert!(plan.is_none(), "{hook:?}: {plan:?}"),
                        Some(false) => assert!(matches!(plan, Some(Plan::Judge)), "{plan:?}"),
                        Some(true) => {
                            assert!(matches!(plan, Some(Plan::Serve { .. })), "{plan:?}");
                        }
                    }
                }
                let settings = with_module(&connection, hook, Some("another.example"));
                assert!(left_under(&connection, settings).is_none(), "{hook:?}");
            }
        })
    });
}
