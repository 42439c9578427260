//! A client of HTTP/2 that takes nothing of what is sent to it.
//!
//! A stream whose window stays closed ends alone, and the streams of a connection share its socket:
//! where that takes nothing, the windows may be open, the limits of streams that wait for it do not
//! run, and the client's kernel answers to probes for ever.

use std::task::{Context, Poll};
use std::time::Duration;
use weir_net::Deadline;
use weir_net::http::{Http2Connection, Http2SendProgress};

/// The socket of a connection for which something waits.
pub(super) struct StalledSocket {
    deadline: Deadline,
    /// How far it was when the limit began to run.
    seen: Http2SendProgress,
}

impl StalledSocket {
    /// Ready once `connection` has had something to send for as long as `limit`, and neither its
    /// kernel nor that of the client has taken any of it. To be polled whenever the connection is
    /// about to wait; `stalled` is its state, `None` at the beginning.
    pub(super) fn poll(
        stalled: &mut Option<Box<Self>>,
        cx: &mut Context<'_>,
        connection: &Http2Connection,
        limit: Duration,
    ) -> Poll<()> {
        if !connection.has_unsent() {
            *stalled = None;
            return Poll::Pending;
        }
        loop {
            let socket = stalled.get_or_insert_with(|| {
                Box::new(Self {
                    deadline: Deadline::new(limit),
                    seen: connection.send_progress(),
                })
            });
            if socket.deadline.poll_passed(cx).is_pending() {
                return Poll::Pending;
            }
            if connection.send_progress() == socket.seen {
                return Poll::Ready(());
            }
            *stalled = None;
        }
    }
}
