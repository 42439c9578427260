//! What the worker's side of an exchange and its thread tell each other.

use tokio::sync::{mpsc, oneshot};
use weir_extend::{
    Answer, Call, Codings, Fields, Hook, LocalResponse, RequestHead, ResponseHead, Transform,
};
use weir_policy::extension::ModuleFailure;

/// Messages to one exchange, or to one transform, that wait: a call, and the end.
pub(super) const MESSAGES_MAX: usize = 2;

/// A message to an exchange.
pub(super) enum Message {
    /// It is called at a hook.
    Call(Hook, SentHead, Call, oneshot::Sender<Reply>),
    /// It is called at [`Hook::Done`].
    Done(Call),
}

/// What came of a call.
pub(super) struct Reply {
    /// How often the module was called again, as it had deferred.
    pub(super) calls: u64,
    pub(super) answer: Result<Answer, ModuleFailure>,
    /// The head as the module left it.
    pub(super) head: SentHead,
    /// The tag that it has set.
    pub(super) variant: Option<String>,
    /// What the content is to pass, and where its pieces go.
    pub(super) transform: Option<(TransformKind, mpsc::Sender<SentPiece>)>,
}

/// What a transform that a module has set does with content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransformKind {
    /// It inspects it.
    Inspect,
    /// It changes it.
    Change,
    /// The same, and codings are undone before that.
    ChangePlain,
}

/// A head on its way between two threads.
pub(super) enum SentHead {
    Request {
        method: String,
        authority: String,
        path_and_query: String,
        target_is_changed: bool,
        keeps_content: bool,
        has_content: bool,
        fields: Fields,
    },
    Response {
        status: u16,
        status_is_changed: bool,
        keeps_content: bool,
        fields: Fields,
    },
}

impl SentHead {
    pub(super) fn of_request(head: &RequestHead<'_>) -> Self {
        Self::Request {
            method: head.method().to_owned(),
            authority: head.authority().to_owned(),
            path_and_query: head.path_and_query().to_owned(),
            target_is_changed: head.target_is_changed(),
            keeps_content: head.keeps_content(),
            has_content: head.has_content(),
            fields: Fields::clone(&head.fields),
        }
    }

    pub(super) fn of_response(head: &ResponseHead<'_>) -> Self {
        Self::Response {
            status: head.status(),
            status_is_changed: head.status_is_changed(),
            keeps_content: head.keeps_content(),
            fields: Fields::clone(&head.fields),
        }
    }
}

/// A piece on its way to a transform.
pub(super) struct SentPiece {
    pub(super) input: Vec<u8>,
    pub(super) is_last: bool,
    /// Bytes that may be put out.
    pub(super) room: usize,
    pub(super) reply: oneshot::Sender<PieceReply>,
}

/// What came of a piece.
pub(super) struct PieceReply {
    /// Bytes of the input that were taken.
    pub(super) taken: usize,
    pub(super) output: Vec<u8>,
    pub(super) progress: PieceProgress,
}

impl PieceReply {
    /// Whether nothing was taken or put out, for want of more.
    pub(super) fn is_idle(&self) -> bool {
        let is_open = matches!(self.progress, PieceProgress::Continue);
        is_open && self.taken == 0 && self.output.is_empty()
    }
}

/// How a call of a transform ended.
#[derive(Debug)]
pub(super) enum PieceProgress {
    Continue,
    Done,
    Fail,
    Unavailable,
    Respond(Box<LocalResponse>),
    /// It panicked, or its deferral had no end.
    Crashed,
}

/// A transform that a module has set, and the codings that are to be undone before it.
pub(super) type SetTransform = (Codings, Box<dyn Transform>);
