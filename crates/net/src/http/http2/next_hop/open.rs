//! A stream for a request to a next hop that may speak HTTP/2.

use super::connection::Connection;
use super::need::ConnectionNeed;
use super::stream::Http2NextHop;
use super::table::{Choice, Opening, Speaks, Table};
use crate::next_hops::{
    self, ConnectFailure, ConnectionRules, Destination, HopKey, check_in, obtain,
};
use crate::workers::Worker;
use std::rc::Rc;
use std::sync::Arc;
use weir_semantics::ProxyError;

/// Connections that are opened for one request at most. A next hop may end each as it begins.
const OPENINGS_MAX: u32 = 8;

/// What a request to a next hop is sent on.
pub(in crate::http) enum Opened {
    /// An HTTP/1.1 connection, which it has for itself.
    Http1(next_hops::Connection),
    /// A stream of HTTP/2.
    Http2(Box<Http2NextHop>),
}

/// A stream to `destination`, on a connection as a request needs it. Requests that come while a
/// connection is being opened wait for it, once it is known that the next hop speaks HTTP/2;
/// before, each opens one, as all may need theirs.
///
/// # Errors
///
/// As [`obtain`].
pub(in crate::http) async fn open(
    worker: &Worker,
    rules: &Arc<ConnectionRules>,
    destination: &Destination,
    need: ConnectionNeed,
) -> Result<Opened, ConnectFailure> {
    let table = Table::of(worker);
    let fresh = need.is_fresh();
    let mut openings = 0;
    loop {
        let speaks = table.speaks(&destination.hop);
        if speaks == Speaks::Http1 {
            let http1 = Destination {
                hop: destination.hop.clone().by_http1(),
                ..destination.clone()
            };
            let connection = obtain(worker, rules, &http1, fresh).await?;
            return Ok(Opened::Http1(connection));
        }
        if need.is_alone() {
            return open_exclusive(worker, rules, destination, fresh).await;
        }
        match table.choose(worker, rules, destination, fresh) {
            Choice::Take(connection) => {
                // as of HTTP/1.1, the look-up of one that is repeated is counted once
                let stream = Http2NextHop::begin(&handle(worker)?, connection, fresh);
                return Ok(Opened::Http2(Box::new(stream)));
            }
            Choice::Wait(waiting) => waiting.end().await?,
            Choice::Open if openings == OPENINGS_MAX => return Err(takes_none(&destination.hop)),
            Choice::Open if speaks == Speaks::Http2 => {
                openings += 1;
                let opening = table.begin_opening(&destination.hop);
                spawn(worker, rules, destination, opening)?;
            }
            Choice::Open => {
                let opened = obtain(worker, rules, destination, fresh).await?;
                if !opened.is_http2() {
                    return Ok(Opened::Http1(opened));
                }
                let worker = handle(worker)?;
                let connection = Connection::begin(&worker, destination, (opened, false)).await?;
                // another request may have opened one, which is as good
                let connection = match table.choose(&worker, rules, destination, fresh) {
                    Choice::Take(chosen) => chosen,
                    Choice::Wait(_) | Choice::Open => connection,
                };
                // by `obtain` already, whichever connection it is
                let stream = Http2NextHop::begin(&worker, connection, true);
                return Ok(Opened::Http2(Box::new(stream)));
            }
        }
    }
}

/// The failure of a request for which connections were opened, and no request begins on any.
fn takes_none(hop: &HopKey) -> ConnectFailure {
    let text =
        format!("{hop} has ended {OPENINGS_MAX} connections before a request, or permits none");
    ConnectFailure::new(ProxyError::ConnectionTerminated, text)
}

/// A stream on a connection that is opened for it, and carries no other one before it has ended.
async fn open_exclusive(
    worker: &Worker,
    rules: &Arc<ConnectionRules>,
    destination: &Destination,
    fresh: bool,
) -> Result<Opened, ConnectFailure> {
    let table = Table::of(worker);
    let set_up = table.begin_exclusive(&destination.hop, rules.wait_limit);
    let set_up = set_up.await?;
    // unless it is repeated, one of HTTP/1.1 that is kept will do
    let opened = obtain(worker, rules, destination, fresh).await?;
    if !opened.is_http2() {
        return Ok(Opened::Http1(opened));
    }
    let worker = handle(worker)?;
    let connection = Connection::begin(&worker, destination, (opened, true)).await?;
    drop(set_up);
    let stream = Http2NextHop::begin(&worker, connection, true);
    Ok(Opened::Http2(Box::new(stream)))
}

/// Whether a worker has a connection of HTTP/2 to a next hop.
#[must_use]
pub fn has_http2_connection(worker: &Worker, hop: &HopKey) -> bool {
    hop.http2 && Table::of(worker).has_connection(hop)
}

/// Opens a connection in a task of its own, so that the end of one request is none for those that
/// wait for it, too.
fn spawn(
    worker: &Worker,
    rules: &Arc<ConnectionRules>,
    destination: &Destination,
    opening: Opening,
) -> Result<(), ConnectFailure> {
    let worker = handle(worker)?;
    let (rules, destination) = (Arc::clone(rules), destination.clone());
    tokio::task::spawn_local(async move {
        // boxed: the task's memory is held only while it runs
        match Box::pin(run(&worker, &rules, &destination)).await {
            Ok(()) => drop(opening),
            Err(failure) => opening.fail(failure),
        }
    });
    Ok(())
}

async fn run(
    worker: &Rc<Worker>,
    rules: &Arc<ConnectionRules>,
    destination: &Destination,
) -> Result<(), ConnectFailure> {
    let opened = obtain(worker, rules, destination, false).await?;
    if opened.is_http2() {
        let connection = Connection::begin(worker, destination, (opened, false)).await?;
        connection.set_opened_for_next();
        return Ok(());
    }
    // it has come to speak HTTP/1.1
    Table::of(worker).set_speaks(&destination.hop, Speaks::Unknown);
    check_in(worker, opened);
    Ok(())
}

fn handle(worker: &Worker) -> Result<Rc<Worker>, ConnectFailure> {
    worker.handle().ok_or_else(|| {
        let text = "the process is shutting down";
        ConnectFailure::new(ProxyError::ProxyInternalError, text)
    })
}
