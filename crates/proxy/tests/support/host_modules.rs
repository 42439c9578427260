//! A module that does with its host what a request or its options tell it to.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use weir_extend::{
    Answer, Call, Exchange, FetchError, Fields, Hook, Hooks, Host, LoadError, LocalResponse,
    LogLevel, Module, ModuleKind, OptionValue, Options, OwnRequest, OwnResponse, Pending,
    RequestHead,
};
use weir_proxy::config::{Module as ModuleTable, ModuleOption};

/// A module called `name` that answers requests with a field `X-Do`: `fetch URL` with the result of
/// a request of its own (`X-Method`, `X-Timeout-Ms`, `X-Max`, `X-Content-Bytes` change that),
/// `abandon URL` at once, having begun one, `wall`, `worker`, `log TEXT`, `spawn-panic`;
/// and of stored responses, for listeners of the mode `X-Mode`, `query URL`, `store URL`, `validate
/// URL`, `expire SECONDS URL`, `delete URL`, `read URL` (at most `X-Max` bytes), `read-parts URL`,
/// `inject URL` and `inject-pieces URL` (fields from those that begin with `X-In-`,
/// `X-Content-Bytes` of content).
///
/// Each `period_ms` it does `tick`: `log`, `panic`, `panic-later`, `never` (what it returns never
/// ends), `fetch URL`.
pub(crate) fn asking(name: &str, options: &[(&str, &str)]) -> ModuleTable {
    let options = options.iter();
    let options =
        options.map(|(key, value)| ((*key).to_owned(), ModuleOption::Text((*value).to_owned())));
    ModuleTable {
        kind: "host".to_owned(),
        options: options.collect(),
        ..super::scripted(name, &[])
    }
}

pub(crate) struct HostKind;

impl ModuleKind for HostKind {
    fn name(&self) -> &'static str {
        "host"
    }

    fn load(&self, mut options: Options) -> Result<Arc<dyn Module>, LoadError> {
        let mut text = |name| match options.take(name) {
            Some(OptionValue::Text(text)) => Some(text),
            _ => None,
        };
        Ok(Arc::new(HostModule {
            period: text("period_ms").map(|ms| Duration::from_millis(ms.parse().expect("a time"))),
            tick: text("tick").unwrap_or_default(),
        }))
    }
}

struct HostModule {
    period: Option<Duration>,
    tick: String,
}

impl Module for HostModule {
    fn hooks(&self) -> Hooks {
        [Hook::RequestReceived].into_iter().collect()
    }

    fn period(&self) -> Option<Duration> {
        self.period
    }

    fn tick(&self, host: &Rc<dyn Host>) -> Option<Pending<()>> {
        host.log(LogLevel::Info, "tick");
        match self.tick.split_once(' ') {
            Some(("fetch", url)) => {
                let fetching = host.fetch(OwnRequest::get(url));
                Some(Box::pin(async move { drop(fetching.await) }))
            }
            _ if self.tick == "panic" => panic!("as the test told it to"),
            _ if self.tick == "panic-later" => {
                Some(Box::pin(async { panic!("as the test told it to") }))
            }
            _ if self.tick == "never" => Some(Box::pin(std::future::pending())),
            _ => None,
        }
    }

    fn begin(&self, host: &Rc<dyn Host>) -> Box<dyn Exchange> {
        Box::new(Asker {
            host: Rc::clone(host),
            waits: None,
            said: Rc::default(),
        })
    }
}

struct Asker {
    host: Rc<dyn Host>,
    waits: Option<Pending<()>>,
    said: Rc<RefCell<Option<String>>>,
}

impl Asker {
    fn own_request(url: &str, fields: &Fields) -> OwnRequest {
        let field = |name: &str| fields.get(name).map(text);
        let number = |name: &str| field(name).map(|value| value.parse().expect("a number"));
        let mut request = OwnRequest::get(url);
        if let Some(method) = field("x-method") {
            request.method = method;
        }
        if let Some(ms) = number("x-timeout-ms") {
            request.timeout = Duration::from_millis(ms);
        }
        if let Some(most) = number("x-max") {
            request.content_bytes_max = usize::try_from(most).expect("small");
        }
        if let Some(length) = number("x-content-bytes") {
            request.content = super::pattern(usize::try_from(length).expect("small"));
        }
        request
    }

    fn ask(&mut self, what: &str, fields: &Fields) -> Answer {
        let (verb, rest) = what.split_once(' ').unwrap_or((what, ""));
        let said = Rc::clone(&self.said);
        match verb {
            "fetch" => {
                let fetching = self.host.fetch(Self::own_request(rest, fields));
                self.waits = Some(Box::pin(async move {
                    *said.borrow_mut() = Some(describe(fetching.await));
                }));
                return Answer::Defer;
            }
            "abandon" => {
                let fetching = self.host.fetch(Self::own_request(rest, fields));
                // long enough to be begun
                self.waits = Some(Box::pin(async move {
                    let begun = tokio::time::timeout(Duration::from_millis(300), fetching);
                    *said.borrow_mut() = Some(format!("{}", begun.await.is_err()));
                }));
                return Answer::Defer;
            }
            "query" | "store" | "validate" | "expire" | "delete" | "read" | "read-parts"
            | "inject" | "inject-pieces" => {
                let asked = super::stored_calls::ask(&self.host, verb, rest, fields);
                self.waits = Some(Box::pin(async move {
                    *said.borrow_mut() = Some(asked.await);
                }));
                return Answer::Defer;
            }
            "spawn-panic" => {
                let is_spawned = self
                    .host
                    .spawn(Box::pin(async { panic!("as the test told it to") }));
                self.say(is_spawned.to_string());
            }
            "wall" => self.say(self.host.wall_ms().to_string()),
            "worker" => self.say(self.host.worker().to_string()),
            "log" => {
                self.host.log(LogLevel::Warning, rest);
                self.say(String::new());
            }
            _ => panic!("`{what}` is nothing to do"),
        }
        self.answer()
    }

    fn say(&self, text: String) {
        *self.said.borrow_mut() = Some(text);
    }

    fn answer(&mut self) -> Answer {
        match self.said.borrow_mut().take() {
            Some(text) => Answer::Respond(LocalResponse::new(200, text).expect("a response")),
            None => Answer::Continue,
        }
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn describe(result: Result<OwnResponse, FetchError>) -> String {
    match result {
        Ok(response) => {
            let field = response.fields.get("x-answer").map(text);
            let field = field.unwrap_or_default();
            let content = response.content;
            match content.len() {
                ..100 => format!("{} {field} {}", response.status, text(&content)),
                length => format!("{} {field} {length} bytes", response.status),
            }
        }
        Err(error) => format!("{error:?}"),
    }
}

impl Exchange for Asker {
    fn request_received(&mut self, head: &mut RequestHead<'_>, _call: &Call) -> Answer {
        if self.said.borrow().is_some() {
            return self.answer();
        }
        match head.fields.get("x-do").map(text) {
            Some(what) => self.ask(&what, &head.fields),
            None => Answer::Continue,
        }
    }

    fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.waits {
            Some(waits) => waits.as_mut().poll(cx),
            None => Poll::Ready(()),
        }
    }
}
