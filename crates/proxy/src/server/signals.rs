//! `SIGHUP`, `SIGTERM` and `SIGINT`.

use crate::server::run::Proxy;
use crate::server::service_manager;
use std::io;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use weir_net::workers::Stage;

/// Pairs of descriptors that are free before a runtime is made, which takes five: the first one of
/// a process panics if there are none for its pair of sockets.
const FREE_PAIRS: usize = 3;

/// How the proxy ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Everything under way was finished.
    Drained,
    /// The limit passed, or a second signal came: the rest was cut.
    Cut,
}

/// Whether there are descriptors for a runtime.
pub(super) fn check_descriptors() -> io::Result<()> {
    let free: io::Result<Vec<_>> = (0..FREE_PAIRS).map(|_| UnixStream::pair()).collect();
    free.map(drop)
}

/// Serves until `SIGTERM` or `SIGINT`, then drains; `SIGHUP` reloads. `ready` is called once
/// signals are handled: one that is received before ends the process. `tell` is called with lines
/// for the operator.
///
/// # Errors
///
/// The signal handlers cannot be installed.
pub fn run_until_signalled(
    proxy: Proxy,
    ready: &dyn Fn(&Proxy),
    tell: &dyn Fn(&str),
) -> io::Result<Stopped> {
    check_descriptors()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    let stopped = runtime.block_on(async {
        let mut hang_up = signal(SignalKind::hangup())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        ready(&proxy);
        service_manager::ready(tell);
        let shared = Arc::clone(proxy.control().shared());
        let mut watch = pin!(service_manager::watch(&shared, tell));
        loop {
            tokio::select! {
                _ = hang_up.recv() => {
                    service_manager::reloading(tell);
                    match reload(&proxy).await {
                        Ok(notes) => tell(&notes),
                        Err(error) => {
                            tell(&format!("{error}\nthe config in force stays as it was"));
                        }
                    }
                    service_manager::ready(tell);
                }
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                () = &mut watch => {}
            }
        }
        service_manager::stopping(tell);
        tell("stopping: what is under way may finish");
        let control = Arc::clone(proxy.control());
        let mut draining = tokio::task::spawn_blocking(move || control.drain());
        let drained = tokio::select! {
            drained = &mut draining => drained.unwrap_or(false),
            _ = terminate.recv() => cut(&proxy, draining).await,
            _ = interrupt.recv() => cut(&proxy, draining).await,
        };
        io::Result::Ok(if drained {
            Stopped::Drained
        } else {
            Stopped::Cut
        })
    })?;
    drop(proxy);
    Ok(stopped)
}

/// Ends a drain at once; never `true`.
async fn cut(proxy: &Proxy, draining: JoinHandle<bool>) -> bool {
    proxy.control().shared().network.advance(Stage::Cut);
    // it may find no connection, since we closed them
    let _ = draining.await;
    false
}

/// Reads files and waits for workers, which a runtime's own thread must not.
async fn reload(proxy: &Proxy) -> Result<String, String> {
    let control = Arc::clone(proxy.control());
    let reloaded = tokio::task::spawn_blocking(move || control.reload()).await;
    let reloaded = reloaded.map_err(|error| error.to_string())?;
    reloaded.map_err(|failure| failure.to_string())
}
