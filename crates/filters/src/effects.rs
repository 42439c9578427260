//! What a filter asked for during a call, to be done when the call is over.
//!
//! The instance can be called by the thread that drops the module, and what belongs to a worker
//! cannot. So the guest's side only notes what is to be done, and the worker does it, with no
//! lock held.

use crate::setup::Counts;
use std::task::Waker;
use weir_extend::LogLevel;
use weir_wasm::{ContextId, HttpCall};

/// Lines of the log of one call.
const LINES_MAX: usize = 64;

/// What is to be done.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) lines: Vec<(LogLevel, String)>,
    pub(crate) calls: Vec<(ContextId, HttpCall)>,
    pub(crate) functions: Vec<FunctionCall>,
    pub(crate) wakers: Vec<Waker>,
}

/// A call of a function of the host's own, completed later.
#[derive(Debug)]
pub(crate) struct FunctionCall {
    /// By which the filter knows the completion.
    pub(crate) token: u32,
    pub(crate) name: String,
    pub(crate) arguments: Vec<u8>,
}

impl Effects {
    /// A line of the log.
    pub(crate) fn log(&mut self, level: LogLevel, line: &[u8], counts: &Counts) {
        let line = String::from_utf8_lossy(line);
        if level >= LogLevel::Warning {
            counts.note_warning(&line);
        }
        if self.lines.len() >= LINES_MAX {
            counts.note_dropped_line();
            return;
        }
        self.lines.push((level, line.into_owned()));
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
            && self.calls.is_empty()
            && self.functions.is_empty()
            && self.wakers.is_empty()
    }
}
