//! Decides on a head of the response, and carries out what needs no content.

use crate::cache::freshen::{self, Merging};
use crate::cache::invalidate;
use crate::exchange::download::content::relay_plan;
use crate::exchange::download::{Download, Parties, ResponseOutcome, Step, broken};
use crate::exchange::heads::inbound;
use crate::exchange::next_hop::{Decline, LateralAnswer};
use crate::exchange::state::RequestState;
use crate::exchange::upload::progress::Sending;
use crate::fetch::arrival::{self, Response, Storing};
use crate::fetch::missing_range;
use crate::fetch::store_writer::StoreWriter;
use crate::log::report;
use crate::request::answer::AnswerReason;
use crate::settings::hierarchy::ProxyOutcome;
use std::sync::Arc;
use weir_net::http::{ReceivedHead, is_websocket_accepted};
use weir_policy::fetch::RestRefusal;
use weir_policy::{Command, Commands, Event};
use weir_semantics::{
    EntityTag, Fits, ProxyError, ResponseFacts, Strength, Timestamp, line_named, parse_retry_after,
    switches_as_offered,
};
use weir_store::StoredResponse;
use weir_wire::{LineBuffer, ResponseHead};

/// Interim responses passed on for one request. RFC 9110 §15.2 sets no limit; an endless row of
/// them is an attack.
const INTERIM_MAX: u32 = 32;

impl Download<'_, '_> {
    pub(super) fn judge(&mut self, received: &ReceivedHead<'_, '_>) -> Result<Step, AnswerReason> {
        let head = &received.head;
        let exchange = &mut *self.parties.exchange;
        if head.status == 101 {
            if !exchange.request.upgrade {
                return Err(broken(&"it switches protocols without being asked to"));
            }
            if !switches_as_offered(&exchange.request.fields(), head.fields) {
                return Err(broken(
                    &"it switches to a protocol that the client does not offer",
                ));
            }
            // a client of HTTP/2 has sent no key, and cannot see whether the next hop has it
            if exchange.client.is_http2()
                && !is_websocket_accepted(&exchange.request.fields(), head.fields)
            {
                return Err(broken(
                    &"its Sec-WebSocket-Accept is not of the key it was sent",
                ));
            }
            exchange.response_timer = None;
            return Ok(Step::Final(ResponseOutcome::Switched {
                head: inbound::switching_head(head, &exchange.settings),
            }));
        }
        if head.status < 200 {
            self.interim += 1;
            if self.interim > INTERIM_MAX {
                return Err(broken(&"it sends interim responses without end"));
            }
            // another node proves itself with the final head, and a sibling may have nothing
            let is_passed = exchange.lateral.is_none() && !exchange.asks_sibling();
            let head = if is_passed {
                inbound::interim_head(head)
            } else {
                Vec::new()
            };
            return Ok(Step::Interim { head });
        }
        if exchange.request.upgrade && exchange.client.is_http2() && head.status < 300 {
            // to a client of HTTP/2 it would say that the WebSocket is open (RFC 8441 §5)
            return Err(broken(&"it opens no WebSocket, and answers with content"));
        }
        self.judge_final(received)
    }

    fn judge_final(&mut self, received: &ReceivedHead<'_, '_>) -> Result<Step, AnswerReason> {
        let head = &received.head;
        let Parties {
            exchange,
            worker,
            stored,
            sending,
            to_client,
            ..
        } = &mut self.parties;
        let body = received.length.map_err(|error| broken(&error))?;
        let now = worker.now();
        exchange.waits = None;
        let response = Response {
            head,
            body,
            buffered: received.buffered,
        };
        if let Some(outcome) = judge_source(exchange, &response)? {
            return Ok(Step::Final(outcome));
        }
        let settings = Arc::clone(&exchange.settings);
        let targeted = settings.targeted(exchange.request.mode);
        let facts = ResponseFacts {
            has_mixed_line_ends: received.has_mixed_line_ends,
            ..ResponseFacts::gather(head.status, head.fields, now.wall)
                .targeted(head.fields, targeted)
        };
        exchange.log.answered(received.is_persistent);
        if let Some(timer) = exchange.response_timer.take() {
            timer.stop(now);
        }
        if let (Some(missing), Some(stored)) = (&exchange.missing, stored.as_deref())
            && missing.is_for_one()
        {
            let fits = missing.fits(stored, &facts, head.fields, body);
            return Ok(Step::Final(continued(exchange, &response, fits)));
        }
        let stored = stored.filter(|_| exchange.tx.may_update(head.status));
        let date = stored.as_ref().map(|_| worker.date()).unwrap_or_default();
        let mut stored_lines = LineBuffer::new();
        let merging = stored.map(|stored| {
            let fits = freshen::fits(stored, exchange.missing.as_deref(), head, &facts, body);
            Merging::new(
                worker,
                targeted,
                stored,
                &mut stored_lines,
                head.fields,
                &date,
                fits,
            )
        });
        let event = match &merging {
            Some(merging) => Event::Update(merging.update(&facts)),
            None => Event::Response(&facts),
        };
        let rules = match &merging {
            Some(merging) => merging.rules(exchange),
            None => exchange.storing_rules(head.status, line_named(head.fields, "content-type")),
        };
        let commands = exchange.tx.handle(now, &rules, event);
        // an answer to a request that is not whole ends the connection, and says so (RFC 9112 §9.3)
        if sending.get() != Sending::Done
            && let Some(client) = to_client
        {
            client.close_after();
        }
        Ok(match self.obey(&commands, &response, merging.as_ref()) {
            Ok(storing) => self.begin(&response, storing, merging),
            Err(outcome) => Step::Final(outcome),
        })
    }

    /// Carries out the commands that need no content. Returns what to store, or the outcome if the
    /// response is not for the client.
    fn obey(
        &mut self,
        commands: &Commands,
        response: &Response<'_>,
        merging: Option<&Merging<'_>>,
    ) -> Result<Option<Storing>, ResponseOutcome> {
        let Parties {
            exchange,
            worker,
            stored,
            ..
        } = &mut self.parties;
        let replaces = commands
            .iter()
            .any(|command| matches!(command, Command::Store(_)));
        let (mut storing, mut fresh) = (None, None);
        for command in commands.iter() {
            match command {
                Command::Freshen(facts) => {
                    fresh = merging.map(|merging| merging.store(worker, exchange, facts));
                }
                Command::ServeMerged(serving) => {
                    let Some(merging) = merging else { continue };
                    report::count_merged(worker.counters(), exchange.tx.verdict());
                    return Err(ResponseOutcome::Merged {
                        response: merging.for_client(worker, exchange, fresh.clone()),
                        stored: fresh,
                        serving,
                    });
                }
                Command::Serve(serving) => {
                    arrival::discard(exchange, response);
                    return Err(ResponseOutcome::ServeStale(serving));
                }
                Command::Store(facts) => storing = Some(Storing::New(facts)),
                Command::Combine(facts) => storing = Some(Storing::Part(facts)),
                Command::Invalidate => {
                    invalidate::run(worker, exchange, response.head, &mut self.invalidated);
                }
                Command::Drop => {
                    if let Some(stored) = stored {
                        // after a purge the disk refuses responses that were requested before it
                        if replaces || exchange.fills_missing_range() {
                            worker.shared.store.drop_one(exchange.key, stored);
                        } else {
                            let purge = invalidate::one(worker, exchange, stored);
                            self.invalidated.add(purge);
                        }
                    }
                }
                Command::ForwardAgain if exchange.completes_part() => {
                    arrival::discard(exchange, response);
                    let refusal = rest_refusal(response.head, *stored, worker.now().wall);
                    return Err(ResponseOutcome::NotRest(refusal));
                }
                Command::ForwardAgain => {
                    arrival::discard(exchange, response);
                    let is_same = merging.is_some_and(|merging| merging.fits() == Fits::Same);
                    return Err(if exchange.fills_missing_range() && is_same {
                        ResponseOutcome::NotShared
                    } else {
                        ResponseOutcome::ForwardAgain
                    });
                }
                _ => {}
            }
        }
        if exchange.fills_missing_range() && !matches!(storing, Some(Storing::Part(_))) {
            arrival::discard(exchange, response);
            return Err(missing_range::refused(response.head.status));
        }
        Ok(storing)
    }

    /// Begins to forward the response: through the store if it is stored, else by a relay.
    fn begin(
        &mut self,
        response: &Response<'_>,
        storing: Option<Storing>,
        merging: Option<Merging<'_>>,
    ) -> Step {
        let Parties {
            exchange,
            worker,
            to_client,
            ..
        } = &mut self.parties;
        let now = worker.now();
        let answers_others = |storing: Storing| {
            let content_type = line_named(response.head.fields, "content-type");
            let reuse = exchange.reuse_for(response.head.status, content_type);
            reuse.of(storing.facts()).answers_others(now)
        };
        if storing.is_some_and(|storing| !answers_others(storing)) {
            exchange.release_followers(worker, true);
        }
        let is_there = response.buffered.is_whole();
        let mut store_writer = None;
        if let Some(storing) = storing {
            if exchange.is_for_store_alone() && !is_there && worker.shared.background.is_nothing() {
                exchange.tell(worker, Event::Incomplete);
            } else if arrival::is_stored_by_relay(exchange, response, &storing) {
                if let Storing::New(facts) = storing {
                    store_writer =
                        StoreWriter::begin(worker, exchange, response.head, response.body, facts)
                            .map(Box::new);
                }
            } else if let Some(arrived) =
                arrival::begin(worker, exchange, response, storing, merging)
            {
                exchange.log.handed_on(response.buffered.len() as u64);
                return Step::Final(ResponseOutcome::FetchStarted(Box::new(arrived)));
            }
        }
        if store_writer.is_none() {
            exchange.expected = None;
            // what another node keeps may be for others
            let says_about_target = exchange.tx.says_about_target(response.head.status)
                && !(storing.is_some() && exchange.left_to_source().is_some());
            exchange.release_followers(worker, says_about_target);
            if to_client.is_none() && !is_there {
                // there is neither a client nor room in the store
                arrival::discard(exchange, response);
                report::count_storing(worker.counters(), exchange.tx.verdict());
                return Step::Final(ResponseOutcome::ClientLeft);
            }
        }
        Step::Relay(relay_plan(exchange, response, store_writer))
    }
}

/// Whether a response is one that answers the request, if another node of the cluster, a parent or
/// a sibling sent it: the outcome if not.
fn judge_source(
    exchange: &mut RequestState,
    response: &Response<'_>,
) -> Result<Option<ResponseOutcome>, AnswerReason> {
    let head = response.head;
    if let Some(lateral) = &exchange.lateral {
        return match lateral.take_report(&exchange.worker, (head.status, head.fields)) {
            LateralAnswer::Usable => Ok(None),
            LateralAnswer::Declined(why) => Ok(Some(ResponseOutcome::Declined(why))),
            // too large for it with the fields that this node adds: a head that it does not read
            // is not proved to be of a member, and its answer is not either
            LateralAnswer::Stranger if matches!(head.status, 414 | 431) => {
                Ok(Some(ResponseOutcome::Declined(Decline::NoResponse)))
            }
            LateralAnswer::Stranger => Err(broken(
                &"it is no member of the cluster, or refuses this one",
            )),
        };
    }
    let Some(proxy) = &exchange.proxy else {
        return Ok(None);
    };
    if !proxy.is_answer(head.status) {
        arrival::discard(exchange, response);
        return Ok(Some(ResponseOutcome::Declined(Decline::NoResponse)));
    }
    if head.status == 407 {
        return Err(login_refused());
    }
    proxy.ended(&exchange.worker, ProxyOutcome::Answered);
    Ok(None)
}

/// A parent wants to know who this proxy is, or has another password for it. Its clients are not
/// asked: they would send their credentials.
pub(crate) fn login_refused() -> AnswerReason {
    AnswerReason::new(
        ProxyError::ProxyConfigurationError,
        "the parent wants another name or password of this proxy (407); see parent[].login_file",
    )
}

/// What follows from a response that is not the rest of the part `stored`, which nothing has asked
/// for.
fn rest_refusal(
    head: &ResponseHead<'_, '_>,
    stored: Option<&Arc<StoredResponse>>,
    now: Timestamp,
) -> RestRefusal {
    let tag_of_part = stored.and_then(|stored| stored.validators().entity_tag);
    let tag = line_named(head.fields, "etag").and_then(EntityTag::parse);
    let is_other = tag.zip(tag_of_part).is_some_and(|(tag, of_part)| {
        tag.strength() == Strength::Strong && !tag.strong_eq(&of_part)
    });
    let retry_after = line_named(head.fields, "retry-after");
    let retry_after = retry_after.and_then(|value| parse_retry_after(value, now));
    RestRefusal::of(head.status, is_other, retry_after)
}

/// The rest of a response, fetched for one client alone. Nothing of it is stored: it only has to be
/// of the representation whose beginning the client has.
fn continued(exchange: &mut RequestState, response: &Response<'_>, fits: Fits) -> ResponseOutcome {
    let arrived = (fits == Fits::Same).then(|| arrival::fill(exchange, response));
    if let Some(arrived) = arrived.flatten() {
        exchange.log.handed_on(response.buffered.len() as u64);
        return ResponseOutcome::FetchStarted(Box::new(arrived));
    }
    arrival::discard(exchange, response);
    missing_range::refused(response.head.status)
}
