//! A request without a client, which is for the store alone.

use super::Receiver;
use super::with_rules::{self, ChangedHead};
use crate::exchange::state::{Plan, RequestState};
use crate::log::request_log::RequestLog;
use crate::request::answer::Answer;
use crate::request::facts::Request;
use crate::request::judge::{JudgeRules, ReceivedRequest};
use weir_policy::Transaction;
use weir_policy::rule::{Bits, Values};
use weir_semantics::HostName;
use weir_wire::RequestHead;

/// The state of a GET without a client, which is for the store alone. Nothing is chosen for it yet,
/// and no module has it.
///
/// # Errors
///
/// The answer that a client would get.
pub(crate) fn for_store(
    receiver: &Receiver<'_>,
    head: &RequestHead<'_, '_>,
) -> Result<Box<RequestState>, Answer> {
    let listener = receiver.client.listener;
    let rules = JudgeRules {
        settings: receiver.settings,
        mode: listener.mode,
        default: &listener.default,
        scheme: listener.scheme,
        tls: None,
        client: None,
    };
    let mut host = HostName::EMPTY;
    let request = ReceivedRequest::judge(head, &rules, &mut host)?;
    let matched = with_rules::rules_for_store(receiver, &request.target);
    let outcome = receiver.settings.operator_rules.outcome(matched);
    let target = &request.target;
    let values = Values::new(None, target.host.as_str(), target.path_and_query);
    let changed = ChangedHead::of(&outcome, head, &request, &values);
    let Some(changed) = changed.map_err(Answer::unchanged_by_rule)? else {
        return Ok(state_for_store(receiver, &request, head, matched));
    };
    let lines = changed.lines();
    let head = changed.head(head, &lines);
    let mut host = HostName::EMPTY;
    let request = ReceivedRequest::judge(&head, &rules, &mut host)?;
    Ok(state_for_store(receiver, &request, &head, matched))
}

fn state_for_store(
    receiver: &Receiver<'_>,
    request: &ReceivedRequest<'_>,
    head: &RequestHead<'_, '_>,
    rules: Bits,
) -> Box<RequestState> {
    let key = request.key(receiver.worker.shared.store.secret());
    let tx = Transaction::new(request.facts, receiver.worker.now());
    let decided = (tx, Plan::Judge, key);
    let request = Request::new(request, head);
    let mut exchange = receiver.exchange(request, decided, RequestLog::unread());
    exchange.operator_rules = rules;
    exchange
}
