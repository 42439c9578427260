//! `SIGHUP`, `SIGTERM` and `SIGINT`.

use crate::run::Proxy;
use std::io;
use tokio::signal::unix::{SignalKind, signal};

/// What came of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Everything under way was finished.
    Drained,
    /// The limit passed, or a second signal came: the rest was cut.
    Cut,
}

/// Serves until `SIGTERM` or `SIGINT`, then drains; `SIGHUP` reloads. `tell` gets lines for the operator.
///
/// # Errors
///
/// The signals cannot be taken.
pub fn run_until_signalled(proxy: Proxy, tell: &dyn Fn(&str)) -> io::Result<Stopped> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        let mut hang_up = signal(SignalKind::hangup())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        loop {
            tokio::select! {
                _ = hang_up.recv() => match proxy.control().reload() {
                    Ok(notes) => tell(&format!("config reloaded\n{notes}")),
                    Err(error) => tell(&format!("{error}\nthe config in force stays as it was")),
                },
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
            }
        }
        io::Result::Ok(())
    })?;
    tell("stopping: what is under way may finish");
    Ok(if proxy.stop() {
        Stopped::Drained
    } else {
        Stopped::Cut
    })
}
