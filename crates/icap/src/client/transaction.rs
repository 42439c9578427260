//! One request and its answer (RFC 3507 §4.5 to §4.10).
//!
//! The server may answer while content is still sent, and some do so for each piece. So sending
//! and receiving are independent: content can be offered until the answer has ended. If it ends
//! first, the rest need not be sent, and the connection cannot be used again.

use alloc::boxed::Box;
use alloc::vec::Vec;

use weir_semantics::FieldLine;

use crate::client::answer::AnswerHead;
use crate::client::error::ClientError;
use crate::client::request::{self, AdaptRequest, RequestError};
use crate::client::sending::Sending;
use crate::limits::Limits;
use crate::message::chunks::{Chunks, ChunksEvent};
use crate::message::encapsulated::{Encapsulated, ListKind};
use crate::message::encapsulated_head::{EncapsulatedHeads, LengthField};
use crate::message::error::MessageError;
use crate::message::method::Method;
use crate::message::section::Section;
use crate::message::service_uri::ServiceUri;

/// One OPTIONS, REQMOD or RESPMOD request on a connection, and its answer.
///
/// The driver sends [`unsent`](Self::unsent) and reports it with [`sent`](Self::sent), offers
/// content while [`takes_content`](Self::takes_content), ends it with
/// [`finish_content`](Self::finish_content), and hands what arrives to
/// [`receive`](Self::receive). It must do both at the same time: the server may send more than the
/// sockets hold before it reads on.
#[derive(Clone, Debug)]
pub struct Transaction {
    method: Method,
    limits: Limits,
    sending: Sending,
    /// How many bytes the request has before its content.
    head_bytes: usize,
    /// 204 may come at any time.
    allow_204: bool,
    /// 204 may come, because nothing but a preview was sent.
    is_in_preview: bool,
    receiving: Receiving,
    /// The trailer fields of the answer.
    trailers: Vec<u8>,
    /// The server closes the connection, or sent what cannot be read.
    is_closing: bool,
}

#[derive(Clone, Debug)]
enum Receiving {
    Head(Section),
    Heads(Box<PendingHeads>),
    Content(Chunks),
    /// The end is to be reported.
    Ending,
    Ended,
    Failed(ClientError),
}

/// An answer whose HTTP head is not whole.
#[derive(Clone, Debug)]
struct PendingHeads {
    answer: AnswerHead,
    list: Encapsulated,
    bytes: Section,
    total: usize,
}

/// What a call of [`Transaction::receive`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientStep<'b> {
    /// How many bytes of the input were consumed.
    pub consumed: usize,
    /// What was found.
    pub event: ClientEvent<'b>,
}

/// What a call of [`Transaction::receive`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent<'b> {
    /// All input is consumed and the answer is not over.
    NeedMore,
    /// The server continues after the preview: content is to be offered again, the part after the
    /// preview.
    Continue,
    /// The message is to be used as it was sent; [`End`](Self::End) follows.
    Unmodified(AnswerHead),
    /// The message is replaced by one with this head. The answer to REQMOD may be a response. The
    /// content follows, if there is any.
    Modified {
        /// The ICAP head.
        answer: AnswerHead,
        /// One head.
        heads: EncapsulatedHeads,
        /// Whether the new message has content; it may be empty.
        has_content: bool,
    },
    /// The answer to OPTIONS, for [`ServiceOptions`](crate::ServiceOptions).
    Options(AnswerHead),
    /// The server fails: a status of 4xx or 5xx.
    Refused(AnswerHead),
    /// Content, 1 to [`PIECE_BYTES_MAX`](crate::PIECE_BYTES_MAX) bytes.
    Content(&'b [u8]),
    /// The answer is over. Further calls consume nothing and report it again.
    End,
}

impl Transaction {
    /// An OPTIONS request.
    ///
    /// # Errors
    ///
    /// A field is refused, or the head is too large.
    pub fn options(
        service: &ServiceUri,
        fields: &[FieldLine<'_>],
        limits: Limits,
    ) -> Result<Self, RequestError> {
        let mut out = Vec::new();
        request::write_options(&mut out, service, fields, &limits)?;
        let sending = Sending::new(out, false, None);
        Ok(Self::of(Method::Options, sending, limits))
    }

    /// A REQMOD or RESPMOD request.
    ///
    /// # Errors
    ///
    /// A field or a head is refused, or something is too large.
    pub fn adapt(request: &AdaptRequest<'_>, limits: Limits) -> Result<Self, RequestError> {
        let mut out = Vec::new();
        request::write_adapt(&mut out, request, &limits)?;
        let sending = Sending::new(out, request.has_content, request.preview);
        Ok(Self {
            allow_204: request.allow_204,
            is_in_preview: request.preview.is_some(),
            ..Self::of(request.subject.method(), sending, limits)
        })
    }

    fn of(method: Method, sending: Sending, limits: Limits) -> Self {
        Self {
            method,
            limits,
            head_bytes: sending.unsent().len(),
            sending,
            allow_204: false,
            is_in_preview: false,
            receiving: Receiving::Head(Section::default()),
            trailers: Vec::new(),
            is_closing: false,
        }
    }

    /// The bytes to send now, at most the heads or
    /// [`PIECE_BYTES_MAX`](crate::PIECE_BYTES_MAX) and their framing.
    #[must_use]
    pub fn unsent(&self) -> &[u8] {
        self.sending.unsent()
    }

    /// So many bytes of [`unsent`](Self::unsent) were sent.
    ///
    /// # Panics
    ///
    /// If there were fewer.
    pub fn sent(&mut self, count: usize) {
        self.sending.advance(count);
    }

    /// Whether [`offer`](Self::offer) or [`finish_content`](Self::finish_content) leads on now. It
    /// changes after [`sent`](Self::sent), after [`ClientEvent::Continue`], and at the end of the
    /// answer.
    ///
    /// True for a full preview, although there is no [`room`](Self::room): whether content follows
    /// decides how it ends.
    #[must_use]
    pub fn takes_content(&self) -> bool {
        self.is_receiving() && self.sending.takes_content()
    }

    /// How many bytes of content the next [`offer`](Self::offer) takes.
    #[must_use]
    pub fn room(&self) -> usize {
        if self.is_receiving() {
            self.sending.room()
        } else {
            0
        }
    }

    /// Offers the next content. Returns how many bytes were taken. Bytes that a full preview does
    /// not take show that content follows, and end it.
    pub fn offer(&mut self, piece: &[u8]) -> usize {
        if self.is_receiving() {
            self.sending.offer(piece)
        } else {
            0
        }
    }

    /// It is known that content follows: a full preview, such as one of 0 bytes, ends now.
    pub fn content_follows(&mut self) {
        if self.is_receiving() {
            self.sending.content_follows();
        }
    }

    /// The content is over and whole. If its source fails, the driver closes the connection
    /// instead.
    pub fn finish_content(&mut self) {
        if self.is_receiving() {
            self.sending.finish();
        }
    }

    /// Whether [`ClientEvent::Unmodified`] may still be reported. The driver must hold all content
    /// that it offered until this is false: after 100 if 204 was not allowed, after any other
    /// status, or after an error.
    #[must_use]
    pub fn may_be_unmodified(&self) -> bool {
        matches!(self.receiving, Receiving::Head(_)) && (self.allow_204 || self.is_in_preview)
    }

    /// Whether the answer is not over.
    fn is_receiving(&self) -> bool {
        matches!(
            self.receiving,
            Receiving::Head(_) | Receiving::Heads(_) | Receiving::Content(_)
        )
    }

    /// Reads on, up to the next event or the end of `input`. The driver drops what was consumed.
    ///
    /// # Errors
    ///
    /// The answer is refused. Content reported before must not pass for whole. Further calls fail
    /// with the same error.
    pub fn receive<'b>(&mut self, input: &'b [u8]) -> Result<ClientStep<'b>, ClientError> {
        let result = self.advance(input);
        if let Err(error) = result {
            self.receiving = Receiving::Failed(error);
        }
        result
    }

    fn advance<'b>(&mut self, input: &'b [u8]) -> Result<ClientStep<'b>, ClientError> {
        if self.sending.total_sent() == 0 && !input.is_empty() {
            return Err(ClientError::AnswerBeforeRequest);
        }
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            let (count, event) = match &mut self.receiving {
                Receiving::Head(section) => {
                    let (count, whole) = section.push_head(rest, &self.limits.icap_head)?;
                    let head = whole.then(|| section.take());
                    let event = head.map(|head| self.read_head(&head)).transpose()?;
                    (count, event.flatten())
                }
                Receiving::Heads(pending) => {
                    let (count, whole) = pending.bytes.push_exact(rest, pending.total);
                    (count, whole.then(|| self.read_heads()).transpose()?)
                }
                Receiving::Content(chunks) => {
                    let (count, event) = chunks.step(rest)?;
                    (count, self.content_event(event))
                }
                Receiving::Ending | Receiving::Ended => {
                    self.receiving = Receiving::Ended;
                    // bytes after the end belong to no request
                    self.is_closing |= !rest.is_empty();
                    (0, Some(ClientEvent::End))
                }
                Receiving::Failed(error) => return Err(*error),
            };
            consumed += count;
            if let Some(event) = event {
                return Ok(ClientStep { consumed, event });
            }
            if rest.is_empty() {
                let event = ClientEvent::NeedMore;
                return Ok(ClientStep { consumed, event });
            }
        }
    }

    /// Reads a whole ICAP head.
    fn read_head(&mut self, head: &[u8]) -> Result<Option<ClientEvent<'static>>, ClientError> {
        let answer = AnswerHead::parse(head, &self.limits)?;
        self.is_closing |= answer.fields().has_close();
        let status = answer.status();
        if status < 400 && self.sending.total_sent() < self.head_bytes {
            return Err(ClientError::AnswerBeforeRequest);
        }
        match (status, self.method) {
            (100, Method::Reqmod | Method::Respmod) => {
                if !self.sending.awaits_continue() {
                    return Err(ClientError::UnexpectedContinue);
                }
                check_bare(&answer)?;
                self.sending.continue_content();
                self.is_in_preview = false;
                self.receiving = Receiving::Head(Section::default());
                Ok(Some(ClientEvent::Continue))
            }
            (204, Method::Reqmod | Method::Respmod) => {
                if !self.allow_204 && !self.is_in_preview {
                    return Err(ClientError::UnmodifiedNotAllowed);
                }
                check_bare(&answer)?;
                self.receiving = Receiving::Ending;
                Ok(Some(ClientEvent::Unmodified(answer)))
            }
            (200, Method::Options) => self.begin_options(answer).map(Some),
            (200, Method::Reqmod) => self.begin_heads(answer, ListKind::ReqmodAnswer),
            (200, Method::Respmod) => self.begin_heads(answer, ListKind::RespmodAnswer),
            (400.., _) => {
                // what follows an error with content is not read
                self.is_closing |= check_bare(&answer).is_err();
                self.receiving = Receiving::Ending;
                Ok(Some(ClientEvent::Refused(answer)))
            }
            _ => Err(ClientError::UnexpectedStatus(status)),
        }
    }

    fn begin_options(&mut self, answer: AnswerHead) -> Result<ClientEvent<'static>, ClientError> {
        let list = answer
            .fields()
            .encapsulated()?
            .unwrap_or(Encapsulated::BARE);
        list.check(ListKind::OptionsAnswer)
            .map_err(MessageError::Encapsulated)?;
        answer.fields().check_framing(list.has_content())?;
        self.receiving = self.after_heads(list.has_content());
        Ok(ClientEvent::Options(answer))
    }

    fn begin_heads(
        &mut self,
        answer: AnswerHead,
        kind: ListKind,
    ) -> Result<Option<ClientEvent<'static>>, ClientError> {
        let list = answer.fields().required_encapsulated()?;
        list.check(kind).map_err(MessageError::Encapsulated)?;
        answer.fields().check_framing(true)?;
        let heads = [list.request_head_bytes, list.response_head_bytes];
        let total = heads
            .into_iter()
            .flatten()
            .map(|bytes| bytes as usize)
            .sum();
        if total > self.limits.http_head.bytes_max {
            return Err(MessageError::EncapsulatedHeadTooLarge.into());
        }
        self.receiving = Receiving::Heads(Box::new(PendingHeads {
            answer,
            list,
            bytes: Section::default(),
            total,
        }));
        Ok(None)
    }

    /// The HTTP head is whole.
    fn read_heads(&mut self) -> Result<ClientEvent<'static>, ClientError> {
        let receiving = core::mem::replace(&mut self.receiving, Receiving::Ending);
        let Receiving::Heads(pending) = receiving else {
            unreachable!("called while heads are read");
        };
        let PendingHeads {
            answer,
            list,
            mut bytes,
            ..
        } = *pending;
        let (length_field, limits) = (LengthField::Dropped, &self.limits.http_head);
        let heads = EncapsulatedHeads::parse(&bytes.take(), &list, length_field, limits)?;
        let has_content = list.has_content();
        self.receiving = self.after_heads(has_content);
        Ok(ClientEvent::Modified {
            answer,
            heads,
            has_content,
        })
    }

    fn after_heads(&self, has_content: bool) -> Receiving {
        if has_content {
            Receiving::Content(Chunks::content(self.limits.http_head))
        } else {
            Receiving::Ending
        }
    }

    fn content_event<'b>(&mut self, event: ChunksEvent<'b>) -> Option<ClientEvent<'b>> {
        match event {
            ChunksEvent::NeedMore => None,
            ChunksEvent::Data(data) => Some(ClientEvent::Content(data)),
            ChunksEvent::End => {
                if let Receiving::Content(chunks) = &self.receiving {
                    self.trailers = chunks.trailers().to_vec();
                }
                self.receiving = Receiving::Ending;
                None
            }
        }
    }

    /// The server closed the connection.
    ///
    /// # Errors
    ///
    /// [`ClientError::Incomplete`] if the answer is not over, or the error that ended it.
    pub fn at_eof(&mut self) -> Result<(), ClientError> {
        self.is_closing = true;
        match self.receiving {
            Receiving::Ending | Receiving::Ended => Ok(()),
            Receiving::Failed(error) => Err(error),
            Receiving::Head(_) | Receiving::Heads(_) | Receiving::Content(_) => {
                self.receiving = Receiving::Failed(ClientError::Incomplete);
                Err(ClientError::Incomplete)
            }
        }
    }

    /// The trailer fields after the content of the answer, each line with its end; those that must
    /// not be passed on are dropped (RFC 9110 §6.5.1). Empty before the end.
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    /// Whether another request may be sent on the connection: after [`ClientEvent::End`], if the
    /// whole request was sent, the server does not close, and nothing followed the answer.
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        matches!(self.receiving, Receiving::Ended) && self.sending.is_complete() && !self.is_closing
    }
}

/// Whether the answer has no parts.
fn check_bare(answer: &AnswerHead) -> Result<(), MessageError> {
    let list = answer
        .fields()
        .encapsulated()?
        .unwrap_or(Encapsulated::BARE);
    list.check(ListKind::Bare)
        .map_err(MessageError::Encapsulated)?;
    answer.fields().check_framing(false)
}
