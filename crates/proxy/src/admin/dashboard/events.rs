//! `/events`: each second an event with what was measured (server-sent events, WHATWG HTML §9.2).

use super::{Dashboard, Latest};
use crate::admin::{of_type, text};
use axum::Extension;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use futures_core::Stream;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};

/// What one watcher is sent, while it watches.
struct Events {
    events: mpsc::Receiver<Arc<str>>,
    /// Its place among the watchers.
    _place: OwnedSemaphorePermit,
}

impl Stream for Events {
    type Item = Result<String, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = self.events.poll_recv(cx);
        event.map(|event| Some(Ok(event?.as_ref().to_owned())))
    }
}

/// `GET /events`.
pub(in crate::admin) async fn events(Extension(dashboard): Extension<Arc<Dashboard>>) -> Response {
    let Ok(place) = Arc::clone(&dashboard.watchers).try_acquire_owned() else {
        let why = "as many watchers as there may be (16) follow the events\n";
        return text(StatusCode::SERVICE_UNAVAILABLE, why.into());
    };
    // one event waits: a watcher that is slower than the seconds misses some of them
    let (sender, events) = mpsc::channel(1);
    tokio::spawn(follow(dashboard.latest.subscribe(), sender));
    let stream = Events {
        events,
        _place: place,
    };
    of_type(
        StatusCode::OK,
        "text/event-stream",
        Body::from_stream(stream),
    )
}

/// Gives each second to a watcher, until this has gone.
async fn follow(mut latest: watch::Receiver<Latest>, watcher: mpsc::Sender<Arc<str>>) {
    latest.mark_changed();
    loop {
        tokio::select! {
            () = watcher.closed() => return,
            changed = latest.changed() => if changed.is_err() {
                return;
            },
        }
        let event = Arc::clone(&latest.borrow_and_update().event);
        if !event.is_empty() {
            // if the last one was not taken, this one is skipped
            let _skipped = watcher.try_send(event);
        }
    }
}
