//! Asking the next hop: connection, request, answer, and what to do when it fails.

use crate::answer::{Answer, Trouble};
use crate::client::Client;
use crate::destination::Destination;
use crate::download::{self, Downloaded, HopTrouble};
use crate::exchange::{self, Exchange};
use crate::next_hop::{self, Connection};
use crate::outbound;
use crate::sink::Sink;
use crate::upload::{self, Sending, UploadEnd};
use crate::worker::Worker;
use crate::{freshen, pool, switch};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use weir_measure::Metric;
use weir_policy::retry::{BodySent, Closed, may_repeat};
use weir_policy::{Command, Event, Failure, Forwarding};
use weir_semantics::ProxyError;
use weir_store::StoredResponse;

/// Next hops of a route that one request may try to connect to: each may cost the connect limit.
const HOPS_TRIED_MAX: usize = 3;

/// Forwards a request and relays the answer; `true` if the client's connection may go on.
pub(crate) async fn run(
    client: &mut Client,
    exchange: &mut Exchange,
    forwarding: Forwarding,
    stored: Option<Arc<StoredResponse>>,
) -> bool {
    let worker = Rc::clone(&client.worker);
    let mut destination = match Destination::of(exchange, client.door.mode, &worker) {
        Ok(destination) => destination,
        Err(answer) => return exchange::respond(client, exchange, answer).await,
    };
    if let Err(error) = upload::check_begin(upload::Content::of(exchange), &client.unread) {
        return exchange::respond(client, exchange, Answer::bad_request(&error)).await;
    }
    let mut repeated = false;
    loop {
        let obtained = connect(exchange, &worker, &mut destination, repeated).await;
        let mut connection = match obtained {
            Ok(connection) => connection,
            Err(trouble) => return fail(client, exchange, stored, trouble).await,
        };
        note_connection(exchange, &connection);
        let request = outbound::request_head(exchange, forwarding, stored.as_deref());
        let talked = talk(client, exchange, &mut connection, &request, stored.as_ref()).await;
        match talked.downloaded {
            Downloaded::Relayed {
                whole,
                client_alive,
                reusable,
            } => {
                if reusable && talked.upload_whole {
                    pool::check_in(&worker, connection);
                }
                let goes_on = client_alive && talked.upload_whole;
                // what the client still sends must not bring about a reset that overtakes the answer
                client.closing = whole && !goes_on;
                return goes_on;
            }
            Downloaded::Freshen { received, reusable } => {
                if reusable {
                    pool::check_in(&worker, connection);
                }
                return freshened(client, exchange, stored, &received).await;
            }
            Downloaded::ServeStale(serving) => {
                drop(connection);
                return match stored {
                    Some(stored) => exchange::serve(client, exchange, &stored, serving).await,
                    None => false,
                };
            }
            Downloaded::Switched { head, surplus } => {
                return switch::run(client, exchange, connection, &head, &surplus).await;
            }
            Downloaded::ClientLeft => return false,
            Downloaded::BadContent(error) => {
                drop(connection);
                return exchange::respond(client, exchange, Answer::bad_request(&error)).await;
            }
            Downloaded::Failed(HopTrouble::Unanswered(trouble)) => {
                let closed = Closed {
                    method: exchange.method,
                    body: if exchange.has_content() {
                        BodySent::Consumed
                    } else {
                        BodySent::None
                    },
                    connection_was_reused: connection.reused,
                    response_begun: false,
                    is_repetition: repeated,
                };
                drop(connection);
                if may_repeat(&closed).is_ok() {
                    worker.counters().inc(Metric::Retries);
                    repeated = true;
                    continue;
                }
                return fail(client, exchange, stored, trouble).await;
            }
            Downloaded::Failed(HopTrouble::Broken(trouble)) => {
                drop(connection);
                return fail(client, exchange, stored, trouble).await;
            }
        }
    }
}

/// A connection to `destination`, or to another next hop of its route if this one cannot be had: then `destination` is
/// that one.
async fn connect(
    exchange: &Exchange,
    worker: &Worker,
    destination: &mut Destination,
    fresh: bool,
) -> Result<Connection, Trouble> {
    let mut hops_tried = 1;
    loop {
        let obtained = next_hop::obtain(worker, &exchange.settings, destination, fresh).await;
        let trouble = match obtained {
            Ok(connection) => return Ok(connection),
            Err(trouble) => trouble,
        };
        match destination.another(exchange, worker, &trouble) {
            Some(another) if hops_tried < HOPS_TRIED_MAX => *destination = another,
            _ => return Err(trouble),
        }
        hops_tried += 1;
    }
}

fn note_connection(exchange: &mut Exchange, connection: &Connection) {
    let account = &mut exchange.account;
    account.next_hop = Some(connection.address);
    account.next_hop_reused = connection.reused;
    account.connected_us = Some(account.mark_us());
}

/// What one attempt came to.
struct Talked {
    downloaded: Downloaded,
    /// The request's content was sent whole (or there was none).
    upload_whole: bool,
}

/// Sends the request and takes the answer; content goes up while the answer comes down, as either side may begin.
async fn talk(
    client: &mut Client,
    exchange: &mut Exchange,
    connection: &mut Connection,
    request: &[u8],
    stored: Option<&Arc<StoredResponse>>,
) -> Talked {
    let has_content = exchange.has_content();
    let content = upload::Content::of(exchange);
    let unread = if has_content {
        std::mem::take(&mut client.unread)
    } else {
        Vec::new()
    };
    let worker = Rc::clone(&client.worker);
    let (mut from_client, to_client) = client.stream.split();
    let (from_hop, mut to_hop) = connection.stream.split();
    let sent = upload::send_head(&mut to_hop, request, exchange, &worker).await;
    if let Err(trouble) = sent {
        client.unread = unread;
        return Talked {
            downloaded: Downloaded::Failed(trouble),
            upload_whole: !has_content,
        };
    }
    let sending = Cell::new(if has_content {
        Sending::NotBegun
    } else {
        Sending::Done
    });
    let down = download::run(download::Parties {
        sending: &sending,
        from_hop,
        to_client: Sink::Client(to_client),
        exchange,
        worker: &worker,
        deadline: &mut client.deadline,
        stored,
    });
    if !has_content {
        return Talked {
            downloaded: down.await,
            upload_whole: true,
        };
    }
    let up = upload::send_content(
        &mut from_client,
        &mut to_hop,
        unread,
        content,
        &worker,
        &sending,
    );
    let mut uploaded = None;
    let mut downloaded = {
        tokio::pin!(down, up);
        loop {
            tokio::select! {
                biased;
                downloaded = &mut down => break downloaded,
                ended = &mut up, if uploaded.is_none() => {
                    let left = ended.end.is_clients_fault();
                    uploaded = Some(ended);
                    // a client that stops in the middle of its request will not wait for the answer
                    if left {
                        break Downloaded::ClientLeft;
                    }
                }
            }
        }
    };
    let ended = uploaded.unwrap_or_default();
    client.unread = ended.surplus;
    exchange.account.request_bytes += ended.from_client_bytes;
    exchange.account.to_next_hop_bytes += ended.to_hop_bytes;
    exchange.uploaded = Some(ended.end);
    if let UploadEnd::Invalid(error) = ended.end
        && exchange.account.status == 0
    {
        downloaded = Downloaded::BadContent(error);
    }
    Talked {
        downloaded,
        upload_whole: ended.end.is_whole(),
    }
}

/// The next hop answered 304 to our validators: update the stored response and serve it.
async fn freshened(
    client: &mut Client,
    exchange: &mut Exchange,
    stored: Option<Arc<StoredResponse>>,
    received: &[u8],
) -> bool {
    let Some(stored) = stored else {
        return false;
    };
    let worker = Rc::clone(&client.worker);
    let now = worker.now();
    let fresh = freshen::apply(&worker, exchange, &stored, received);
    let commands = match &fresh {
        Some(fresh) => exchange.tx.freshened(now, &fresh.facts),
        None => exchange.tx.not_freshened(now, &stored.facts),
    };
    let fresh = fresh.unwrap_or(stored);
    match commands.first() {
        Some(Command::Serve(serving)) => exchange::serve(client, exchange, &fresh, serving).await,
        _ => {
            let trouble = Trouble::new(
                ProxyError::HttpProtocolError,
                "the next hop's 304 names another response than it was asked about",
            );
            exchange::respond(client, exchange, Answer::open(502, trouble)).await
        }
    }
}

/// No usable answer: serve the stale response where that is allowed, say what happened otherwise.
pub(crate) async fn fail(
    client: &mut Client,
    exchange: &mut Exchange,
    stored: Option<Arc<StoredResponse>>,
    trouble: Trouble,
) -> bool {
    let worker = Rc::clone(&client.worker);
    let failure = failure_of(&trouble);
    let settings = Arc::clone(&exchange.settings);
    let commands = exchange
        .tx
        .handle(worker.now(), &settings.rules, Event::Failed(failure));
    if let (Some(Command::Serve(serving)), Some(stored)) = (commands.first(), stored) {
        exchange.account.error = Some(trouble.error.as_str());
        return exchange::serve(client, exchange, &stored, serving).await;
    }
    // the trouble knows a finer reason than the kind of failure
    let _ = exchange.tx.refuse(trouble.refused);
    let status = status_of(&trouble);
    worker.counters().inc(match status {
        504 => Metric::NextHopTimeouts,
        _ => Metric::NextHopErrors,
    });
    exchange::respond(client, exchange, Answer::open(status, trouble)).await
}

fn failure_of(trouble: &Trouble) -> Failure {
    match trouble.error {
        ProxyError::HttpProtocolError | ProxyError::HttpResponseIncomplete => Failure::Protocol,
        ProxyError::DestinationIpProhibited
        | ProxyError::ConnectionLimitReached
        | ProxyError::ProxyInternalError
        | ProxyError::ProxyConfigurationError => Failure::Ours,
        _ => Failure::Disconnected,
    }
}

/// The status for a proxy error as RFC 9209 recommends it; but what our rules deny is 403, by name as by address.
fn status_of(trouble: &Trouble) -> u16 {
    match trouble.error {
        ProxyError::DestinationIpProhibited => 403,
        error => error.recommended_status().unwrap_or(502),
    }
}
