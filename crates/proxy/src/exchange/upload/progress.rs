//! How far the content of a request is on its way to the next hop, and how sending it ended.

use weir_wire::BodyError;

/// How sending content ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UploadEnd {
    /// All of it is with the next hop.
    Whole,
    /// It was still going on when the answer was complete.
    #[default]
    Unfinished,
    /// The client stopped in the middle.
    Client,
    /// The client sent something that is no content.
    Invalid(BodyError),
    /// The next hop takes no more; its answer may still come.
    NextHop,
}

/// How far the content of a request is on its way, for the task that receives the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// Nothing was sent.
    NotBegun,
    /// Something was: the answer is not due yet.
    UnderWay,
    /// It stopped before its end: the answer is due.
    Stopped,
    /// The client broke it off, or sent invalid content: no response is due to this request.
    ClientStopped,
    /// All of it was, or there is none.
    Done,
}
