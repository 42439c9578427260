//! The terminal as a screen, and the signals that end its use.

use super::draw;
use super::state::State;
use ratatui::DefaultTerminal;
use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A terminal that shows nothing but this program; dropped, it is as it was.
#[derive(Debug)]
pub(super) struct Terminal(DefaultTerminal);

impl Terminal {
    /// Takes the terminal. A panic gives it back, too.
    ///
    /// # Errors
    ///
    /// It does not do what terminals do.
    pub(super) fn open() -> io::Result<Self> {
        match ratatui::try_init() {
            Ok(terminal) => Ok(Self(terminal)),
            Err(error) => {
                // a part of it may be done
                let _unusable = ratatui::try_restore();
                Err(error)
            }
        }
    }

    /// Draws the whole screen; what has not changed is not written.
    ///
    /// # Errors
    ///
    /// It cannot be written to.
    pub(super) fn draw(&mut self, state: &mut State) -> io::Result<()> {
        self.0.draw(|frame| draw::draw(frame, state)).map(|_| ())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _unusable = self.0.show_cursor();
        let _unusable = ratatui::try_restore();
    }
}

/// Whether a signal has come that would have ended the process. (SIGHUP does: it comes when the
/// terminal is gone.)
#[derive(Debug)]
pub(super) struct Signals(Arc<AtomicBool>);

impl Signals {
    /// Looks for them from now on.
    ///
    /// # Errors
    ///
    /// The system does not allow it.
    pub(super) fn watch() -> io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(Self(flag))
    }

    /// Whether one has come.
    pub(super) fn have_come(&self) -> bool {
        self.0.load(Relaxed)
    }
}
