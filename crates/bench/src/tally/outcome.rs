//! How a request ends.

use weir_measure::labels;

/// How a request ends, by the origin's marks and not by the proxy's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With content that was brought by another request: from the store, or from a fetch that was
    /// shared.
    Hit,
    /// With stored content, after the origin said that it is current.
    Validated,
    /// With what the origin sent for this request.
    Forwarded,
    /// With 304.
    NotModified {
        /// Did the origin receive the request?
        by_origin: bool,
    },
    /// Without an answer that could be used.
    Error(ErrorKind),
    /// By the client itself, as the scenario requires.
    Aborted,
}

labels! {
    /// Why a request has no answer that could be used.
    ErrorKind {
        /// The connection was refused.
        ConnectRefused = "connect-refused",
        /// No connection within the time allowed: no host answers, or the listen queue was full all
        /// the time.
        ConnectTimeout = "connect-timeout",
        /// No connection for another reason, such as no route or no free port.
        ConnectFailed = "connect-failed",
        /// No connection, because this machine had no descriptor, port or memory for one: the
        /// generator's fault, and the run's end.
        OutOfSockets = "out-of-sockets",
        /// The connection was reset before the end.
        Reset = "reset",
        /// The connection was closed before the response, or before the response was whole.
        EarlyClose = "early-close",
        /// Nothing moved for the response timeout.
        Timeout = "timeout",
        /// What arrived is no HTTP response, or says its length in two ways.
        Unreadable = "unreadable",
        /// The status is 4xx.
        Status4xx = "status-4xx",
        /// The status is 5xx.
        Status5xx = "status-5xx",
        /// A status that is no answer to the request, such as a redirection.
        StatusOther = "status-other",
        /// The scenario has the origin do something wrong, and this is it: a wrong length, a
        /// status.
        OriginFault = "origin-fault",
        /// The response bears no mark of the origin: it is not from the origin, or the mark was
        /// removed.
        Unmarked = "unmarked",
        /// The agent's queue was at its limit; the request was never sent.
        QueueFull = "queue-full",
        /// The run ended before the response did.
        Unfinished = "unfinished",
    }
}

labels! {
    /// What `Cache-Status` or `X-Cache` says, beside the marks.
    CrossCheck {
        /// The same.
        Agree = "agree",
        /// Something else.
        Disagree = "disagree",
        /// Neither field is there, or neither can be read.
        Absent = "absent",
    }
}
