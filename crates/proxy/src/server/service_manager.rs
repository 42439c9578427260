//! What a service manager is told: that the proxy is ready, reads its configuration again, stops,
//! and is alive (`sd_notify(3)`). Without `NOTIFY_SOCKET` in the environment nothing is told.

use crate::worker::shared::Shared;
use sd_notify::NotifyState;
use std::time::Duration;

/// It is told no oftener than this, however short its limit is: workers beat once a second.
const WATCH_MIN: Duration = Duration::from_secs(2);

/// The line for the operator when there is one that hears nothing.
type Tell<'t> = &'t dyn Fn(&str);

/// Listeners are open and signals are handled.
pub(super) fn ready(tell: Tell<'_>) {
    send(&[NotifyState::Ready], tell);
}

/// The configuration is read again; [`ready`] follows.
pub(super) fn reloading(tell: Tell<'_>) {
    // without the time a manager takes READY=1 of before for the end of this reload
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now], tell),
        Err(_) => send(&[NotifyState::Reloading], tell),
    }
}

/// No connection is accepted any more.
pub(super) fn stopping(tell: Tell<'_>) {
    send(&[NotifyState::Stopping], tell);
}

/// Says that the proxy is alive for as long as all workers turn, twice within the time after which
/// the manager ends it. Never ready without such a time.
pub(super) async fn watch(shared: &Shared, tell: Tell<'_>) {
    let limit = sd_notify::watchdog_enabled().filter(|limit| !limit.is_zero());
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    let mut timer = tokio::time::interval((limit / 2).max(WATCH_MIN));
    let mut before = Vec::new();
    loop {
        timer.tick().await;
        match shared.heartbeats.first_silent(&mut before) {
            None => send(&[NotifyState::Watchdog], tell),
            Some(worker) => tell(&format!(
                "worker {worker} does not turn: the service manager is not told that the proxy is alive"
            )),
        }
    }
}

fn send(state: &[NotifyState<'_>], tell: Tell<'_>) {
    if let Err(error) = sd_notify::notify(state) {
        tell(&format!(
            "note: the service manager cannot be told ({error}): `NOTIFY_SOCKET` leads nowhere"
        ));
    }
}
