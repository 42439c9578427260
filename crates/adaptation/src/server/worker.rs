//! The loop of one thread: it accepts connections, and serves them.

use super::connection::Connection;
use super::context::WorkerContext;
use super::listener::Listener;
use super::timers;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How long requests may take that were under way when the server was told to end.
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// How long nothing is accepted when a connection could not be, as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until the server is to end, and serves them to their end.
pub(super) async fn run(context: Rc<WorkerContext>, listener: Listener) {
    let mut connections = JoinSet::new();
    let timers = tokio::task::spawn_local(timers::run(Rc::clone(&context)));
    let mut stop = context.stop();
    loop {
        let accepted = async {
            let place = Arc::clone(&context.shared.places).acquire_owned().await;
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = accepted => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((socket, peer)) = accepted else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let worker = Rc::clone(&context);
        connections.spawn_local(async move {
            let _place = place;
            if let Some(connection) = Connection::new(worker, socket, peer) {
                connection.serve().await;
            }
        });
    }
    drop(listener);
    timers.abort();
    let drained = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(DRAIN_TIMEOUT, drained).await;
}
