//! What happened at the proxy, in order: for a test that makes the same happen elsewhere, and
//! compares what is decided there.
//!
//! Some of it the world does: a request comes, bytes come, a client leaves. The rest are the
//! proxy's answers to that. A replay does the former at the same times and looks for the latter; so
//! it needs no model of the network, and finds every difference in what was decided.

use weir_policy::Verdict;
use weir_policy::fetch::ByteSpan;

/// Something that happened, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Happening {
    /// Milliseconds since the first row's arrival: the tick that decisions were told.
    pub at_ms: u64,
    /// What it was.
    pub what: What,
}

/// What happens. Rows are numbered from 0, and so are transfers from servers, in the order in which
/// they are requested. Connections have numbers too, of each side its own, which are used again
/// after they were closed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// The world: a request is at the proxy.
    Request {
        /// Whose.
        row: u64,
        /// The client's connection.
        connection: u32,
        /// It was opened for it.
        is_new: bool,
    },
    /// It waits for the response head of another request.
    Follows {
        /// The request.
        row: u64,
    },
    /// It is forwarded.
    Asked {
        /// The request that it is for.
        row: u64,
        /// What will come.
        transfer: u64,
        /// The connection to the server.
        connection: u32,
        /// It was opened for it.
        is_new: bool,
        /// How.
        question: Question,
    },
    /// The world: the response head of a transfer is at the proxy.
    Head {
        /// Of what.
        transfer: u64,
        /// What it says.
        status: u16,
    },
    /// The world: content that the proxy has taken.
    Content {
        /// Of what.
        transfer: u64,
        /// All of it so far, bytes.
        bytes: u64,
        /// How many clients read the response.
        readers: usize,
    },
    /// The world: the server breaks off.
    Broken {
        /// What.
        transfer: u64,
    },
    /// A client was given content.
    Given {
        /// Which.
        row: u64,
        /// All of it so far, bytes.
        bytes: u64,
    },
    /// The decision whether a transfer without readers continues.
    Judged {
        /// Which.
        transfer: u64,
        /// The decision, in the policy's word.
        word: &'static str,
    },
    /// The rest of a transfer is not needed.
    Ended {
        /// Which.
        transfer: u64,
        /// Its connection can be used again.
        is_reusable: bool,
    },
    /// The world: a client has disconnected.
    Left {
        /// Which.
        row: u64,
        /// Before its whole span was sent to it.
        is_early: bool,
        /// Its response had been cut.
        is_cut: bool,
    },
    /// A request is over.
    Done {
        /// Which.
        row: u64,
        /// What was decided.
        verdict: Verdict,
        /// Content that was sent to its client, bytes.
        bytes: u64,
        /// Its client's connection can be used again.
        is_reusable: bool,
    },
}

/// The form in which it is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// As the client sent it.
    AsSent,
    /// Whether what is stored is still right (RFC 9111 §4.3.1).
    Validation,
    /// The same, though no client waits for it (RFC 5861 §3).
    Refresh,
    /// For bytes that are missing of what is here (RFC 9110 §13.1.5); open where the end is not
    /// known.
    Part(ByteSpan),
}
