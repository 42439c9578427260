//! The server's side: responses.

use weir_semantics::Method;
use weir_wire::{
    BodyEvent, BodyLength, BodyReader, HeadLimits, LineBuffer, Progress, ResponseHead,
    parse_response,
};

use super::super::head::{HeadProgress, Kind, WholeHead, looks_like};
use super::super::length;
use super::super::stream::Next;
use super::{Exchange, ImportContext, Place, RequestState, ResponseState};

impl Exchange {
    /// Takes what is next of the server's bytes; says how many of them were used. None: they wait
    /// for the request they answer.
    pub(in super::super) fn take_response(
        &mut self,
        next: Next<'_>,
        at: Place,
        context: &mut ImportContext<'_>,
    ) -> u64 {
        match next {
            Next::Bytes(bytes) => self.response_bytes(bytes, at, context) as u64,
            Next::Missing(count) => {
                self.response_missing(count, at, context);
                count
            }
        }
    }

    fn response_bytes(
        &mut self,
        bytes: &[u8],
        at: Place,
        context: &mut ImportContext<'_>,
    ) -> usize {
        let mut used = 0;
        while used < bytes.len() {
            let rest = &bytes[used..];
            used += match &mut self.responses {
                ResponseState::Lost if looks_like(Kind::Response, rest) => {
                    self.responses = ResponseState::Head { is_orphan: false };
                    0
                }
                ResponseState::Lost => {
                    context.counts.skipped_bytes += rest.len() as u64;
                    rest.len()
                }
                ResponseState::Head { .. } => {
                    if self.response_begun.is_none()
                        && !self.begin_response(rest, at.plus(used), context)
                    {
                        return used;
                    }
                    self.read_response_head(rest, at.plus(used), context)
                }
                ResponseState::Content { .. } => {
                    self.response_content(rest, at.plus(used), context)
                }
                ResponseState::Tunnel => {
                    if let Some(transaction) = self.pending.front_mut() {
                        transaction.receive(rest.len() as u64, at.time_us);
                    }
                    rest.len()
                }
                ResponseState::Over => rest.len(),
            };
        }
        used
    }

    /// Bytes that were sent and not captured.
    fn response_missing(&mut self, count: u64, at: Place, context: &mut ImportContext<'_>) {
        match &mut self.responses {
            ResponseState::Content {
                reader, is_orphan, ..
            } if reader.content_ahead() >= count => {
                reader.skip_content(count);
                let (is_orphan, is_ended) = (*is_orphan, reader.is_ended());
                self.receive(is_orphan, count, at.time_us);
                if is_ended {
                    self.complete(context);
                }
            }
            ResponseState::Tunnel => self.receive(false, count, at.time_us),
            ResponseState::Over | ResponseState::Lost => {}
            ResponseState::Content { is_orphan, .. } => {
                let is_orphan = *is_orphan;
                context.counts.framing_lost += 1;
                self.lose_response(is_orphan, at.sequence, context);
            }
            ResponseState::Head { .. } => {
                if !self.response_head.is_empty() {
                    context.counts.unreadable += 1;
                }
                self.response_head.clear();
                self.response_begun = None;
                self.lose_thread(at.sequence);
            }
        }
    }

    /// The thread of a response was lost within its content.
    fn lose_response(&mut self, is_orphan: bool, since: u32, context: &mut ImportContext<'_>) {
        if !is_orphan && let Some(transaction) = self.take_front() {
            context.window.finish(transaction.lose());
        }
        self.lose_thread(since);
    }

    /// What follows is not known to be what, from this sequence number on.
    fn lose_thread(&mut self, since: u32) {
        self.responses = ResponseState::Lost;
        self.lost_since.get_or_insert(since);
    }

    /// A head was found after the thread was lost at `since`. A client that does not pipeline has
    /// received all earlier responses when it sends a request: requests whose successor
    /// acknowledged more than what was read before, and no more than this head, were answered in
    /// between.
    fn realign(&mut self, since: u32, head: u32, context: &mut ImportContext<'_>) {
        while let Some(next) = self.pending.get(1)
            && let Some(acknowledged) = next.acknowledgement
            && is_before(since, acknowledged)
            && !is_before(head, acknowledged)
        {
            if let Some(transaction) = self.take_front() {
                context.counts.unanswered += 1;
                context.window.finish(transaction.lose());
            }
        }
    }

    /// Finds the request that is answered by what begins here. `false`: it may yet come.
    fn begin_response(&mut self, bytes: &[u8], at: Place, context: &mut ImportContext<'_>) -> bool {
        if let Some(since) = self.lost_since {
            self.realign(since, at.sequence, context);
        }
        let is_orphan = match self.pending.front() {
            Some(front) => at.acknowledgement.is_some_and(|acknowledged| {
                is_before(acknowledged, front.head_end)
                    || (self.lost_since.is_some() && self.was_lost(acknowledged))
            }),
            None if context.is_impatient => true,
            None => return false,
        };
        if !is_orphan {
            self.lost_since = None;
        }
        self.responses = ResponseState::Head { is_orphan };
        self.response_begun = Some(at);
        if !is_orphan
            && let Some(front) = self.pending.front_mut()
            && front.is_http09
            && !looks_like(Kind::Response, bytes)
        {
            front.row.response_us = front.since(at.time_us);
            front.is_answered = true;
            context.counts.responses += 1;
            self.begin_content(BodyLength::UntilClose, false, context);
        }
        true
    }

    /// Whether the last byte before this sequence number of the client's was among those that were
    /// lost.
    fn was_lost(&self, sequence: u32) -> bool {
        self.lost_requests
            .is_some_and(|(from, to)| is_before(from, sequence) && !is_before(to, sequence))
    }

    fn read_response_head(
        &mut self,
        bytes: &[u8],
        at: Place,
        context: &mut ImportContext<'_>,
    ) -> usize {
        // of HTTP/0.9: there is none
        if !matches!(self.responses, ResponseState::Head { .. }) {
            return 0;
        }
        let begun = *self.response_begun.get_or_insert(at);
        match self.response_head.feed(Kind::Response, bytes) {
            HeadProgress::More => bytes.len(),
            HeadProgress::Whole(whole, used) => {
                self.response_begun = None;
                context.counts.repaired += u64::from(whole.is_repaired);
                self.response(&whole, begun, at.time_us, context);
                used
            }
            HeadProgress::Unreadable => {
                self.response_begun = None;
                context.counts.unreadable += 1;
                self.lose_thread(at.sequence);
                bytes.len()
            }
        }
    }

    /// A response's head is whole.
    fn response(
        &mut self,
        whole: &WholeHead,
        begun: Place,
        whole_us: i64,
        context: &mut ImportContext<'_>,
    ) {
        let mut lines = LineBuffer::new();
        let parsed = parse_response(&whole.text, &HeadLimits::default(), &mut lines);
        let Ok(Progress::Complete { head, .. }) = parsed else {
            context.counts.unreadable += 1;
            self.lose_thread(begun.sequence);
            return;
        };
        let is_orphan = matches!(self.responses, ResponseState::Head { is_orphan: true });
        if matches!(head.status, 100..200) && head.status != 101 {
            context.counts.interim += 1;
            self.responses = ResponseState::Head { is_orphan: false };
            return;
        }
        let front = self.pending.front_mut().filter(|_| !is_orphan);
        let Some(front) = front else {
            context.counts.orphans += 1;
            self.begin_content(length::of_response(&head, Method::Get), true, context);
            return;
        };
        context.counts.responses += 1;
        front.answer(&head, whole.bytes, begun.time_us, whole_us, context.hide);
        let method = front.method;
        if is_tunnel(&head, method) {
            self.requests = RequestState::Tunnel;
            self.responses = ResponseState::Tunnel;
            return;
        }
        if matches!(self.requests, RequestState::Waiting) {
            self.requests = RequestState::Head;
        }
        self.begin_content(length::of_response(&head, method), false, context);
    }

    fn begin_content(
        &mut self,
        length: BodyLength,
        is_orphan: bool,
        context: &mut ImportContext<'_>,
    ) {
        let reader = BodyReader::new(length, HeadLimits::default());
        let is_ended = reader.is_ended();
        self.response_begun = None;
        self.responses = ResponseState::Content {
            reader: Box::new(reader),
            is_orphan,
            to_close: length == BodyLength::UntilClose,
        };
        if is_ended {
            self.complete(context);
        }
    }

    fn response_content(
        &mut self,
        bytes: &[u8],
        at: Place,
        context: &mut ImportContext<'_>,
    ) -> usize {
        let ResponseState::Content {
            reader, is_orphan, ..
        } = &mut self.responses
        else {
            return 0;
        };
        let is_orphan = *is_orphan;
        let (used, content) = match reader.step(bytes) {
            Ok(step) => match step.event {
                BodyEvent::Data(data) => (step.consumed, data.len() as u64),
                BodyEvent::NeedMore | BodyEvent::End => (step.consumed, 0),
            },
            Err(_) => {
                context.counts.framing_lost += 1;
                self.lose_response(is_orphan, at.sequence, context);
                return bytes.len();
            }
        };
        let is_ended = reader.is_ended();
        if content > 0 {
            self.receive(is_orphan, content, at.time_us);
        }
        if is_ended {
            self.complete(context);
        }
        used
    }

    fn receive(&mut self, is_orphan: bool, bytes: u64, time_us: i64) {
        if !is_orphan && let Some(transaction) = self.pending.front_mut() {
            transaction.receive(bytes, time_us);
        }
    }

    /// The response came to its end.
    fn complete(&mut self, context: &mut ImportContext<'_>) {
        let is_orphan = matches!(
            self.responses,
            ResponseState::Content {
                is_orphan: true,
                ..
            }
        );
        self.responses = ResponseState::Head { is_orphan: false };
        if is_orphan {
            return;
        }
        let Some(transaction) = self.take_front() else {
            return;
        };
        let is_asked = match &self.requests {
            RequestState::Content { begun, .. } => *begun != transaction.begun,
            _ => true,
        };
        if is_asked {
            context.window.finish(transaction.complete(true));
        } else {
            self.answered_early = Some(transaction);
        }
    }
}

/// Whether what follows this head is not HTTP (RFC 9110 §9.3.6, §7.8).
fn is_tunnel(head: &ResponseHead<'_, '_>, method: Method) -> bool {
    head.status == 101 || (method == Method::Connect && (200..300).contains(&head.status))
}

/// Whether one sequence number comes before another (RFC 9293 §3.4).
const fn is_before(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() < 0
}
