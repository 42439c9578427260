//! A thread that reads from a proxy when it is told to.

use crate::messages::Failure;
use crate::operate::top::reading::{Reading, Selection, Source};
use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

/// What came of a reading, and what it was for.
pub(super) type Outcome = (Selection, Result<Reading, Failure>);

/// The thread, of which nothing is waited for: it ends with the process.
#[derive(Debug)]
pub(super) struct Reader {
    wanted: SyncSender<Selection>,
    outcomes: Receiver<Outcome>,
}

impl Reader {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// There is no thread.
    pub(super) fn start(source: Source) -> io::Result<Self> {
        let (wanted, selections) = mpsc::sync_channel(1);
        let (sender, outcomes) = mpsc::sync_channel(1);
        thread::Builder::new()
            .name("weir-top-reader".into())
            .spawn(move || {
                for selection in selections {
                    if sender.send((selection, source.read(selection))).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self { wanted, outcomes })
    }

    /// Begins to read; `false` if that is not possible now.
    pub(super) fn begin(&self, selection: Selection) -> bool {
        self.wanted.try_send(selection).is_ok()
    }

    /// What came of what was begun, if it has ended.
    pub(super) fn take(&self) -> Option<Outcome> {
        self.outcomes.try_recv().ok()
    }
}
