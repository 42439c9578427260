//! CONNECT: a tunnel to an allowed port of an allowed address (RFC 9110 §9.3.6).

use crate::client::connection::Client;
use crate::exchange::forward;
use crate::exchange::next_hop::NextHop;
use crate::exchange::respond;
use crate::exchange::state::RequestState;
use crate::exchange::switch;
use crate::request::answer::{Answer, AnswerReason};
use std::rc::Rc;
use std::sync::Arc;
use weir_net::tunnel;

/// Opens a tunnel; the client's connection never goes on as HTTP afterwards.
pub(crate) async fn run(client: &mut Client, exchange: &mut RequestState) -> bool {
    let settings = Arc::clone(&exchange.settings);
    // what a client sends before it knows of the refusal is meant for the tunnel and is no request
    // (RFC 9931)
    exchange.persistence.keep_alive = false;
    if let Err(denied) = settings.connect_ports.check(exchange.request.port) {
        let answer = Answer::open(
            403,
            AnswerReason::denied(format!("{denied}; access.connect_ports opens more")),
        );
        return respond::respond(client, exchange, answer).await;
    }
    let worker = Rc::clone(&client.worker);
    let destination = match NextHop::of(exchange, client.listener.mode, &worker) {
        Ok(next_hop) => next_hop.destination,
        Err(answer) => return respond::respond(client, exchange, answer).await,
    };
    let rules = &settings.connections;
    let permit = match tunnel::reserve(worker.network(), rules, &destination) {
        Ok(permit) => permit,
        Err(failure) => {
            return respond::respond(client, exchange, Answer::open(503, failure.into())).await;
        }
    };
    match tunnel::open(worker.net(), rules, &destination, permit).await {
        Err(failure) => forward::fail(client, exchange, None, failure.into()).await,
        Ok(connection) => {
            exchange.log.connected(&connection);
            let head = b"HTTP/1.1 200 Connection established\r\n\r\n";
            switch::run(client, exchange, connection, (200, head), &[]).await
        }
    }
}
