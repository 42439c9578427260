//! The loop of one thread: it accepts connections, and serves them.

use super::connection::Connection;
use super::context::WorkerContext;
use super::listener::Listener;
use super::named::NamedModule;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// How long requests may take that were under way when the server was told to end.
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// How long nothing is accepted when a connection could not be, as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until the server is to end, and serves them to their end.
pub(super) async fn run(context: Rc<WorkerContext>, listener: Listener) {
    let mut connections = JoinSet::new();
    for module in &context.shared.modules {
        if let Some(period) = module.module.period() {
            tokio::task::spawn_local(tick(Rc::clone(&context), module.clone(), period));
        }
    }
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
    let drained = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(DRAIN_TIMEOUT, drained).await;
}

/// Calls a module from time to time.
async fn tick(context: Rc<WorkerContext>, module: NamedModule, period: Duration) {
    let mut ticks = interval(period.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !context.is_stopping() {
        ticks.tick().await;
        if let Some(work) = module.module.tick(context.host(&module.name)) {
            work.await;
        }
    }
}
