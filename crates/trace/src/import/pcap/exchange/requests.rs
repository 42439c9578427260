//! The client's side: requests.

use weir_semantics::{FieldLine, Method, lines_named};
use weir_wire::{
    BodyEvent, BodyLength, BodyReader, HeadLimits, LineBuffer, Progress, RequestHead, Version,
    parse_request,
};

use super::super::head::{HeadProgress, Kind, WholeHead, looks_like};
use super::super::length;
use super::super::limits::{PENDING_BYTES_MAX, PENDING_MAX};
use super::super::stream::Next;
use super::super::transaction::{Transaction, is_persistent, upgrades, version};
use super::{Exchange, ImportContext, Place, RequestState, ResponseState};
use crate::import::facts::{RequestTarget, TargetForm, request_facts};
use crate::{Row, TraceScheme, TraceVersion};

impl Exchange {
    /// Takes what is next of the client's bytes; says how many of them were used. None: they wait
    /// for the server.
    pub(in super::super) fn take_request(
        &mut self,
        next: Next<'_>,
        at: Place,
        context: &mut ImportContext<'_>,
    ) -> u64 {
        match next {
            Next::Bytes(bytes) => self.request_bytes(bytes, at, context) as u64,
            Next::Missing(count) => self.request_missing(count, at, context),
        }
    }

    fn request_bytes(&mut self, bytes: &[u8], at: Place, context: &mut ImportContext<'_>) -> usize {
        let mut used = 0;
        while used < bytes.len() {
            let rest = &bytes[used..];
            used += match &mut self.requests {
                RequestState::Lost if looks_like(Kind::Request, rest) => {
                    self.requests = RequestState::Head;
                    0
                }
                RequestState::Lost => {
                    context.counts.skipped_bytes += rest.len() as u64;
                    rest.len()
                }
                RequestState::Head => self.read_request_head(rest, at.plus(used), context),
                RequestState::Content { .. } => self.request_content(rest, context),
                RequestState::Waiting if context.is_impatient => {
                    self.requests = RequestState::Lost;
                    0
                }
                RequestState::Waiting => return used,
                RequestState::Tunnel => {
                    self.count_request_content(None, rest.len() as u64);
                    rest.len()
                }
                RequestState::Over => rest.len(),
            };
        }
        used
    }

    /// Bytes that were sent and not captured.
    fn request_missing(&mut self, count: u64, at: Place, context: &mut ImportContext<'_>) -> u64 {
        let lost = (
            at.sequence,
            at.plus(usize::try_from(count).unwrap_or(0)).sequence,
        );
        match &mut self.requests {
            RequestState::Waiting if !context.is_impatient => return 0,
            RequestState::Content {
                reader,
                begun,
                may_be_refused,
            } if reader.content_ahead() >= count => {
                reader.skip_content(count);
                let begun = *begun;
                *may_be_refused = false;
                let is_ended = reader.is_ended();
                self.count_request_content(Some(begun), count);
                if is_ended {
                    self.end_request(context);
                }
            }
            RequestState::Tunnel => self.count_request_content(None, count),
            RequestState::Over => {}
            RequestState::Head => {
                if !self.request_head.is_empty() {
                    context.counts.unreadable += 1;
                }
                self.lose_requests(Some(lost), context);
            }
            RequestState::Content { .. } => {
                context.counts.framing_lost += 1;
                self.lose_requests(Some(lost), context);
            }
            RequestState::Lost | RequestState::Waiting => self.lose_requests(Some(lost), context),
        }
        count
    }

    /// What follows is not known to be what. `lost`: bytes among which there may have been
    /// requests.
    fn lose_requests(&mut self, lost: Option<(u32, u32)>, context: &mut ImportContext<'_>) {
        self.finish_answered_early(context);
        self.lost_requests = lost.or(self.lost_requests);
        if lost.is_some() {
            // the next one is not the connection's first, or that is not known
            self.sequence = None;
            context.window.forget(self.opened.take());
        }
        self.request_head.clear();
        self.request_begun = None;
        self.requests = RequestState::Lost;
    }

    fn read_request_head(
        &mut self,
        bytes: &[u8],
        at: Place,
        context: &mut ImportContext<'_>,
    ) -> usize {
        let begun = *self.request_begun.get_or_insert(at);
        match self.request_head.feed(Kind::Request, bytes) {
            HeadProgress::More => bytes.len(),
            HeadProgress::Whole(whole, used) => {
                self.request_begun = None;
                context.counts.repaired += u64::from(whole.is_repaired);
                self.request(whole, begun, at.plus(used), context);
                used
            }
            HeadProgress::Unreadable => {
                self.request_begun = None;
                if self.sequence == Some(0) {
                    context.counts.not_http += 1;
                    self.requests = RequestState::Over;
                    self.responses = ResponseState::Over;
                    context.window.forget(self.opened.take());
                } else {
                    context.counts.unreadable += 1;
                    self.requests = RequestState::Lost;
                }
                bytes.len()
            }
        }
    }

    /// A request's head is whole: it becomes a transaction.
    fn request(
        &mut self,
        whole: WholeHead,
        begun: Place,
        end: Place,
        context: &mut ImportContext<'_>,
    ) {
        let limits = HeadLimits::default();
        let mut lines = LineBuffer::new();
        let text = whole.text.clone();
        let head = match parse_request(&text, &limits, &mut lines) {
            Ok(Progress::Complete { head, .. }) => head,
            // a line without a version was not read by `weir-wire`
            _ => RequestHead {
                method: "GET",
                target: http09_target(&text),
                version: Version::Http10,
                fields: &[],
            },
        };
        let mut transaction = self.transaction(&head, whole, begun, end.sequence, context);
        let method = transaction.method;
        let waits = method == Method::Connect || transaction.upgrades;
        let length = length::of_request(&head);
        if length != BodyLength::None {
            transaction.row.request_content_bytes = Some(0);
        }
        let expects_continue = expects_continue(head.fields);
        let begun = transaction.begun;
        self.pending_bytes += transaction.head.len();
        self.pending.push_back(transaction);
        context.counts.requests += 1;
        self.give_up_oldest(context);
        let reader = BodyReader::new(length, limits);
        self.requests = if !reader.is_ended() {
            RequestState::Content {
                reader: Box::new(reader),
                begun,
                may_be_refused: expects_continue,
            }
        } else if waits {
            RequestState::Waiting
        } else {
            RequestState::Head
        };
    }

    fn transaction(
        &mut self,
        head: &RequestHead<'_, '_>,
        whole: WholeHead,
        begun: Place,
        head_end: u32,
        context: &mut ImportContext<'_>,
    ) -> Transaction {
        let opened = self.opened.take();
        let begun_at = opened.unwrap_or_else(|| context.window.begin(begun.time_us));
        self.sequence = self.sequence.map(|sequence| sequence.saturating_add(1));
        let mut row = Box::new(Row {
            arrival_us: begun_at.0,
            setup_us: opened.and(self.setup_us),
            request_us: u64::try_from(begun.time_us.saturating_sub(begun_at.0)).ok(),
            client: Some(self.endpoints.client),
            connection: Some(self.endpoints.connection),
            connection_sequence: self.sequence,
            version: Some(match whole.is_http09 {
                true => TraceVersion::Http09,
                false => version(head.version),
            }),
            request_head_bytes: u32::try_from(whole.bytes).ok(),
            request_content_bytes: Some(0),
            ..Row::default()
        });
        let asked = RequestTarget {
            method: head.method,
            target: TargetForm::Line(head.target),
            scheme: TraceScheme::Http,
            default_authority: &self.endpoints.server,
        };
        request_facts(&mut row, &asked, head.fields, context.hide);
        Transaction {
            begun: begun_at,
            row,
            method: Method::parse(head.method),
            head_end,
            acknowledgement: begun.acknowledgement,
            upgrades: upgrades(head),
            is_http09: whole.is_http09,
            is_persistent: !whole.is_http09 && is_persistent(head.version, head.fields),
            head: whole.text,
            is_answered: false,
            received_bytes: 0,
            received_at_close: None,
        }
    }

    /// Keeps within the limits of what waits for responses.
    fn give_up_oldest(&mut self, context: &mut ImportContext<'_>) {
        while self.pending.len() > PENDING_MAX
            || (self.pending_bytes > PENDING_BYTES_MAX && self.pending.len() > 1)
        {
            let Some(oldest) = self.take_front() else {
                return;
            };
            context.counts.overdue += 1;
            context.window.finish(oldest.lose());
            // what it was part of has no transaction any more
            match &mut self.responses {
                ResponseState::Head { is_orphan } | ResponseState::Content { is_orphan, .. } => {
                    *is_orphan = true;
                }
                _ => {}
            }
        }
    }

    /// The oldest transaction is finished.
    pub(super) fn take_front(&mut self) -> Option<Transaction> {
        let front = self.pending.pop_front()?;
        self.pending_bytes -= front.head.len();
        Some(front)
    }

    fn request_content(&mut self, bytes: &[u8], context: &mut ImportContext<'_>) -> usize {
        let RequestState::Content {
            reader,
            begun,
            may_be_refused,
        } = &mut self.requests
        else {
            return 0;
        };
        let begun = *begun;
        if *may_be_refused {
            *may_be_refused = false;
            let waits =
                |transaction: &Transaction| transaction.begun == begun && !transaction.is_answered;
            // a final response instead of `100 Continue`: the content is not sent (RFC 9110
            // §10.1.1), another request may be
            let is_refused = !self.pending.iter().any(waits);
            if is_refused && looks_like(Kind::Request, bytes) {
                self.finish_answered_early(context);
                self.requests = RequestState::Head;
                return 0;
            }
        }
        let (used, content) = match reader.step(bytes) {
            Ok(step) => match step.event {
                BodyEvent::Data(data) => (step.consumed, data.len() as u64),
                BodyEvent::NeedMore | BodyEvent::End => (step.consumed, 0),
            },
            Err(_) => {
                context.counts.framing_lost += 1;
                self.lose_requests(None, context);
                return bytes.len();
            }
        };
        let is_ended = reader.is_ended();
        self.count_request_content(Some(begun), content);
        if is_ended {
            self.end_request(context);
        }
        used
    }

    /// The content of the request has come to its end.
    fn end_request(&mut self, context: &mut ImportContext<'_>) {
        self.finish_answered_early(context);
        let waits = self.pending.back().is_some_and(|last| {
            !last.is_answered && (last.upgrades || last.method == Method::Connect)
        });
        self.requests = if waits {
            RequestState::Waiting
        } else {
            RequestState::Head
        };
    }

    /// Counts content of the request that began so, or of the tunnel.
    fn count_request_content(&mut self, begun: Option<super::Begun>, bytes: u64) {
        let transaction = match begun {
            Some(begun) => self
                .answered_early
                .as_mut()
                .or(self.pending.back_mut())
                .filter(|transaction| transaction.begun == begun),
            None => self.pending.front_mut(),
        };
        if let Some(transaction) = transaction {
            let counted = transaction.row.request_content_bytes.unwrap_or(0);
            transaction.row.request_content_bytes = Some(counted + bytes);
        }
    }
}

/// Whether the client waits for `100 Continue` before it sends its content (RFC 9110 §10.1.1).
fn expects_continue(fields: &[FieldLine<'_>]) -> bool {
    lines_named(fields, "expect").any(|value| value.eq_ignore_ascii_case(b"100-continue"))
}

/// The target in the one line of a request of HTTP/0.9.
fn http09_target(line: &[u8]) -> &str {
    let words = str::from_utf8(line).unwrap_or_default();
    words.split_ascii_whitespace().nth(1).unwrap_or("/")
}
