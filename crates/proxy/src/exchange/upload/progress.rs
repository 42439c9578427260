//! How far the content of a request is on its way to the next hop, and how sending it ended.

use weir_wire::BodyError;

/// How sending content ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UploadEnd {
    /// All of it was sent.
    Whole,
    /// It was not complete when the response was.
    #[default]
    Unfinished,
    /// The client disconnected or was silent for too long before its end.
    Client,
    /// The client's content is not framed correctly.
    Invalid(BodyError),
    /// A module failed to change it, or answers by itself.
    Module,
    /// The next hop takes no more; its response may still be received.
    NextHop,
    /// The link to the next hop has spent its quota.
    LinkSpent,
}

/// How far the content of a request is on its way, for the task that receives the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// Nothing was sent: the response is not due yet.
    NotBegun,
    /// Nothing was sent, as the client waits for 100 (RFC 9110 §10.1.1): that or the response is
    /// due.
    Expected,
    /// Some was sent: the response is not due yet.
    UnderWay,
    /// It stopped before its end: the response is due.
    Stopped,
    /// It stopped before its end, as the link has spent its quota: no head of a response comes.
    LinkSpent,
    /// The client broke it off, or sent invalid content: no response is due to this request.
    ClientStopped,
    /// A module ended it before its end: what the next hop answers is not for the client.
    ModuleStopped,
    /// All of it was, or there is none.
    Done,
}

impl Sending {
    /// Whether no response is due to the request, as that will never be whole.
    pub(crate) const fn is_given_up(self) -> bool {
        matches!(self, Self::ClientStopped | Self::ModuleStopped)
    }

    /// Whether content may still be sent: no response, and no more of one, is due meanwhile.
    pub(crate) const fn is_under_way(self) -> bool {
        matches!(self, Self::NotBegun | Self::UnderWay)
    }
}
