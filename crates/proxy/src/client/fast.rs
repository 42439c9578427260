//! The way of a request that needs nobody else: parsed, judged, answered from memory, in one pass.
//!
//! What cannot be answered so (a miss, a large response, a tunnel) leaves as an [`Exchange`].

use crate::cache::chosen::Chosen;
use crate::client::connection::Client;
use crate::config::Mode;
use crate::exchange::state::{Exchange, Plan};
use crate::log::account::Account;
use crate::log::report;
use crate::log::served::Served;
use crate::request::answer::{Answer, head_of};
use crate::request::judge::{Asked, Request};
use crate::request::max_forwards;
use crate::request::vary::selecting_digest;
use crate::send::heads::{self, Persistence, ServedForm};
use crate::worker::settings::Settings;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use weir_policy::transaction::Covers;
use weir_policy::{Command, Commands, Digest, Event, Missing, Now, Serving, Transaction};
use weir_semantics::{FieldLine, Form, Method, RequestFacts, line_named};
use weir_store::{Expected, Lookup, StoredResponse};
use weir_wire::{
    BodyLength, LineBuffer, Progress, RequestHead, Version, parse_request, request_body,
};

/// What became of the front of the input.
pub(crate) enum Taken {
    /// A request was answered.
    Answered {
        /// Bytes of the input that it took.
        consumed: usize,
    },
    /// The head is not whole.
    Partial,
    /// The head was taken; the answer needs more.
    Exchange {
        /// Bytes of the input that the head took.
        consumed: usize,
        /// What to do.
        exchange: Box<Exchange>,
    },
}

/// What was received and not taken yet.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    pub(crate) bytes: &'a [u8],
    /// Where it begins among what was received together.
    pub(crate) at: usize,
}

/// Takes one request from the front of the input; an answer made at once is appended to `out`, and
/// to `served` what is to be said of it once the kernel has it.
pub(crate) fn take(
    client: &mut Client,
    settings: &Arc<Settings>,
    Input { bytes: input, at }: Input<'_>,
    out: &mut Vec<u8>,
    served: &mut Vec<Served>,
) -> Taken {
    let started = client.head_began.unwrap_or_else(Instant::now);
    let timed = client.worker.shared.access_log.is_on();
    let mut lines = LineBuffer::new();
    let (head, consumed) = match parse_request(input, &settings.heads, &mut lines) {
        Ok(Progress::Partial) => return Taken::Partial,
        Ok(Progress::Complete { head, consumed }) => (head, consumed),
        Err(error) => {
            client.requests = client.requests.saturating_add(1);
            let answer = Answer::closing(
                error.status(),
                crate::request::answer::Trouble::bad(error.to_string()),
            );
            let account = Account::new(started, input.len(), timed);
            served.push(refuse(client, settings, None, &answer, account, out));
            if let Some(record) = &client.worker.shared.record {
                record.skip();
            }
            return Taken::Answered {
                consumed: input.len(),
            };
        }
    };
    client.requests = client.requests.saturating_add(1);
    let mut account = Account::new(started, consumed, timed);
    account.head_us = account.mark_us();
    let asked = Asked {
        settings,
        mode: client.door.mode,
        default: &client.door.default,
        client_allowed: settings.allows_client(client.door.mode, client.peer),
    };
    let request = match Request::judge(&head, &asked) {
        Ok(request) => request,
        Err(answer) => {
            let asked = Some((&head, at..at + consumed));
            served.push(refuse(client, settings, asked, &answer, account, out));
            return Taken::Answered { consumed };
        }
    };
    let (tx, plan, key) = choose(client, settings, &head, &request);
    account.chosen_us = account.mark_us();
    if let Plan::Serve {
        response,
        serving,
        refresh: None,
    } = &plan
        && is_quick(&request, response)
    {
        let head = (&head, at..at + consumed);
        served.push(serve(
            client, settings, head, &request, &tx, response, *serving, account, out,
        ));
        return Taken::Answered { consumed };
    }
    let mut exchange = Box::new(Exchange::new(
        &input[..consumed],
        &request,
        Arc::clone(settings),
        tx,
        plan,
        key,
        account,
    ));
    if client.worker.shared.record.is_some() {
        exchange.notes = Some(Box::default());
    }
    Taken::Exchange { consumed, exchange }
}

/// A response in memory that is copied behind its head, for a request whose content need not be
/// read away first.
fn is_quick(request: &Request<'_>, response: &StoredResponse) -> bool {
    let body = &response.body;
    request.is_shareable() && body.len() <= heads::INLINE_BYTES_MAX && body.is_in_memory()
}

/// Steps the transaction to its first decision.
fn choose(
    client: &Client,
    settings: &Settings,
    head: &RequestHead<'_, '_>,
    request: &Request<'_>,
) -> (Transaction, Plan, Digest) {
    let worker = &client.worker;
    let now = worker.now();
    let mut tx = Transaction::new(request.facts, now);
    if request.method == Method::Connect {
        return (tx, Plan::Connect, Digest::default());
    }
    if is_for_us(client.door.mode, head, request) {
        return (tx, Plan::Answer(Answer::options()), Digest::default());
    }
    let store = &worker.shared.store;
    let key = request.key(store.secret());
    let unshared = !settings.config.cache.enabled || !request.is_shareable();
    let commands = tx.handle(now, &settings.rules, Event::Request { unshared });
    if commands.first() != Some(Command::LookUp) {
        return (tx, plan_of(&commands), key);
    }
    let selecting = |rule: &_| selecting_digest(store.secret(), key, rule, head.fields);
    let plan = match store.find(now, key, &selecting) {
        Lookup::Found(hit) => {
            let expect = |chosen: &_| store.expect_for(key, chosen);
            found(&mut tx, settings, now, head.fields, hit.response, expect)
        }
        Lookup::Missing(why) if store.may_be_on_disk(key) => Plan::DiskLookup(why),
        Lookup::Missing(why) => missing(&mut tx, settings, now, why),
    };
    (tx, plan, key)
}

/// Steps the transaction with what was found. If the next hop is to be asked about it, the answer
/// is expected from now on.
pub(crate) fn found(
    tx: &mut Transaction,
    settings: &Settings,
    now: Now,
    fields: &[FieldLine<'_>],
    response: Arc<StoredResponse>,
    expect: impl FnOnce(&Arc<StoredResponse>) -> Expected,
) -> Plan {
    if !response.body.is_in_memory() {
        tx.found_on_disk();
    }
    let event = if response.body.is_whole() {
        Event::Found(&response.facts)
    } else {
        let covers = covers(tx.request(), fields, &response, now);
        Event::FoundPart(&response.facts, covers)
    };
    let commands = tx.handle(now, &settings.rules, event);
    match commands.first() {
        Some(Command::Serve(serving)) => {
            let mut all = commands.iter();
            let refreshes = all.any(|command| command == Command::RefreshInBackground);
            Plan::Serve {
                serving,
                refresh: refreshes.then(|| expect(&response)),
                response,
            }
        }
        Some(Command::Forward(forwarding)) => Plan::Forward {
            forwarding,
            stored: Some(Chosen {
                expected: expect(&response),
                response,
            }),
        },
        _ => Plan::Answer(Answer::only_if_cached()),
    }
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

/// What is to be done where nothing was found.
pub(crate) fn plan_of(commands: &Commands) -> Plan {
    match commands.first() {
        Some(Command::Forward(forwarding)) => Plan::Forward {
            forwarding,
            stored: None,
        },
        _ => Plan::Answer(Answer::only_if_cached()),
    }
}

/// Whether a stored part holds all that is asked for (RFC 9111 §3.3).
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
    // without the complete length no range can be told from another
    if has_content && part.complete_length().is_none() {
        return Covers::Lacking;
    }
    match form.span(part) {
        Some(span) if !part.body.holds(span) => Covers::Lacking,
        _ => Covers::Wanted,
    }
}

/// An OPTIONS that goes no further: Max-Forwards says so, or it is for the forward proxy as a
/// whole.
fn is_for_us(mode: Mode, head: &RequestHead<'_, '_>, request: &Request<'_>) -> bool {
    request.method == Method::Options
        && (max_forwards::remaining(head.fields) == Some(0)
            || (mode == Mode::Forward && request.form == Form::Asterisk))
}

#[expect(
    clippy::too_many_arguments,
    reason = "the hot path passes what it has at hand"
)]
fn serve(
    client: &mut Client,
    settings: &Arc<Settings>,
    (head, received): (&RequestHead<'_, '_>, Range<usize>),
    request: &Request<'_>,
    tx: &Transaction,
    response: &Arc<StoredResponse>,
    serving: Serving,
    mut account: Account,
    out: &mut Vec<u8>,
) -> Served {
    let now = client.worker.now();
    let form = ServedForm::of(&request.facts, head.fields, response, now.wall);
    let persistence = Persistence {
        keep_alive: request.keep_alive && !client.worker.shared.is_draining(),
        http11: request.version == Version::Http11,
    };
    let before = out.len();
    heads::write_head(
        settings,
        response,
        form,
        serving,
        tx.verdict(),
        persistence,
        out,
    );
    let head_end = out.len();
    heads::write_content(response, form, out);
    account.status = form.status(response);
    account.response_bytes = (out.len() - before) as u64;
    account.body_bytes = (out.len() - head_end) as u64;
    account.store_bytes = account.body_bytes;
    if response.is_part() {
        account.recovered_bytes = account.body_bytes;
    }
    client.closing = !persistence.keep_alive;
    if client.worker.shared.record.is_some() {
        account.first_byte_us = Some(account.elapsed_us());
    }
    report::count(client, tx.verdict(), &account);
    Served {
        account,
        verdict: *tx.verdict(),
        sequence: client.requests,
        request: Some(received),
        response: before..head_end,
        end: out.len(),
        request_content_bytes: Some(0),
        lacks_host: request.form == Form::Origin && !persistence.http11,
        is_persistent: persistence.keep_alive,
    }
}

/// Answers with a message of our own.
fn refuse(
    client: &mut Client,
    settings: &Arc<Settings>,
    asked: Option<(&RequestHead<'_, '_>, Range<usize>)>,
    answer: &Answer,
    mut account: Account,
    out: &mut Vec<u8>,
) -> Served {
    let before = out.len();
    let (head, received) = asked.unzip();
    let head_only = head.is_some_and(|head| head.method == "HEAD");
    let (verdict, date) = (answer.verdict(), client.worker.date());
    account.body_bytes = answer.write(settings, &verdict, head_only, &date, out);
    account.own_bytes = account.body_bytes;
    account.status = answer.status;
    account.response_bytes = (out.len() - before) as u64;
    account.error = Some(answer.trouble.error.as_str());
    client.closing = client.closing || answer.close;
    report::count(client, &verdict, &account);
    let is_bare = head.is_some_and(|head| {
        let body = request_body(head.version, head.fields);
        matches!(body, Ok(BodyLength::None | BodyLength::Exact(0)))
    });
    Served {
        account,
        verdict,
        sequence: client.requests,
        request: received,
        response: before..before + head_of(&out[before..], account.body_bytes).len(),
        end: out.len(),
        request_content_bytes: is_bare.then_some(0),
        lacks_host: head.is_some_and(|head| {
            head.target.starts_with('/') && line_named(head.fields, "host").is_none()
        }),
        is_persistent: !client.closing,
    }
}
