//! What a thread does: it begins exchanges, calls them, and lets them wait.

use super::host::ThreadHost;
use super::message::{
    MESSAGES_MAX, Message, PieceProgress, PieceReply, Reply, SentHead, SentPiece, SetTransform,
    TransformKind,
};
use super::pool::{Begin, Busy};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use tokio::sync::mpsc;
use tokio::task::{LocalSet, spawn_local};
use weir_extend::{
    Answer, Call, Codings, Exchange, Hook, Host, Module, Piece, Progress, RequestHead,
    ResponseHead, Transform,
};
use weir_policy::extension::ModuleFailure;

/// Calls at one hook, or of one transform without progress, that may be deferred: one that always
/// defers would never end.
const DEFERRALS_MAX: u64 = 64;

/// Serves exchanges of `module` until there will be none any more.
pub(super) fn run(
    module: &Arc<dyn Module>,
    busy: &Arc<Busy>,
    failed_ends: &Arc<AtomicU64>,
    mut begins: mpsc::Receiver<Begin>,
) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let Ok(runtime) = runtime.enable_time().build() else {
        // its exchanges fail
        return;
    };
    let tasks = LocalSet::new();
    runtime.block_on(tasks.run_until(async {
        while let Some(begin) = begins.recv().await {
            let (module, busy) = (Arc::clone(module), Arc::clone(busy));
            spawn_local(serve(module, busy, Arc::clone(failed_ends), begin));
        }
    }));
}

/// Calls the module; it may panic.
fn call<T>(busy: &Busy, call: impl FnOnce() -> T) -> Result<T, ModuleFailure> {
    busy.call(|| catch_unwind(AssertUnwindSafe(call)))
        .map_err(|_| ModuleFailure::Crashed)
}

/// Serves one exchange until its request is over, or it has failed.
async fn serve(
    module: Arc<dyn Module>,
    busy: Arc<Busy>,
    failed_ends: Arc<AtomicU64>,
    mut begin: Begin,
) {
    let host: Rc<dyn Host> = Rc::new(ThreadHost::new(
        begin.worker,
        begin.host,
        begin.memory,
        &failed_ends,
    ));
    let mut exchange = call(&busy, || module.begin(&host));
    while let Some(message) = begin.inbox.recv().await {
        match message {
            Message::Done(at) => {
                if let Ok(exchange) = &mut exchange
                    && call(&busy, || exchange.done(&at)).is_err()
                {
                    failed_ends.fetch_add(1, Ordering::Relaxed);
                }
            }
            Message::Call(hook, head, at, mut reply) => {
                let answered = match &mut exchange {
                    Ok(exchange) => tokio::select! {
                        answered = call_at(exchange, &busy, hook, head, &at) => answered,
                        // the call was given up, and its request with it
                        () = reply.closed() => return,
                    },
                    Err(failure) => Reply {
                        calls: 0,
                        answer: Err(*failure),
                        head,
                        variant: None,
                        transform: None,
                    },
                };
                let has_failed = answered.answer.is_err();
                let _ = reply.send(answered);
                if has_failed {
                    return;
                }
            }
        }
    }
}

/// A head on a thread.
trait ThreadHead {
    /// Calls the exchange at a hook.
    fn call(&mut self, exchange: &mut Box<dyn Exchange>, hook: Hook, at: &Call) -> Answer;

    /// What the module has set since the last time.
    fn take_transform(&mut self) -> Option<SetTransform>;

    /// Whether that changes content.
    fn changes_content(&self) -> bool;

    fn take_variant(&mut self) -> Option<String> {
        None
    }

    fn sent(&self) -> SentHead;
}

impl ThreadHead for RequestHead<'_> {
    fn call(&mut self, exchange: &mut Box<dyn Exchange>, hook: Hook, at: &Call) -> Answer {
        match hook {
            Hook::RequestReceived => exchange.request_received(self, at),
            _ => exchange.request_sent(self, at),
        }
    }

    fn take_transform(&mut self) -> Option<SetTransform> {
        let transform = RequestHead::take_transform(self)?;
        Some((Codings::none(), transform))
    }

    /// Of a request that is not told apart: whether it may be changed was checked here.
    fn changes_content(&self) -> bool {
        false
    }

    fn take_variant(&mut self) -> Option<String> {
        RequestHead::take_variant(self)
    }

    fn sent(&self) -> SentHead {
        SentHead::of_request(self)
    }
}

impl ThreadHead for ResponseHead<'_> {
    fn call(&mut self, exchange: &mut Box<dyn Exchange>, hook: Hook, at: &Call) -> Answer {
        match hook {
            Hook::ResponseReceived => exchange.response_received(self, at),
            _ => exchange.response_sent(self, at),
        }
    }

    fn take_transform(&mut self) -> Option<SetTransform> {
        ResponseHead::take_transform(self)
    }

    fn changes_content(&self) -> bool {
        ResponseHead::changes_content(self)
    }

    fn sent(&self) -> SentHead {
        SentHead::of_response(self)
    }
}

/// Calls an exchange at a hook until it does not defer any more.
async fn call_at(
    exchange: &mut Box<dyn Exchange>,
    busy: &Arc<Busy>,
    hook: Hook,
    head: SentHead,
    at: &Call,
) -> Reply {
    match head {
        SentHead::Request {
            method,
            authority,
            path_and_query,
            keeps_content,
            has_content,
            fields,
            ..
        } => {
            let head = RequestHead::new(&method, &authority, &path_and_query, fields);
            let head = head.keeping_content(keeps_content);
            let mut head = head.with_content(has_content);
            until_answered((exchange, &mut head), busy, hook, at).await
        }
        SentHead::Response {
            status,
            keeps_content,
            fields,
            ..
        } => {
            let mut head = ResponseHead::new(status, fields).keeping_content(keeps_content);
            until_answered((exchange, &mut head), busy, hook, at).await
        }
    }
}

async fn until_answered(
    (exchange, head): (&mut Box<dyn Exchange>, &mut impl ThreadHead),
    busy: &Arc<Busy>,
    hook: Hook,
    at: &Call,
) -> Reply {
    // the first one is counted where the call comes from
    let mut calls = 0;
    for _ in 0..DEFERRALS_MAX {
        let answer = call(busy, || head.call(exchange, hook, at));
        let changes_content = head.changes_content();
        let transform = head.take_transform();
        let is_deferred = matches!(answer, Ok(Answer::Defer));
        if !is_deferred {
            return Reply {
                calls,
                answer,
                head: head.sent(),
                variant: head.take_variant(),
                transform: transform.map(|it| start(busy, changes_content, it)),
            };
        }
        if transform.is_some() {
            // what it wants to see before it decides does not come here
            return failed(calls, ModuleFailure::BadAnswer, head);
        }
        let ready = poll_fn(|cx| match call(busy, || exchange.poll_deferred(cx)) {
            Ok(polled) => polled.map(Ok),
            Err(failure) => Poll::Ready(Err(failure)),
        });
        if let Err(failure) = ready.await {
            return failed(calls, failure, head);
        }
        calls += 1;
    }
    failed(calls, ModuleFailure::BadAnswer, head)
}

fn failed(calls: u64, failure: ModuleFailure, head: &impl ThreadHead) -> Reply {
    Reply {
        calls,
        answer: Err(failure),
        head: head.sent(),
        variant: None,
        transform: None,
    }
}

/// Serves a transform: what it does, and where its pieces go.
fn start(
    busy: &Arc<Busy>,
    changes_content: bool,
    (codings, transform): SetTransform,
) -> (TransformKind, mpsc::Sender<SentPiece>) {
    let (pieces, inbox) = mpsc::channel(MESSAGES_MAX);
    spawn_local(transform_pieces(Arc::clone(busy), transform, inbox));
    let kind = match (changes_content, codings.is_empty()) {
        (false, _) => TransformKind::Inspect,
        (true, true) => TransformKind::Change,
        (true, false) => TransformKind::ChangePlain,
    };
    (kind, pieces)
}

async fn transform_pieces(
    busy: Arc<Busy>,
    mut transform: Box<dyn Transform>,
    mut inbox: mpsc::Receiver<SentPiece>,
) {
    while let Some(mut sent) = inbox.recv().await {
        let mut output = Vec::new();
        let SentPiece {
            input,
            is_last,
            room,
            reply,
        } = &mut sent;
        let called = transform_one(&busy, &mut transform, (input, *is_last), *room, &mut output);
        let (taken, progress) = tokio::select! {
            called = called => called,
            () = reply.closed() => return,
        };
        let is_over = !matches!(progress, PieceProgress::Continue);
        let answered = PieceReply {
            taken,
            output,
            progress,
        };
        let _ = sent.reply.send(answered);
        if is_over {
            return;
        }
    }
}

/// Calls a transform with a piece until it does not defer any more: the bytes that it took, and how
/// far it is.
async fn transform_one(
    busy: &Busy,
    transform: &mut Box<dyn Transform>,
    (input, is_last): (&[u8], bool),
    room: usize,
    output: &mut Vec<u8>,
) -> (usize, PieceProgress) {
    let (mut taken, mut deferrals) = (0, 0);
    while deferrals < DEFERRALS_MAX {
        let put = output.len();
        let room = room - put;
        let mut piece = Piece::new(&input[taken..], is_last, output, room);
        let Ok(progress) = call(busy, || transform.transform(&mut piece)) else {
            return (taken, PieceProgress::Crashed);
        };
        let moved = piece.taken();
        taken += moved;
        deferrals = match moved > 0 || output.len() > put {
            true => 0,
            false => deferrals + 1,
        };
        let progress = match progress {
            Progress::Continue => PieceProgress::Continue,
            Progress::Done => PieceProgress::Done,
            Progress::Fail => PieceProgress::Fail,
            Progress::Unavailable => PieceProgress::Unavailable,
            Progress::Respond(local) => PieceProgress::Respond(local),
            Progress::Defer => {
                let ready = poll_fn(|cx| match call(busy, || transform.poll_deferred(cx)) {
                    Ok(polled) => polled.map(Ok),
                    Err(failure) => Poll::Ready(Err(failure)),
                });
                match ready.await {
                    Ok(()) => continue,
                    Err(_) => return (taken, PieceProgress::Crashed),
                }
            }
        };
        return (taken, progress);
    }
    (taken, PieceProgress::Crashed)
}
