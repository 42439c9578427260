//! An exchange of a module, and its call at a hook.

use super::{Head, HookCall};
use crate::modules::threads::call::ThreadExchange;
use weir_extend::{Answer, Call, Exchange, Hook};
use weir_policy::extension::ModuleFailure;

/// An exchange of a module.
pub(super) enum BegunExchange {
    /// On this thread.
    Here(Box<dyn Exchange>),
    /// On a thread of the module's own.
    Threaded(Box<ThreadExchange>),
}

pub(super) fn call_thread(
    exchange: &mut ThreadExchange,
    hooked: &HookCall<'_>,
    head: &mut Head<'_, '_>,
) -> Result<Answer, ModuleFailure> {
    match head {
        Head::Request(head) => exchange.call_request(hooked.hook, head, &hooked.call),
        Head::Response(head) => exchange.call_response(hooked.hook, head, &hooked.call),
        Head::None => {
            exchange.done(&hooked.call);
            Ok(Answer::Continue)
        }
    }
}

pub(super) fn call_hook(
    exchange: &mut Box<dyn Exchange>,
    hook: Hook,
    head: &mut Head<'_, '_>,
    call: &Call,
) -> Answer {
    match (hook, head) {
        (Hook::RequestReceived, Head::Request(head)) => exchange.request_received(head, call),
        (Hook::RequestSent, Head::Request(head)) => exchange.request_sent(head, call),
        (Hook::ResponseReceived, Head::Response(head)) => exchange.response_received(head, call),
        (Hook::ResponseSent, Head::Response(head)) => exchange.response_sent(head, call),
        (Hook::Done, _) => {
            exchange.done(call);
            Answer::Continue
        }
        _ => {
            debug_assert!(false, "{hook:?} with another head");
            Answer::Continue
        }
    }
}
