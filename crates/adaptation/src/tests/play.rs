//! Plays the proxy's part of the contract: calls a module at its hooks, and feeds it content.

use crate::server::run::{Outcome, Run};
use crate::server::stage::StageError;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::{Builder, LocalOptions};
use tokio::time::timeout;
use weir_extend::{
    Call, Detached, Exchange, Fields, Hook, ListenerMode, LocalResponse, Module, PIECE_BYTES_MAX,
    RequestHead, ResponseHead,
};

/// Longer than anything takes on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// What became of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Played {
    /// It goes on: its target or its status, its fields, its content.
    Continued(String, Vec<(String, String)>, Vec<u8>),
    /// The module answers: status, fields, content.
    Responded(u16, Vec<(String, String)>, Vec<u8>),
    /// The module failed; `true`: after content had come out of it.
    Failed(bool),
}

impl Played {
    /// The content of a message that goes on.
    #[track_caller]
    pub(super) fn content(&self) -> &[u8] {
        match self {
            Self::Continued(_, _, content) | Self::Responded(_, _, content) => content,
            Self::Failed(_) => panic!("the module failed"),
        }
    }

    /// The first line or the status.
    #[track_caller]
    pub(super) fn start(&self) -> String {
        match self {
            Self::Continued(start, ..) => start.clone(),
            Self::Responded(status, ..) => format!("responded {status}"),
            Self::Failed(_) => panic!("the module failed"),
        }
    }

    /// The value of a field.
    #[track_caller]
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let (Self::Continued(_, fields, _) | Self::Responded(_, fields, _)) = self else {
            panic!("the module failed");
        };
        let mut fields = fields.iter();
        fields
            .find(|field| field.0.eq_ignore_ascii_case(name))
            .map(|field| field.1.as_str())
    }
}

/// A message to play.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) request_fields: Vec<(&'static str, String)>,
    /// Status and fields, if it is a response.
    pub(super) response: Option<(u16, Vec<(&'static str, String)>)>,
    pub(super) content: Vec<u8>,
    /// Bytes that come at once.
    pub(super) piece: usize,
}

impl Script {
    /// A GET of a response with this content and its length.
    pub(super) fn response(content: &[u8]) -> Self {
        let length = content.len().to_string();
        let fields = vec![
            ("Content-Type", "text/html".to_owned()),
            ("ETag", "\"v1\"".to_owned()),
            ("Content-Length", length),
        ];
        Self {
            method: "GET",
            path: "/page.html".to_owned(),
            request_fields: vec![("Accept", "*/*".to_owned())],
            response: Some((200, fields)),
            content: content.to_vec(),
            piece: 10_000,
        }
    }

    /// A POST of this content.
    pub(super) fn post(content: &[u8]) -> Self {
        Self {
            method: "POST",
            path: "/form".to_owned(),
            request_fields: vec![("Content-Length", content.len().to_string())],
            response: None,
            content: content.to_vec(),
            piece: 10_000,
        }
    }

    /// A GET.
    pub(super) fn get(path: &str) -> Self {
        Self {
            method: "GET",
            path: path.to_owned(),
            request_fields: Vec::new(),
            response: None,
            content: Vec::new(),
            piece: 1,
        }
    }

    /// The same without a length in front.
    pub(super) fn without_length(mut self) -> Self {
        let is_length = |field: &(&str, String)| field.0 == "Content-Length";
        self.request_fields.retain(|field| !is_length(field));
        if let Some((_, fields)) = &mut self.response {
            fields.retain(|field| !is_length(field));
        }
        self
    }

    /// The same with a field of the response, or of the request if it is one.
    pub(super) fn with(mut self, name: &'static str, value: &str) -> Self {
        let fields = match &mut self.response {
            Some((_, fields)) => fields,
            None => &mut self.request_fields,
        };
        fields.push((name, value.to_owned()));
        self
    }

    fn request(&self) -> RequestHead<'static> {
        let has_content = self.response.is_none() && !self.content.is_empty();
        let fields = fields(&self.request_fields);
        let head = RequestHead::new(self.method, "a.example", &self.path, fields);
        head.with_content(has_content).into_owned()
    }
}

fn fields(lines: &[(&'static str, String)]) -> Fields {
    Fields::received(lines.iter().map(|(name, value)| (*name, value.as_bytes())))
}

fn lines<'f>(fields: impl Iterator<Item = (&'f str, &'f [u8])>) -> Vec<(String, String)> {
    fields
        .map(|(name, value)| (name.to_owned(), String::from_utf8_lossy(value).into_owned()))
        .collect()
}

/// Runs a future on a runtime as that of a worker.
pub(super) fn on_a_worker<T>(future: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build_local(LocalOptions::default())
        .expect("a runtime");
    let done = runtime.block_on(async { timeout(PATIENCE, future).await });
    done.expect("it takes too long")
}

/// Plays one message with a module of its own exchange.
pub(super) fn play(module: &Arc<dyn Module>, script: &Script) -> Played {
    on_a_worker(played(module, script))
}

/// As [`play`], on the runtime of the caller.
pub(super) async fn played(module: &Arc<dyn Module>, script: &Script) -> Played {
    let exchange = module.begin(&Detached::host());
    let call = Call {
        client: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        mode: ListenerMode::Forward,
        now_ms: 0,
    };
    let Some((status, response)) = &script.response else {
        let hooks = vec![Hook::RequestReceived];
        let run = Run::of_request(exchange, (call, 256 * 1024), hooks, script.request());
        return finish(run, &script.content, script.piece).await;
    };
    let exchange = sent(exchange, &call, script.request());
    let request = script.request();
    let head = ResponseHead::new(*status, fields(response)).into_owned();
    let hooks = vec![Hook::ResponseReceived];
    let run = Run::of_response(exchange, (call, 256 * 1024), hooks, request, head);
    finish(run, &script.content, script.piece).await
}

/// The request was sent to the next hop.
fn sent(
    mut exchange: Box<dyn Exchange>,
    call: &Call,
    mut request: RequestHead<'static>,
) -> Box<dyn Exchange> {
    let answer = exchange.request_sent(&mut request, call);
    assert_eq!(answer, weir_extend::Answer::Continue);
    exchange
}

async fn finish(mut run: Run, content: &[u8], piece: usize) -> Played {
    let mut at = 0;
    let mut is_given = false;
    // as much as there is room for, a piece at a time
    let mut feed = |run: &mut Run| {
        if !run.is_transformed() || is_given {
            return false;
        }
        let next = &content[at..content.len().min(at + piece)];
        let is_last = at + next.len() == content.len();
        let count = run.give(next, is_last);
        at += count;
        is_given = is_last && count == next.len();
        count > 0 || is_given
    };
    let outcome = poll_fn(|cx| {
        loop {
            if let Poll::Ready(outcome) = run.poll_head(cx) {
                return Poll::Ready(outcome);
            }
            if !feed(&mut run) {
                return Poll::Pending;
            }
        }
    });
    match outcome.await {
        Outcome::Failed => return Played::Failed(false),
        Outcome::Respond(response) => return responded(&response),
        Outcome::Unchanged | Outcome::Changed => {}
    }
    let mut out = Vec::new();
    if run.is_transformed() {
        loop {
            let mut piece = Vec::new();
            let polled = poll_fn(|cx| {
                loop {
                    if let Poll::Ready(polled) = run.poll_content(cx, &mut piece) {
                        return Poll::Ready(polled);
                    }
                    if !feed(&mut run) {
                        return Poll::Pending;
                    }
                }
            });
            match polled.await {
                Ok(is_end) => {
                    assert!(piece.len() <= PIECE_BYTES_MAX);
                    out.append(&mut piece);
                    if is_end {
                        break;
                    }
                }
                Err(StageError::Failed | StageError::Respond(_)) => {
                    return Played::Failed(!out.is_empty());
                }
            }
        }
    } else {
        out.extend_from_slice(content);
    }
    match &run.response {
        Some(head) => Played::Continued(head.status().to_string(), lines(head.fields.iter()), out),
        None => {
            let head = &run.request;
            let target = format!("{}{}", head.authority(), head.path_and_query());
            Played::Continued(target, lines(head.fields.iter()), out)
        }
    }
}

fn responded(response: &LocalResponse) -> Played {
    let fields = lines(response.fields.iter());
    Played::Responded(response.status(), fields, response.content().to_vec())
}

/// A host, to call a module with.
pub(super) fn host() -> Rc<dyn weir_extend::Host> {
    Detached::host()
}
