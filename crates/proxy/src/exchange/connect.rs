//! CONNECT: a tunnel to an allowed port of an allowed address (RFC 9110 §9.3.6), or through a
//! parent.

mod parent_tunnel;

use crate::exchange::attempts::{self, Attempts, Failed, PassResult};
use crate::exchange::forward;
use crate::exchange::next_hop::NextHop;
use crate::exchange::respond;
use crate::exchange::state::RequestState;
use crate::exchange::switch;
use crate::request::answer::{Answer, AnswerReason};
use crate::settings::hierarchy::ProxyOutcome;
use parent_tunnel::NoTunnel;
use std::rc::Rc;
use std::sync::Arc;
use weir_net::http::{ClientStream, NextHopStream};
use weir_net::tunnel;

/// Opens a tunnel. The client's connection is not used for HTTP afterwards.
pub(crate) async fn run(stream: &mut ClientStream<'_>, exchange: &mut RequestState) {
    // what a client sends before it knows of the refusal is meant for the tunnel and is no request
    // (RFC 9931)
    stream.response.close_after();
    if let Err(denied) = exchange.settings.connect_ports.check(exchange.request.port) {
        let answer = Answer::open(
            403,
            AnswerReason::denied(format!("{denied}; access.connect_ports opens more")),
        );
        return respond::respond(stream, exchange, answer).await;
    }
    let worker = Rc::clone(&exchange.worker);
    let mut attempts = match NextHop::of(exchange) {
        Ok(next_hop) => Attempts::new(next_hop),
        Err(answer) => return respond::respond(stream, exchange, answer).await,
    };
    let hop = loop {
        match open(exchange, attempts.next_hop()).await {
            Ok(hop) => break hop,
            Err(NoTunnel::Refused(answer)) => {
                return respond::respond(stream, exchange, answer).await;
            }
            Err(NoTunnel::Failed(failed, reason)) => {
                match attempts.pass_on(exchange, &worker, failed) {
                    PassResult::Next => {}
                    PassResult::NoOther => {
                        return forward::fail(stream, exchange, None, reason).await;
                    }
                    PassResult::Answer(answer) => {
                        return respond::respond(stream, exchange, answer).await;
                    }
                }
            }
        }
    };
    if exchange.is_hooked() {
        exchange.run_hooks().await;
    }
    let head = b"HTTP/1.1 200 Connection established\r\n\r\n";
    switch::run(stream, exchange, hop, (200, head)).await;
}

/// A tunnel to `next_hop`; through it, if it is a parent.
async fn open(
    exchange: &mut RequestState,
    next_hop: &mut NextHop,
) -> Result<NextHopStream, NoTunnel> {
    let worker = Rc::clone(&exchange.worker);
    let settings = Arc::clone(&exchange.settings);
    let (rules, destination) = (&settings.connections, &next_hop.destination);
    exchange.sent_to(next_hop);
    attempts::check_link(rules, destination)
        .map_err(|spent| NoTunnel::Failed(Failed::unsent(&spent), spent))?;
    let place = tunnel::reserve(worker.network(), rules, destination)
        .map_err(|full| NoTunnel::Refused(Answer::open(503, full.into())))?;
    let opened = tunnel::open(worker.net(), rules, destination, place).await;
    let connection = opened.map_err(|failure| {
        let failed = Failed::NoConnection(failure.error);
        NoTunnel::Failed(failed, failure.into())
    })?;
    let mut hop = NextHopStream::of_tunnel(connection);
    exchange.log.connected(&hop.facts());
    let timer = next_hop.connected(&mut hop);
    if let Some(proxy) = next_hop.proxy() {
        let asked = parent_tunnel::ask(exchange, &mut hop).await;
        if !matches!(asked, Err(NoTunnel::Failed(..))) {
            proxy.ended(&worker, ProxyOutcome::Answered);
        }
        asked?;
        if let Some(timer) = timer {
            timer.stop(worker.now());
        }
    }
    Ok(hop)
}
