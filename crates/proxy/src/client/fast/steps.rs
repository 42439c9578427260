//! The steps of a request's transaction up to where its response comes from. Those of hits are
//! inlined: a call and what it returns would cost 2 % of one.

use crate::cache::chosen::ChosenResponse;
use crate::cache::variants::Choice;
use crate::exchange::state::Plan;
use crate::request::answer::Answer;
use crate::send::heads::ServedForm;
use crate::settings::Settings;
use std::sync::Arc;
use weir_policy::rule::Reuse;
use weir_policy::transaction::Covers;
use weir_policy::{Command, Commands, Event, Missing, Now, StoredFacts, Transaction};
use weir_semantics::{FieldLine, RequestFacts};
use weir_store::{ExpectedResponse, StoredResponse};

/// Steps the transaction of a request to where its response is looked for, or forwarded without;
/// its form may permit to share that. Inlined as `choose` is.
#[inline(always)]
pub(crate) fn start(
    tx: &mut Transaction,
    settings: &Settings,
    now: Now,
    choice: Choice,
    is_shareable: bool,
) -> Commands {
    if choice.bypass {
        tx.bypass_by_rule();
    }
    if choice.is_rekeyed {
        tx.rekey_by_rule();
    }
    let unshared = choice.bypass || !settings.config.cache.enabled || !is_shareable;
    tx.handle(now, &settings.rules, Event::Request { unshared })
}

/// Steps the transaction with the stored response that was found; `reuse` says how rules of the
/// operator have it used. If it must be validated or completed, the response to that is expected
/// from now on. Inlined as [`choose`] is.
#[inline(always)]
pub(crate) fn found(
    tx: &mut Transaction,
    settings: &Settings,
    (now, reuse): (Now, Reuse),
    fields: &[FieldLine<'_>],
    response: Arc<StoredResponse>,
    expect: impl FnOnce(&Arc<StoredResponse>) -> ExpectedResponse,
) -> Plan {
    let commands = judge_found(tx, settings, (now, reuse), fields, &response);
    match commands.first() {
        Some(Command::Serve(serving)) => {
            let mut all = commands.iter();
            let refreshes = all.any(|command| command == Command::RefreshInBackground);
            Plan::Serve {
                serving,
                refresh: refreshes.then(|| Box::new(expect(&response))),
                response,
            }
        }
        Some(Command::Forward(forwarding)) => Plan::Forward {
            forwarding,
            stored: Some(ChosenResponse {
                expected: Box::new(expect(&response)),
                response,
            }),
        },
        _ => Plan::Answer(Box::new(Answer::only_if_cached())),
    }
}

/// Steps the transaction with the stored response that was found, as [`found`] does. Inlined as
/// that is.
#[inline(always)]
pub(crate) fn judge_found(
    tx: &mut Transaction,
    settings: &Settings,
    (now, reuse): (Now, Reuse),
    fields: &[FieldLine<'_>],
    response: &StoredResponse,
) -> Commands {
    if !response.body.is_in_memory() {
        tx.found_on_disk();
    }
    let facts = &settings.facts_now(tx, &response.facts);
    let by_rule;
    let facts: &StoredFacts = if reuse.is_none() {
        facts
    } else {
        by_rule = reuse.of(facts);
        &by_rule
    };
    let event = if response.body.is_whole() {
        Event::Found(facts)
    } else {
        Event::FoundPart(facts, covers(tx.request(), fields, response, now))
    };
    tx.handle(now, &settings.rules, event)
}

/// Steps the transaction with that nothing was found.
pub(crate) fn missing(
    tx: &mut Transaction,
    settings: &Settings,
    now: Now,
    missing: Missing,
) -> Plan {
    let commands = tx.handle(now, &settings.rules, Event::Missing(missing));
    plan_of(&commands)
}

/// How the request is answered where nothing was found.
pub(crate) fn plan_of(commands: &Commands) -> Plan {
    match commands.first() {
        Some(Command::Forward(forwarding)) => Plan::Forward {
            forwarding,
            stored: None,
        },
        _ => Plan::Answer(Box::new(Answer::only_if_cached())),
    }
}

/// Whether a stored part holds the requested range (RFC 9111 §3.3).
fn covers(
    facts: &RequestFacts,
    fields: &[FieldLine<'_>],
    part: &StoredResponse,
    now: Now,
) -> Covers {
    let form = ServedForm::of(facts, fields, part, now.wall);
    let has_content = matches!(
        form,
        ServedForm::Whole | ServedForm::Unsized | ServedForm::Part(_) | ServedForm::Unsatisfiable
    );
    // without the complete length the requested range is not known
    if has_content && part.complete_length().is_none() {
        return Covers::Lacking;
    }
    match form.span(part) {
        Some(span) if !part.body.holds(span) => Covers::Lacking,
        _ => Covers::Wanted,
    }
}
