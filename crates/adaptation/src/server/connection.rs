//! One connection of an ICAP client.
//!
//! Requests are answered one after the other. While one is answered, content is received and sent
//! at the same time; what is received and sent is bounded, and neither waits for a client that does
//! not the other.

use super::access_log::{RequestLog, RequestResult};
use super::context::WorkerContext;
use super::heads::{local_bytes, request_bytes, request_head, response_bytes, response_head};
use super::named::read_target;
use super::run::{Outcome, Run};
use super::services::Service;
use super::stage::StageError;
use crate::caller::{self, ANSWER, CALLER, HEAD, RESPONSE, VARIANT};
use crate::socket::Socket;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::time::timeout;
use weir_extend::{Call, ListenerMode, LogLevel, PIECE_BYTES_MAX};
use weir_icap::{
    Adapted, AdaptedContent, EncapsulatedHeads, IsTag, Limits, Method, RefusalStatus, RequestHead,
    Server, ServerEvent,
};
use weir_semantics::FieldLine;

/// How long a connection may be without a request. Squid keeps its connections for 60 s.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);

/// How long the head of a request may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a request may stay without a byte from or to its client, the work of a module included.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes that are received and not read, or written and not sent.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// One connection.
pub(super) struct Connection {
    worker: Rc<WorkerContext>,
    socket: Socket,
    /// The client's address; that of this machine on a socket in the file system.
    peer: IpAddr,
    server: Server,
    /// Received and not read.
    input: Vec<u8>,
    /// Written and not sent.
    output: Vec<u8>,
    /// Content of the request that was read and not used.
    content: Vec<u8>,
    /// How far the request is.
    reading: Reading,
    /// The request is of a proxy that runs this process.
    is_for_proxy: bool,
    /// The variant that the module has set, for that proxy.
    variant: Option<String>,
    has_closed: bool,
    /// What the access log says of the request.
    log: RequestLog,
}

/// How far a request is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reading {
    /// All content was read.
    is_last: bool,
    /// The module was told so.
    has_ended: bool,
    /// A preview has ended, and more content follows if the server continues.
    awaits_continue: bool,
    /// The preview is still to end.
    is_in_preview: bool,
}

/// The connection is of no use any more.
struct Ended;

impl From<std::io::Error> for Ended {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

/// A request that was read up to its content.
enum Request {
    Options(RequestHead),
    Adapt(RequestHead, EncapsulatedHeads),
}

impl Connection {
    /// A connection of the client at `peer`; `None` if the server has no tag.
    pub(super) fn new(
        worker: Rc<WorkerContext>,
        socket: Socket,
        peer: Option<IpAddr>,
    ) -> Option<Self> {
        Some(Self {
            worker,
            socket,
            peer: peer.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            server: Server::new(IsTag::new("weir").ok()?, Limits::default()),
            input: Vec::new(),
            output: Vec::new(),
            content: Vec::new(),
            reading: Reading::default(),
            is_for_proxy: false,
            variant: None,
            has_closed: false,
            log: RequestLog::default(),
        })
    }

    /// Serves it until it ends.
    pub(super) async fn serve(mut self) {
        while let Ok(request) = self.request().await {
            let served = match request {
                Request::Options(head) => self.answer_options(&head),
                Request::Adapt(head, heads) => self.adapt(&head, &heads).await,
            };
            let is_whole = served.is_ok() && self.finish().await.is_ok();
            if !is_whole || self.server.is_closing() || self.worker.is_stopping() {
                self.end(is_whole).await;
                return;
            }
            self.write_log(true);
        }
        self.end(true).await;
    }

    /// The client may still want what was written.
    async fn end(&mut self, is_whole: bool) {
        let flushed = timeout(HEAD_TIMEOUT, self.flush()).await;
        if self.log.begun.is_some() {
            self.write_log(is_whole && matches!(flushed, Ok(Ok(()))));
        }
    }

    /// Logs the request.
    fn write_log(&mut self, is_whole: bool) {
        let log = std::mem::take(&mut self.log);
        let shared = &self.worker.shared;
        if shared.access_log.is_on() {
            let now = shared.clock.wall_ms();
            log.write(&shared.access_log, self.peer, now, is_whole);
        }
    }

    /// Waits for a request.
    async fn request(&mut self) -> Result<Request, Ended> {
        self.reading = Reading::default();
        self.content.clear();
        let mut stop = self.worker.stop();
        if self.input.is_empty() {
            let readable = timeout(IDLE_TIMEOUT, poll_fn(|cx| self.poll_io(cx, true)));
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return Err(Ended),
                readable = readable => readable.map_err(|_| Ended)??,
            }
            // the client has closed the connection between two requests
            if self.input.is_empty() {
                return Err(Ended);
            }
        }
        self.log.begun = Some(Instant::now());
        match timeout(HEAD_TIMEOUT, self.read_head()).await {
            Ok(request) => request,
            Err(_) => {
                let _ = self.refuse(RefusalStatus::RequestTimeout);
                Err(Ended)
            }
        }
    }

    async fn read_head(&mut self) -> Result<Request, Ended> {
        loop {
            let step = match self.server.receive(&self.input) {
                Ok(step) => step,
                Err(error) => {
                    self.refuse(error.status())?;
                    return Err(Ended);
                }
            };
            let consumed = step.consumed;
            let request = match step.event {
                ServerEvent::Options(head) => Some(Request::Options(head)),
                ServerEvent::Adapt { head, heads } => Some(Request::Adapt(head, heads)),
                // of the request before
                ServerEvent::End => {
                    self.consume(consumed);
                    continue;
                }
                ServerEvent::NeedMore => None,
                _ => return Err(Ended),
            };
            self.consume(consumed);
            match request {
                Some(request) => return Ok(request),
                None if self.has_closed => return Err(Ended),
                None => poll_fn(|cx| self.poll_io(cx, true)).await?,
            }
        }
    }

    /// Sends and receives what it can; ready once bytes were received (or the client has closed),
    /// or sent, if it is not `for_input`.
    fn poll_io(&mut self, cx: &mut Context<'_>, for_input: bool) -> Poll<Result<(), Ended>> {
        let mut has_moved = false;
        while !self.output.is_empty() {
            match self.socket.poll_write(cx, &self.output) {
                Poll::Pending => break,
                Poll::Ready(sent) => {
                    self.note_sent(sent?);
                    has_moved |= !for_input;
                }
            }
        }
        if !self.has_closed
            && self.input.len() < BUFFER_BYTES_MAX
            && let Poll::Ready(read) = self.socket.poll_receive(cx, &mut self.input)
        {
            self.has_closed = read? == 0;
            has_moved = true;
        }
        match has_moved {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    }

    fn consume(&mut self, count: usize) {
        self.input.drain(..count);
        self.log.request_bytes += count as u64;
    }

    fn note_sent(&mut self, count: usize) {
        self.output.drain(..count);
        self.log.response_bytes += count as u64;
    }

    /// Sends all that was written.
    async fn flush(&mut self) -> Result<(), Ended> {
        poll_fn(|cx| {
            while !self.output.is_empty() {
                match self.socket.poll_write(cx, &self.output) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(sent) => self.note_sent(sent?),
                }
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    fn refuse(&mut self, status: RefusalStatus) -> Result<(), Ended> {
        let result = match status {
            RefusalStatus::ServerError => RequestResult::Failed,
            _ => RequestResult::Refused,
        };
        // an answer that has begun stays what it was
        self.log.answer.get_or_insert((status.code(), result));
        let written = self.server.write_refusal(status, &mut self.output);
        written.map_err(|_| Ended)
    }

    fn answer_options(&mut self, head: &RequestHead) -> Result<(), Ended> {
        self.log.note(head, None);
        let (name, _) = read_target(head);
        let services = self.worker.services();
        let Some(Service { module, .. }) = services.find(name) else {
            return self.refuse(RefusalStatus::NotFound);
        };
        self.server.set_istag(module.istag().ok_or(Ended)?);
        let (server, output) = (&mut self.server, &mut self.output);
        let connections_max = self.worker.connections_max();
        self.log.answer = Some((200, RequestResult::Options));
        module
            .describe(connections_max, |options| {
                server.write_options(options, output)
            })
            .map_err(|_| Ended)
    }

    /// Answers a message.
    async fn adapt(&mut self, head: &RequestHead, heads: &EncapsulatedHeads) -> Result<(), Ended> {
        self.reading = Reading {
            is_last: !head.has_content(),
            is_in_preview: head.has_content() && head.preview().is_some(),
            ..Reading::default()
        };
        self.log.note(head, Some(heads));
        self.is_for_proxy = head.fields().get(CALLER).is_some();
        self.variant = None;
        let (name, _) = read_target(head);
        let services = self.worker.services();
        let Some(service) = services.find(name) else {
            return self.refuse(RefusalStatus::NotFound);
        };
        self.server.set_istag(service.module.istag().ok_or(Ended)?);
        let mut run = match catch_unwind(AssertUnwindSafe(|| self.begin(service, head, heads))) {
            Ok(Ok(run)) => run,
            Ok(Err(status)) => return self.refuse(status),
            Err(_) => return self.refuse(RefusalStatus::ServerError),
        };
        let outcome = loop {
            let polled = poll_fn(|cx| self.poll_outcome(cx, &mut run));
            if let Some(outcome) = timeout(STALL_TIMEOUT, polled).await.map_err(|_| Ended)?? {
                break outcome;
            }
        };
        if self.is_for_proxy && run.response.is_none() {
            self.variant = run.request.take_variant();
        }
        match outcome {
            Outcome::Failed => self.refuse(RefusalStatus::ServerError),
            Outcome::Respond(response) => {
                self.log.answer = Some((200, RequestResult::Responded));
                let (bytes, content) = (local_bytes(&response), response.content());
                let form = content_form(!content.is_empty(), false);
                self.write_head(&Adapted::Response(&bytes), form, Some(RESPONSE))?;
                if content.is_empty() {
                    return Ok(());
                }
                for piece in content.chunks(PIECE_BYTES_MAX) {
                    self.write(|server, output| server.write_content(piece, output))?;
                    self.flush_in_time().await?;
                }
                self.write(Server::write_end)
            }
            Outcome::Unchanged => self.pass(head, heads).await,
            Outcome::Changed => self.write_changed(run, head, heads).await,
        }
    }

    /// Begins the module's work on a message; why it is refused.
    fn begin(
        &self,
        Service { module, host }: Service<'_>,
        head: &RequestHead,
        heads: &EncapsulatedHeads,
    ) -> Result<Run, RefusalStatus> {
        let method = head.method();
        let (_, wanted) = read_target(head);
        let hooks = module.hooks(method, wanted);
        if hooks.is_empty() {
            return Err(RefusalStatus::MethodNotAllowed);
        }
        let client = head.fields().get("X-Client-IP");
        let client = client.and_then(|client| std::str::from_utf8(client).ok()?.parse().ok());
        let call = Call {
            client: client.unwrap_or(self.peer),
            mode: head
                .fields()
                .get(CALLER)
                .map_or(ListenerMode::Forward, caller::mode_of),
            now_ms: self.worker.now_ms(),
        };
        let is_request = method == Method::Reqmod;
        let request = request_head(heads, is_request && head.has_content());
        let exchange = module.module.begin(host);
        let call = (call, module.hold_bytes);
        if is_request {
            let request = request.ok_or(RefusalStatus::BadRequest)?;
            return Ok(Run::of_request(exchange, call, hooks, request));
        }
        let request = request.unwrap_or_else(|| {
            weir_extend::RequestHead::new("GET", "", "/", weir_extend::Fields::default())
        });
        let response = response_head(heads, &request).ok_or(RefusalStatus::BadRequest)?;
        // the module sees the request first; what it makes of that is not asked for
        let mut before = Run::of_request(exchange, call, module.hooks_before(), request.saved());
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let _ = before.poll_head(&mut cx);
        let exchange = before.into_exchange();
        Ok(Run::of_response(exchange, call, hooks, request, response))
    }

    /// What comes of the head, while content is given to the module; ready with `None` if bytes
    /// have moved.
    fn poll_outcome(
        &mut self,
        cx: &mut Context<'_>,
        run: &mut Run,
    ) -> Poll<Result<Option<Outcome>, Ended>> {
        loop {
            let polled = catch_unwind(AssertUnwindSafe(|| run.poll_head(cx)));
            match polled {
                Ok(Poll::Ready(outcome)) => return Poll::Ready(Ok(Some(outcome))),
                Ok(Poll::Pending) => {}
                Err(_) => return Poll::Ready(Ok(Some(Outcome::Failed))),
            }
            if !self.feed(run)? {
                ready!(self.poll_moved(cx))?;
                return Poll::Ready(Ok(None));
            }
        }
    }

    /// Ready once bytes have moved.
    fn poll_moved(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        ready!(self.poll_io(cx, false))?;
        match self.has_closed && self.input.is_empty() && !self.reading.is_last {
            true => Poll::Ready(Err(Ended)),
            false => Poll::Ready(Ok(())),
        }
    }

    /// Gives content to the module. Whether there was something to give.
    fn feed(&mut self, run: &mut Run) -> Result<bool, Ended> {
        if run.room() == 0 {
            return Ok(false);
        }
        let before = self.content.len();
        self.read(true)?;
        let has_read = self.content.len() > before;
        let count = run.give(&self.content, self.reading.is_last);
        self.content.drain(..count);
        let ends = self.reading.is_last && self.content.is_empty() && !self.reading.has_ended;
        self.reading.has_ended |= ends;
        Ok(count > 0 || has_read || ends)
    }

    /// Reads content, at most a piece; beyond a preview if it `may_continue`.
    fn read(&mut self, may_continue: bool) -> Result<(), Ended> {
        while !self.reading.is_last && self.content.len() < PIECE_BYTES_MAX {
            if self.reading.awaits_continue {
                if !may_continue {
                    return Ok(());
                }
                self.reading.awaits_continue = false;
                self.write(Server::write_continue)?;
            }
            let step = match self.server.receive(&self.input) {
                Ok(step) => step,
                Err(error) => {
                    // it may be too late for an answer
                    let _ = self.refuse(error.status());
                    return Err(Ended);
                }
            };
            let consumed = step.consumed;
            let is_idle = match step.event {
                ServerEvent::Content(content) => {
                    self.content.extend_from_slice(content);
                    false
                }
                ServerEvent::PreviewEnd { is_whole } => {
                    self.reading.is_in_preview = false;
                    self.reading.awaits_continue = !is_whole;
                    false
                }
                ServerEvent::End => {
                    self.reading.is_last = true;
                    false
                }
                ServerEvent::NeedMore | ServerEvent::AnswerDue => true,
                _ => return Err(Ended),
            };
            self.consume(consumed);
            if is_idle {
                break;
            }
        }
        Ok(())
    }

    /// The message stays as it was: says so, or sends it back.
    async fn pass(&mut self, head: &RequestHead, heads: &EncapsulatedHeads) -> Result<(), Ended> {
        let variant = self.variant.clone().unwrap_or_default();
        let notes = [FieldLine::new(VARIANT, variant.as_bytes())];
        let notes = if variant.is_empty() { &[] } else { &notes[..] };
        let unmodified = self.server.write_unmodified(notes, &mut self.output);
        if unmodified.is_ok() {
            self.log.answer = Some((204, RequestResult::Unmodified));
            return Ok(());
        }
        self.log.answer = Some((200, RequestResult::Unmodified));
        let adapted = match head.method() {
            Method::Reqmod => Adapted::Request(heads.request_bytes()),
            _ => Adapted::Response(heads.response_bytes()),
        };
        self.write_head(&adapted, content_form(head.has_content(), false), None)?;
        self.echo(head).await
    }

    /// Sends back the content as it comes.
    async fn echo(&mut self, head: &RequestHead) -> Result<(), Ended> {
        if !head.has_content() {
            return Ok(());
        }
        loop {
            self.read(true)?;
            let content = std::mem::take(&mut self.content);
            if !content.is_empty() {
                for piece in content.chunks(PIECE_BYTES_MAX) {
                    self.write(|server, output| server.write_content(piece, output))?;
                }
            } else if self.reading.is_last {
                return self.write(Server::write_end);
            } else {
                self.wait().await?;
            }
            if self.output.len() >= BUFFER_BYTES_MAX {
                self.flush_in_time().await?;
            }
        }
    }

    /// Sends back what the module has made of the message.
    async fn write_changed(
        &mut self,
        mut run: Run,
        head: &RequestHead,
        heads: &EncapsulatedHeads,
    ) -> Result<(), Ended> {
        self.log.answer = Some((200, RequestResult::Modified));
        if self.is_for_proxy && !run.is_transformed() {
            return self.write_changed_head(&run, heads);
        }
        // a server that has begun its answer cannot continue after a preview
        while self.reading.is_in_preview {
            self.read(false)?;
            if self.reading.is_in_preview {
                self.wait().await?;
            }
        }
        if self.reading.awaits_continue {
            self.reading.awaits_continue = false;
            self.write(Server::write_continue)?;
        }
        let is_response = run.response.is_some();
        let bytes = changed_bytes(&run, heads);
        let adapted = adapted(&run, &bytes);
        let has_content =
            head.has_content() || (is_response && run.is_transformed() && has_room(&run));
        let form = content_form(has_content, run.is_transformed());
        self.write_head(&adapted, form, None)?;
        if !run.is_transformed() || !has_content {
            return self.echo(head).await;
        }
        loop {
            let mut out = Vec::new();
            let polled = poll_fn(|cx| self.poll_changed(cx, &mut run, &mut out));
            let is_end = timeout(STALL_TIMEOUT, polled).await.map_err(|_| Ended)??;
            let is_end = is_end.unwrap_or(false);
            if !out.is_empty() {
                self.write(|server, output| server.write_content(&out, output))?;
            }
            if is_end {
                return self.write(Server::write_end);
            }
            if self.output.len() >= BUFFER_BYTES_MAX {
                self.flush_in_time().await?;
            }
        }
    }

    /// The head alone is another one, and the proxy has the content.
    fn write_changed_head(&mut self, run: &Run, heads: &EncapsulatedHeads) -> Result<(), Ended> {
        let bytes = changed_bytes(run, heads);
        self.write_head(&adapted(run, &bytes), AdaptedContent::None, Some(HEAD))
    }

    /// Has the module put out content; ready with whether that is the end, or `None` if bytes have
    /// moved.
    fn poll_changed(
        &mut self,
        cx: &mut Context<'_>,
        run: &mut Run,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Option<bool>, Ended>> {
        loop {
            let polled = catch_unwind(AssertUnwindSafe(|| run.poll_content(cx, out)));
            match polled {
                Ok(Poll::Ready(Ok(is_end))) => return Poll::Ready(Ok(Some(is_end))),
                Ok(Poll::Pending) => {}
                // the answer stays without an end, so that the client notices
                Ok(Poll::Ready(Err(StageError::Failed | StageError::Respond(_)))) | Err(_) => {
                    return Poll::Ready(Err(Ended));
                }
            }
            if !self.feed(run)? {
                ready!(self.poll_moved(cx))?;
                return Poll::Ready(Ok(None));
            }
        }
    }

    /// Reads the rest of the request, and sends the answer.
    async fn finish(&mut self) -> Result<(), Ended> {
        while !self.reading.is_last && !self.reading.awaits_continue && !self.server.is_closing() {
            self.content.clear();
            self.read(false)?;
            if self.content.is_empty() && !self.reading.is_last && !self.reading.awaits_continue {
                self.wait().await?;
            }
        }
        self.flush_in_time().await
    }

    /// Waits for the client.
    async fn wait(&mut self) -> Result<(), Ended> {
        let moved = timeout(STALL_TIMEOUT, poll_fn(|cx| self.poll_moved(cx))).await;
        moved.map_err(|_| Ended)?
    }

    async fn flush_in_time(&mut self) -> Result<(), Ended> {
        let flushed = timeout(STALL_TIMEOUT, self.flush()).await;
        flushed.map_err(|_| Ended)?
    }

    /// Writes the heads of an answer; what is `said` of it is for the proxy of this process.
    fn write_head(
        &mut self,
        adapted: &Adapted<'_>,
        content: AdaptedContent,
        said: Option<&str>,
    ) -> Result<(), Ended> {
        let variant = self.variant.clone();
        let mut notes = Vec::new();
        if let Some(said) = said.filter(|_| self.is_for_proxy) {
            notes.push(FieldLine::new(ANSWER, said.as_bytes()));
        }
        if let Some(variant) = &variant {
            notes.push(FieldLine::new(VARIANT, variant.as_bytes()));
        }
        self.write(|server, output| server.write_adapted(&notes, adapted, content, output))
    }

    /// Writes a part of the answer.
    fn write<E: std::fmt::Display>(
        &mut self,
        write: impl FnOnce(&mut Server, &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), Ended> {
        write(&mut self.server, &mut self.output).map_err(|error| {
            self.worker.log(LogLevel::Warning, &error.to_string());
            Ended
        })
    }
}

/// The head that the module has changed.
fn changed_bytes(run: &Run, heads: &EncapsulatedHeads) -> Vec<u8> {
    match &run.response {
        Some(response) => response_bytes(response, heads),
        None => request_bytes(&run.request, heads),
    }
}

const fn adapted<'b>(run: &Run, bytes: &'b [u8]) -> Adapted<'b> {
    match run.response {
        Some(_) => Adapted::Response(bytes),
        None => Adapted::Request(bytes),
    }
}

const fn content_form(has_content: bool, is_changed: bool) -> AdaptedContent {
    match (has_content, is_changed) {
        (false, _) => AdaptedContent::None,
        (true, false) => AdaptedContent::Unchanged,
        (true, true) => AdaptedContent::Changed,
    }
}

/// Whether a response may have content that its origin did not send: not to HEAD, and not with a
/// status without content.
fn has_room(run: &Run) -> bool {
    let status = run.response.as_ref().map(weir_extend::ResponseHead::status);
    run.request.method() != "HEAD" && !matches!(status, Some(204 | 205 | 304))
}
