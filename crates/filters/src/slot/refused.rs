//! Calls of a filter that have failed, and when it learns of that: in a later turn, and not at
//! once. Within the turn that called it might call again, and so without an end.

use std::time::{Duration, Instant};
use weir_extend::Host;
use weir_wasm::HttpCallId;

/// A call that has failed is completed no sooner than after this time: a filter that calls again
/// when a call fails does not take the whole time of its worker.
pub(super) const FAILURE_PAUSE: Duration = Duration::from_millis(10);

/// A call for which the worker has no task left.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refused {
    /// An HTTP call.
    Call(HttpCallId),
    /// A call of a function of the host, by its token.
    Function(u32),
}

/// Waits until a call that began then, and has failed, can be completed.
pub(super) async fn pause(host: &dyn Host, begun: Instant) {
    let rest = FAILURE_PAUSE.saturating_sub(begun.elapsed());
    if !rest.is_zero() {
        host.sleep(rest).await;
    }
}
