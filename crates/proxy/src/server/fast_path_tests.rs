//! Which hits leave the fast path, and where.

use super::multiplexed_tests::{Connection, WIDE, check};
use crate::client::fast::{self, Input, InputResult, Receiver};
use crate::exchange::state::Plan;
use crate::hooks::{Hook, HookFuture, Hooks};
use crate::log::client::ClientFacts;
use crate::settings::Settings;
use std::sync::Arc;
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
    let worker = &connection.worker;
    let config = worker.settings().config.clone();
    let hooks = Hooks::new(hooked, Arc::new(Silent));
    let settings = Arc::new(Settings::new(config, "x").with_hooks(hooks));
    let receiver = Receiver {
        worker,
        settings: &settings,
        client: ClientFacts {
            listener: &connection.listener,
            peer: connection.peer,
            connection: 2,
            sequence: 1,
        },
        head_began: None,
    };
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
        InputResult::Partial => panic!("the head is whole"),
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
