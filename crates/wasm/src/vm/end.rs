//! Why calls fail, and why an instance ends.

use super::limiter::Limiter;
use crate::abi::ContextId;
use std::error::Error;
use std::fmt;
use wasmtime::Trap;

/// Why an instance ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// A call lasted longer than its deadline.
    DeadlineExceeded,
    /// The stack of the module is full.
    StackOverflow,
    /// The module exited, with this code.
    Exit(i32),
    /// The module trapped; the text says how.
    Trap(String),
    /// The plugin context was finished, as the user required.
    Finished,
}

impl EndReason {
    pub(crate) fn new(error: &wasmtime::Error, limiter: &Limiter) -> Self {
        if let Some(Exit(code)) = error.downcast_ref::<Exit>() {
            return Self::Exit(*code);
        }
        match error.downcast_ref::<Trap>() {
            Some(Trap::Interrupt) => return Self::DeadlineExceeded,
            Some(Trap::StackOverflow) => return Self::StackOverflow,
            _ => {}
        }
        Self::Trap(match limiter.remark() {
            Some(remark) => format!("{error:#}; {remark}"),
            None => format!("{error:#}"),
        })
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeadlineExceeded => f.write_str("the call lasted longer than its deadline"),
            Self::StackOverflow => f.write_str("the stack of the module is full"),
            Self::Exit(code) => write!(f, "the module exited with code {code}"),
            Self::Trap(how) => write!(f, "the module trapped: {how}"),
            Self::Finished => f.write_str("the plugin context is finished"),
        }
    }
}

/// `proc_exit`, on its way through wasmtime.
#[derive(Debug)]
pub(crate) struct Exit(pub(crate) i32);

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit with code {}", self.0)
    }
}

impl Error for Exit {}

/// Why a call of a module failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The instance ended in this call.
    Failed(EndReason),
    /// The instance had ended before.
    Ended(EndReason),
    /// There is no such stream context.
    UnknownContext(ContextId),
    /// There is no such HTTP call.
    UnknownHttpCall(u32),
    /// As many streams exist as the limits allow.
    TooManyStreams {
        /// The limit.
        streams_max: usize,
    },
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(reason) => reason.fmt(f),
            Self::Ended(reason) => write!(f, "the instance ended before: {reason}"),
            Self::UnknownContext(id) => write!(f, "there is no context {id}"),
            Self::UnknownHttpCall(id) => write!(f, "there is no HTTP call {id}"),
            Self::TooManyStreams { streams_max } => {
                write!(f, "{streams_max} streams exist, which is the limit")
            }
        }
    }
}

impl Error for CallError {}

/// Why an instance did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartError {
    /// Its memory or its tables cannot be made; the text says why.
    Instantiate(String),
    /// It ended in this step.
    Ended {
        /// The name of the export that was called.
        step: &'static str,
        /// Why.
        reason: EndReason,
    },
    /// It refused its configuration by the result of this step.
    Refused {
        /// The name of the export that was called.
        step: &'static str,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instantiate(why) => write!(f, "cannot instantiate the module: {why}"),
            Self::Ended { step, reason } => write!(f, "`{step}` failed: {reason}"),
            Self::Refused { step } => write!(f, "the module refused its configuration in `{step}`"),
        }
    }
}

impl Error for StartError {}
