//! CONNECT: a tunnel to an allowed port of an allowed address (RFC 9110 §9.3.6).

use crate::exchange::forward;
use crate::exchange::next_hop::NextHop;
use crate::exchange::respond;
use crate::exchange::state::RequestState;
use crate::exchange::switch;
use crate::request::answer::{Answer, AnswerReason};
use std::rc::Rc;
use std::sync::Arc;
use weir_net::http::{ClientStream, NextHopStream};
use weir_net::tunnel;

/// Opens a tunnel. The client's connection is not used for HTTP afterwards.
pub(crate) async fn run(stream: &mut ClientStream<'_>, exchange: &mut RequestState) {
    let settings = Arc::clone(&exchange.settings);
    // what a client sends before it knows of the refusal is meant for the tunnel and is no request
    // (RFC 9931)
    stream.response.close_after();
    if let Err(denied) = settings.connect_ports.check(exchange.request.port) {
        let answer = Answer::open(
            403,
            AnswerReason::denied(format!("{denied}; access.connect_ports opens more")),
        );
        return respond::respond(stream, exchange, answer).await;
    }
    let worker = Rc::clone(&exchange.worker);
    let destination = match NextHop::of(exchange) {
        Ok(next_hop) => next_hop.destination,
        Err(answer) => return respond::respond(stream, exchange, answer).await,
    };
    let rules = &settings.connections;
    let permit = match tunnel::reserve(worker.network(), rules, &destination) {
        Ok(permit) => permit,
        Err(failure) => {
            return respond::respond(stream, exchange, Answer::open(503, failure.into())).await;
        }
    };
    match tunnel::open(worker.net(), rules, &destination, permit).await {
        Err(failure) => forward::fail(stream, exchange, None, failure.into()).await,
        Ok(connection) => {
            let hop = NextHopStream::http1(connection);
            exchange.log.connected(&hop.facts());
            if exchange.is_hooked() {
                exchange.run_hooks().await;
            }
            let head = b"HTTP/1.1 200 Connection established\r\n\r\n";
            switch::run(stream, exchange, hop, (200, head)).await
        }
    }
}
