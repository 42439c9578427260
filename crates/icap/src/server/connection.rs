//! The requests of one connection, one after the other.
//!
//! The next request is read when the answer to the one before is written: pipelined requests wait
//! in the driver's buffer. The one place where the bytes do not say what they are is after a
//! preview: content if the server continues, otherwise the next request. Bytes that arrive there
//! before the server has decided are refused.

use alloc::boxed::Box;
use alloc::vec::Vec;

use weir_semantics::FieldLine;
use weir_wire::write;

use crate::limits::{Limits, PIECE_BYTES_MAX};
use crate::message::chunks::{Chunks, ChunksEvent};
use crate::message::encapsulated::{Encapsulated, ListKind};
use crate::message::encapsulated_head::{EncapsulatedHeads, LengthField};
use crate::message::error::MessageError;
use crate::message::istag::IsTag;
use crate::message::method::Method;
use crate::message::section::Section;
use crate::message::start_line::write_status_line;
use crate::server::answer::{Adapted, AdaptedContent, AnswerStart, OptionsAnswer};
use crate::server::error::{AnswerError, ServerError};
use crate::server::refusal::RefusalStatus;
use crate::server::request::RequestHead;

/// The server's side of one connection.
///
/// The driver hands what arrives to [`receive`](Self::receive) and appends answers to a buffer of
/// its own by the `write` methods. An answer may begin as soon as the heads are reported, and end
/// before the request does; the rest of the request is then still read.
///
/// The driver calls `receive` with the bytes that are left until the event is
/// [`NeedMore`](ServerEvent::NeedMore), [`AnswerDue`](ServerEvent::AnswerDue) (it reads no more
/// until it has answered) or [`Closing`](ServerEvent::Closing), and closes the connection when
/// [`is_closing`](Self::is_closing) and its buffer is sent. Deadlines are the driver's:
/// [`is_idle`](Self::is_idle) tells a connection between requests from one within a request.
#[derive(Clone, Debug)]
pub struct Server {
    istag: IsTag,
    limits: Limits,
    reading: Reading,
    answering: Answering,
    /// The trailer fields of the request.
    trailers: Vec<u8>,
    /// No request is read after this one.
    is_closing: bool,
}

#[derive(Clone, Debug)]
enum Reading {
    Head(Section),
    Heads(Box<PendingRequest>),
    Content(Chunks),
    /// The preview is over and the content is not.
    Decision,
    /// The end is to be reported.
    Ending,
    Ended,
    Failed(ServerError),
}

/// A request whose HTTP heads are not whole.
#[derive(Clone, Debug)]
struct PendingRequest {
    head: RequestHead,
    bytes: Section,
    total: usize,
}

/// How far the answer is, and what it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answering {
    /// There is no request.
    None,
    /// The answer is due.
    Due {
        method: Method,
        may_be_204: May204,
    },
    /// Its content is being written.
    Content,
    Done,
}

/// Whether 204 may be the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum May204 {
    Always,
    /// Until the server continues.
    InPreview,
    Never,
}

/// What a call of [`Server::receive`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStep<'b> {
    /// How many bytes of the input were consumed.
    pub consumed: usize,
    /// What was found.
    pub event: ServerEvent<'b>,
}

/// What a call of [`Server::receive`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent<'b> {
    /// All input is consumed and the request is not over.
    NeedMore,
    /// An OPTIONS request; [`End`](Self::End) follows.
    Options(RequestHead),
    /// A REQMOD or RESPMOD request. Content follows, if there is any, and [`End`](Self::End).
    Adapt {
        /// The ICAP head.
        head: RequestHead,
        /// The HTTP heads: of the request for REQMOD; for RESPMOD those that the client sent.
        heads: EncapsulatedHeads,
    },
    /// Content, 1 to [`PIECE_BYTES_MAX`] bytes.
    Content(&'b [u8]),
    /// The preview is over.
    PreviewEnd {
        /// Whether it is the whole content; [`End`](Self::End) follows. Otherwise the server
        /// continues or answers, and if it answers, or has begun to, the request is over.
        is_whole: bool,
    },
    /// The request is over and its content is whole. Not reported after a preview that the server
    /// answers without continuing.
    End,
    /// The request is over, or its preview is, and the server is to answer, or to end its answer,
    /// before more is read.
    AnswerDue,
    /// The connection is to be closed; nothing more is read.
    Closing,
}

impl Server {
    /// A connection without a request yet, to a server in this state.
    #[must_use]
    pub fn new(istag: IsTag, limits: Limits) -> Self {
        Self {
            istag,
            limits,
            reading: Reading::Head(Section::default()),
            answering: Answering::None,
            trailers: Vec::new(),
            is_closing: false,
        }
    }

    /// Answers that begin from now on have this tag: the state of the service changed, or the
    /// request is for another service of this server.
    pub fn set_istag(&mut self, istag: IsTag) {
        self.istag = istag;
    }

    /// Whether the connection is idle: no byte of a request was read that is not answered.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        match &self.reading {
            Reading::Head(section) => section.is_empty(),
            Reading::Ended => self.answering == Answering::Done,
            _ => false,
        }
    }

    /// Whether the connection is to be closed once what was written is sent.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        let is_answered = self.answering == Answering::Done;
        match self.reading {
            Reading::Failed(_) => true,
            Reading::Ended => self.is_closing && is_answered,
            _ => false,
        }
    }

    /// The trailer fields after the content of the request, each line with its end; those that must
    /// not be passed on are dropped (RFC 9110 §6.5.1). Empty before the end.
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    /// Reads on, up to the next event or the end of `input`. The driver drops what was consumed.
    ///
    /// # Errors
    ///
    /// The request is refused. If no answer was begun, [`write_refusal`](Self::write_refusal) with
    /// [`ServerError::status`] answers it; then the connection must be closed. Further calls fail
    /// with the same error.
    pub fn receive<'b>(&mut self, input: &'b [u8]) -> Result<ServerStep<'b>, ServerError> {
        let result = self.advance(input);
        if let Err(error) = result {
            self.reading = Reading::Failed(error);
        }
        result
    }

    fn advance<'b>(&mut self, input: &'b [u8]) -> Result<ServerStep<'b>, ServerError> {
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            let (count, event) = match &mut self.reading {
                Reading::Head(section) => {
                    let (count, whole) = section.push_head(rest, &self.limits.icap_head)?;
                    let head = whole.then(|| section.take());
                    let event = head.map(|head| self.read_head(&head)).transpose()?;
                    (count, event.flatten())
                }
                Reading::Heads(pending) => {
                    let (count, whole) = pending.bytes.push_exact(rest, pending.total);
                    (count, whole.then(|| self.read_heads()).transpose()?)
                }
                Reading::Content(chunks) => {
                    let (count, event) = chunks.step(rest)?;
                    let is_followed = count < rest.len();
                    (count, self.content_event(event, is_followed))
                }
                Reading::Decision if !rest.is_empty() => {
                    return Err(ServerError::BytesBeforeContinue);
                }
                Reading::Decision => (0, Some(ServerEvent::AnswerDue)),
                Reading::Ending => {
                    self.reading = Reading::Ended;
                    (0, Some(ServerEvent::End))
                }
                Reading::Ended if self.answering != Answering::Done => {
                    (0, Some(ServerEvent::AnswerDue))
                }
                Reading::Ended if self.is_closing => (0, Some(ServerEvent::Closing)),
                Reading::Ended => {
                    self.begin_next();
                    (0, None)
                }
                Reading::Failed(error) => return Err(*error),
            };
            consumed += count;
            if let Some(event) = event {
                return Ok(ServerStep { consumed, event });
            }
            if rest.is_empty() {
                let event = ServerEvent::NeedMore;
                return Ok(ServerStep { consumed, event });
            }
        }
    }

    fn begin_next(&mut self) {
        self.reading = Reading::Head(Section::default());
        self.answering = Answering::None;
        self.trailers.clear();
    }

    /// Reads a whole ICAP head.
    fn read_head(&mut self, head: &[u8]) -> Result<Option<ServerEvent<'static>>, ServerError> {
        let head = RequestHead::parse(head, &self.limits)?;
        self.is_closing = head.fields().has_close();
        if head.method() == Method::Options {
            self.begin_answer(&head);
            self.reading = Reading::Ending;
            return Ok(Some(ServerEvent::Options(head)));
        }
        let list = head.list();
        let limit = self.limits.http_head.bytes_max;
        let heads = [list.request_head_bytes, list.response_head_bytes];
        let lengths = heads.into_iter().flatten().map(|bytes| bytes as usize);
        if lengths.clone().any(|bytes| bytes > limit) {
            return Err(MessageError::EncapsulatedHeadTooLarge.into());
        }
        let total = lengths.sum();
        self.reading = Reading::Heads(Box::new(PendingRequest {
            head,
            bytes: Section::default(),
            total,
        }));
        Ok(None)
    }

    /// The HTTP heads are whole.
    fn read_heads(&mut self) -> Result<ServerEvent<'static>, ServerError> {
        let reading = core::mem::replace(&mut self.reading, Reading::Ending);
        let Reading::Heads(pending) = reading else {
            unreachable!("called while heads are read");
        };
        let PendingRequest {
            head, mut bytes, ..
        } = *pending;
        let limits = self.limits.http_head;
        let bytes = bytes.take();
        let heads = EncapsulatedHeads::parse(&bytes, head.list(), LengthField::Kept, &limits)?;
        if head.has_content() {
            self.reading = Reading::Content(match head.preview() {
                Some(bytes) => Chunks::preview(u64::from(bytes), limits),
                None => Chunks::content(limits),
            });
        }
        self.begin_answer(&head);
        Ok(ServerEvent::Adapt { head, heads })
    }

    fn begin_answer(&mut self, head: &RequestHead) {
        self.answering = Answering::Due {
            method: head.method(),
            may_be_204: match (head.allows_204(), head.preview()) {
                (true, _) => May204::Always,
                (false, Some(_)) => May204::InPreview,
                (false, None) => May204::Never,
            },
        };
    }

    /// `is_followed`: more bytes arrived after those of the event.
    fn content_event<'b>(
        &mut self,
        event: ChunksEvent<'b>,
        is_followed: bool,
    ) -> Option<ServerEvent<'b>> {
        match event {
            ChunksEvent::NeedMore => None,
            ChunksEvent::Data(data) => Some(ServerEvent::Content(data)),
            ChunksEvent::End => {
                let Reading::Content(chunks) = &self.reading else {
                    unreachable!("called while content is read");
                };
                self.trailers = chunks.trailers().to_vec();
                let (is_preview, is_whole) = (chunks.is_preview(), chunks.is_whole());
                self.reading = match self.answering {
                    // an answer now would make the next request of them
                    Answering::Due { .. } if !is_whole && is_followed => {
                        self.is_closing = true;
                        Reading::Failed(ServerError::BytesBeforeContinue)
                    }
                    Answering::Due { .. } if !is_whole => Reading::Decision,
                    // the answer was begun, so the server cannot continue: an end would make whole
                    // content of the preview
                    _ if !is_whole => Reading::Ended,
                    _ => Reading::Ending,
                };
                is_preview.then_some(ServerEvent::PreviewEnd { is_whole })
            }
        }
    }

    /// The client closed the connection.
    ///
    /// # Errors
    ///
    /// [`ServerError::Incomplete`] if a request is not over, or the error that ended it.
    pub fn at_eof(&mut self) -> Result<(), ServerError> {
        self.is_closing = true;
        match &self.reading {
            Reading::Head(section) if section.is_empty() => {}
            Reading::Ending | Reading::Ended => {}
            Reading::Failed(error) => return Err(*error),
            _ => {
                self.reading = Reading::Failed(ServerError::Incomplete);
                return Err(ServerError::Incomplete);
            }
        }
        Ok(())
    }

    /// Appends `100 Continue`: the rest of the content after a preview may come.
    ///
    /// # Errors
    ///
    /// [`AnswerError::ContinueNotAwaited`].
    pub fn write_continue(&mut self, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let (Reading::Decision, Answering::Due { may_be_204, .. }) =
            (&self.reading, &mut self.answering)
        else {
            return Err(AnswerError::ContinueNotAwaited);
        };
        if *may_be_204 == May204::InPreview {
            *may_be_204 = May204::Never;
        }
        write_status_line(out, 100, "Continue");
        write::end_of_head(out);
        self.reading = Reading::Content(Chunks::content(self.limits.http_head));
        Ok(())
    }

    /// Appends `204`: the client uses the message as it was sent.
    ///
    /// # Errors
    ///
    /// [`AnswerError::UnmodifiedNotAllowed`], if the client does not allow it and the server
    /// continued after a preview or there was none; or another reason.
    pub fn write_unmodified(
        &mut self,
        fields: &[FieldLine<'_>],
        out: &mut Vec<u8>,
    ) -> Result<(), AnswerError> {
        let Answering::Due { method, may_be_204 } = self.answering else {
            return Err(AnswerError::Order);
        };
        if method == Method::Options {
            return Err(AnswerError::Method);
        }
        if may_be_204 == May204::Never {
            return Err(AnswerError::UnmodifiedNotAllowed);
        }
        let start = self.start(204, "No modifications needed", fields, Encapsulated::BARE);
        start.write(out)?;
        write::end_of_head(out);
        self.end_answer();
        Ok(())
    }

    /// Appends the beginning of a `200` with an adapted head. If there is content,
    /// [`write_content`](Self::write_content) and [`write_end`](Self::write_end) follow.
    ///
    /// # Errors
    ///
    /// The head or a field is refused, or no such answer is due.
    pub fn write_adapted(
        &mut self,
        fields: &[FieldLine<'_>],
        adapted: &Adapted<'_>,
        content: AdaptedContent,
        out: &mut Vec<u8>,
    ) -> Result<(), AnswerError> {
        let Answering::Due { method, .. } = self.answering else {
            return Err(AnswerError::Order);
        };
        let kind = match method {
            Method::Options => return Err(AnswerError::Method),
            Method::Reqmod => ListKind::ReqmodAnswer,
            Method::Respmod => ListKind::RespmodAnswer,
        };
        let mut head = Vec::new();
        let list = adapted.write(content, &self.limits, &mut head)?;
        list.check(kind)?;
        self.start(200, "OK", fields, list).write(out)?;
        write::end_of_head(out);
        out.extend_from_slice(&head);
        self.end_answer();
        if content != AdaptedContent::None {
            self.answering = Answering::Content;
        }
        Ok(())
    }

    /// Appends a piece of content, 1 to [`PIECE_BYTES_MAX`] bytes.
    ///
    /// # Errors
    ///
    /// The piece is empty or too large, no content was announced, or the request failed.
    pub fn write_content(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), AnswerError> {
        self.check_content()?;
        if piece.is_empty() || piece.len() > PIECE_BYTES_MAX {
            return Err(AnswerError::Piece);
        }
        write::chunk_header(out, piece.len());
        out.extend_from_slice(piece);
        write::chunk_end(out);
        Ok(())
    }

    /// Appends the end of the content.
    ///
    /// # Errors
    ///
    /// No content was announced, it is over, or the request failed: then the answer must stay
    /// without an end, so that the client notices.
    pub fn write_end(&mut self, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        self.check_content()?;
        write::last_chunk(out, b"");
        self.answering = Answering::Done;
        Ok(())
    }

    /// Appends an error. The connection is closed after it, unless the request is over and well
    /// formed.
    ///
    /// Before a request it can be written too, such as 408 or 503.
    ///
    /// # Errors
    ///
    /// Another answer was begun.
    pub fn write_refusal(
        &mut self,
        status: RefusalStatus,
        out: &mut Vec<u8>,
    ) -> Result<(), AnswerError> {
        if !matches!(self.answering, Answering::None | Answering::Due { .. }) {
            return Err(AnswerError::Order);
        }
        // a preview of which nothing follows is a whole request too
        let is_whole = matches!(
            self.reading,
            Reading::Decision | Reading::Ending | Reading::Ended
        );
        self.is_closing |= !is_whole;
        self.start(status.code(), status.as_str(), &[], Encapsulated::BARE)
            .write(out)?;
        write::end_of_head(out);
        self.end_answer();
        if !is_whole && !matches!(self.reading, Reading::Failed(_)) {
            self.reading = Reading::Ended;
        }
        Ok(())
    }

    /// Appends the answer to OPTIONS.
    ///
    /// # Errors
    ///
    /// A field is refused, or no such answer is due.
    pub fn write_options(
        &mut self,
        options: &OptionsAnswer<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), AnswerError> {
        match self.answering {
            Answering::Due {
                method: Method::Options,
                ..
            } => {}
            Answering::Due { .. } => return Err(AnswerError::Method),
            _ => return Err(AnswerError::Order),
        }
        let mut fields = Vec::new();
        options.write(&self.limits, &mut fields)?;
        self.start(200, "OK", options.fields, Encapsulated::BARE)
            .write(out)?;
        out.extend_from_slice(&fields);
        write::end_of_head(out);
        self.end_answer();
        Ok(())
    }

    /// Whether content may be written.
    fn check_content(&self) -> Result<(), AnswerError> {
        let has_failed = matches!(self.reading, Reading::Failed(_));
        if self.answering != Answering::Content || has_failed {
            return Err(AnswerError::Order);
        }
        Ok(())
    }

    fn start<'a>(
        &'a self,
        status: u16,
        reason: &'a str,
        fields: &'a [FieldLine<'a>],
        list: Encapsulated,
    ) -> AnswerStart<'a> {
        AnswerStart {
            status,
            reason,
            istag: &self.istag,
            fields,
            list,
            is_closing: self.is_closing,
        }
    }

    /// The answer is written, or its head is.
    fn end_answer(&mut self) {
        self.answering = Answering::Done;
        if matches!(self.reading, Reading::Decision) {
            self.reading = Reading::Ended;
        }
    }
}
