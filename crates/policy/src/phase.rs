//! The phases of a request, in order, once.
//!
//! A hook, a counter, a log field and a trace column attach to a phase and to nothing else.

/// A named phase of a request's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// A client's connection was accepted.
    Accept,
    /// The request head is read and parsed.
    RequestHead,
    /// Client, method, target and destination are judged.
    Authorise,
    /// A stored response is looked for and judged: hit, forward or follow.
    Choose,
    /// The request content goes to the next hop.
    RequestBody,
    /// The response head comes from the next hop.
    ResponseHead,
    /// It is decided whether the response is stored.
    Store,
    /// The response content goes to the client (and to the store).
    ResponseBody,
    /// Log, count, record.
    Done,
}

impl Phase {
    /// All phases in the order in which a request meets them.
    pub const ALL: [Self; 9] = [
        Self::Accept,
        Self::RequestHead,
        Self::Authorise,
        Self::Choose,
        Self::RequestBody,
        Self::ResponseHead,
        Self::Store,
        Self::ResponseBody,
        Self::Done,
    ];

    /// The phase as a word, for logs and columns.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::RequestHead => "request-head",
            Self::Authorise => "authorise",
            Self::Choose => "choose",
            Self::RequestBody => "request-body",
            Self::ResponseHead => "response-head",
            Self::Store => "store",
            Self::ResponseBody => "response-body",
            Self::Done => "done",
        }
    }
}
