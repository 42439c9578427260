//! One request that needs more than a look-up: forwarded, tunnelled, or answered with a large
//! response.
//!
//! An exchange owns the bytes of its request head and parses them again where a field is needed:
//! that costs a tenth of a microsecond, and keeps every borrow inside one synchronous function.

use crate::cache::chosen::Chosen;
use crate::config::Mode;
use crate::exchange::upload::UploadEnd;
use crate::fetch::flights::Leading;
use crate::fetch::gap::Gap;
use crate::log::account::Account;
use crate::log::record::{Moments, Notes};
use crate::log::report::{self};
use crate::request::answer::Answer;
use crate::request::judge::Request;
use crate::send::heads::{Persistence, ServedForm};
use crate::worker::core::Worker;
use crate::worker::settings::Settings;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use weir_policy::fetch::ReadAhead;
use weir_policy::{Digest, Event, Forwarding, Missing, Serving, StoredFacts, Transaction};
use weir_semantics::{FieldLine, Form, HostName, Method, Timestamp};
use weir_store::{Expected, Known, StoredResponse};
use weir_wire::{BodyLength, LineBuffer, Progress, RequestHead, Version, parse_request};

/// What is to be done for a request.
#[derive(Debug)]
pub(crate) enum Plan {
    /// Send a stored response; validate it in the background if there is a `refresh`.
    Serve {
        /// The response.
        response: Arc<StoredResponse>,
        /// How.
        serving: Serving,
        /// RFC 5861 §3: what the answer may bring into the store.
        refresh: Option<Expected>,
    },
    /// Ask the next hop.
    Forward {
        /// How.
        forwarding: Forwarding,
        /// The stale response that is validated, or served if the next hop fails.
        stored: Option<Chosen>,
    },
    /// Look on disk: memory has none, for this reason.
    DiskLookup(Missing),
    /// Open a tunnel (RFC 9110 §9.3.6).
    Connect,
    /// Answer by ourselves.
    Answer(Answer),
}

/// Where the canonical path stands.
#[derive(Clone, Debug)]
enum PathAt {
    /// In the head as received.
    Head(Range<usize>),
    /// Not in the head: an empty path that means `/` or `*`.
    Fixed(&'static str),
}

impl PathAt {
    fn find(head: &[u8], path: &str) -> Self {
        let start = (path.as_ptr() as usize).wrapping_sub(head.as_ptr() as usize);
        match head.get(start..start.wrapping_add(path.len())) {
            Some(bytes) if bytes == path.as_bytes() => Self::Head(start..start + path.len()),
            _ if path == "*" => Self::Fixed("*"),
            _ => Self::Fixed("/"),
        }
    }
}

/// A request and what is known of it.
pub(crate) struct Exchange {
    /// The head as received, empty lines in front included.
    pub(crate) head: Box<[u8]>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) tx: Transaction,
    pub(crate) plan: Plan,
    pub(crate) key: Digest,
    pub(crate) account: Account,
    pub(crate) mode: Mode,
    pub(crate) method: Method,
    pub(crate) form: Form,
    path: PathAt,
    pub(crate) host: HostName,
    pub(crate) port: u16,
    pub(crate) body: BodyLength,
    pub(crate) persistence: Persistence,
    pub(crate) upgrade: bool,
    /// What became of the content once it was begun to be sent on.
    pub(crate) uploaded: Option<UploadEnd>,
    /// No client waits for it: a validation in the background, or a fetch for readers of what is
    /// arriving.
    pub(crate) background: bool,
    /// What is missing of a stored part, and asked for.
    pub(crate) gap: Option<Gap>,
    /// It asks for others too.
    pub(crate) leading: Option<Leading>,
    /// The response, before it comes: a purge from here on is one of it too.
    pub(crate) expected: Option<Expected>,
    /// What the disk has of other variants.
    pub(crate) known: Option<Known>,
    /// `Content-Type` of the response, if it is logged.
    pub(super) content_type: Box<[u8]>,
    /// What a recorder wants to know.
    pub(crate) notes: Option<Box<Notes>>,
}

impl Exchange {
    pub(crate) fn new(
        head: &[u8],
        request: &Request<'_>,
        settings: Arc<Settings>,
        tx: Transaction,
        plan: Plan,
        key: Digest,
        account: Account,
    ) -> Self {
        Self {
            head: head.into(),
            path: PathAt::find(head, request.target.path_and_query),
            settings,
            tx,
            plan,
            key,
            account,
            mode: request.mode,
            method: request.method,
            form: request.form,
            host: request.target.host,
            port: request.target.port,
            body: request.body,
            persistence: Persistence {
                keep_alive: request.keep_alive,
                http11: request.version == Version::Http11,
            },
            upgrade: request.upgrade,
            uploaded: None,
            background: false,
            gap: None,
            leading: None,
            expected: None,
            known: None,
            content_type: Box::default(),
            notes: None,
        }
    }

    /// The same request again, for the store alone.
    pub(crate) fn in_background(&self, tx: Transaction, plan: Plan, started: Instant) -> Self {
        Self {
            head: self.head.clone(),
            path: self.path.clone(),
            settings: Arc::clone(&self.settings),
            tx,
            plan,
            account: Account::new(started, 0, false),
            method: Method::Get,
            body: BodyLength::None,
            upgrade: false,
            background: true,
            gap: None,
            leading: None,
            expected: None,
            known: None,
            content_type: Box::default(),
            notes: None,
            ..*self
        }
    }

    /// The head of the response is made.
    pub(crate) fn responds(&mut self, head: &[u8]) {
        if self.account.timed {
            self.content_type = report::content_type(head).into();
        }
        self.note(|notes| notes.response(head));
    }

    /// Enters something for the recorder, if there is one.
    pub(crate) fn note(&mut self, enter: impl FnOnce(&mut Notes)) {
        if let Some(notes) = &mut self.notes {
            enter(notes);
        }
    }

    /// Nobody asks when content leaves, unless there is a recorder.
    pub(crate) fn moments(&self) -> Moments {
        Moments::new(self.notes.is_some())
    }

    /// Whether it fills a gap of a response under construction.
    pub(crate) fn fills_gap(&self) -> bool {
        self.gap.as_ref().is_some_and(|gap| gap.into.is_some())
    }

    /// Whether nobody waits for what it brings: a validation in the background.
    pub(crate) fn is_for_store_alone(&self) -> bool {
        self.background && !self.fills_gap()
    }

    /// How far a fetch for it may run ahead.
    pub(crate) fn read_ahead(&self) -> ReadAhead {
        self.settings
            .read_ahead_for(self.mode, self.host.as_str(), self.path_and_query())
    }

    /// In what form `response` answers it.
    pub(crate) fn form_of(&self, response: &StoredResponse, now: Timestamp) -> ServedForm {
        let facts = *self.tx.request();
        self.with_fields(|fields| ServedForm::of(&facts, fields, response, now))
            .unwrap_or(ServedForm::Whole)
    }

    /// What was chosen is held, with what the answer may bring into the store: it is expected from
    /// the choice on.
    pub(crate) fn hold(&mut self, chosen: Option<Chosen>) -> Option<Arc<StoredResponse>> {
        let (response, expected) = chosen.map(|it| (it.response, it.expected)).unzip();
        self.expected = expected;
        response
    }

    /// The next hop is about to be asked, about a stored response if one was chosen; `false` if
    /// that was forgotten while the request waited. Then it is to be asked as if nothing had been
    /// found.
    pub(crate) fn expect(&mut self, worker: &Worker) -> bool {
        let is_current = self.expected.as_mut().is_none_or(Expected::renew);
        let store = &worker.shared.store;
        // a HEAD stores nothing, but its 200 may update what is stored
        let may_store = self.tx.may_store() || self.tx.may_update(200);
        let held = self.expected.take().filter(|_| is_current);
        let expected = held.or_else(|| may_store.then(|| store.expect(self.key)));
        self.expected = expected.map(|expected| {
            let expected = expected.named(|| self.target_uri());
            match &self.known {
                Some(known) => known.tell(expected),
                None => expected,
            }
        });
        is_current
    }

    /// What was chosen for it was forgotten since: how it is asked for as if nothing had been
    /// found.
    pub(crate) fn lose(&mut self, worker: &Worker) -> Forwarding {
        self.gap = None;
        let _ = self.tx.lost(worker.now());
        Forwarding {
            validate: false,
            complete: false,
        }
    }

    /// Whether what was chosen for it was forgotten since.
    pub(crate) fn is_outdated(&self) -> bool {
        self.expected.as_ref().is_some_and(Expected::is_outdated)
    }

    /// The answer is not for others: those who wait for it ask for themselves. So do those who come
    /// for a while, if that is to be `remembered`.
    pub(crate) fn go_alone(&mut self, worker: &Worker, remembered: bool) {
        let Some(leading) = self.leading.take() else {
            return;
        };
        leading.alone();
        if remembered {
            let now = worker.now();
            let ms = self.settings.config.fetch.uncollapsible_for.as_millis();
            let until = now.tick.plus_ms(ms);
            worker.shared.flights.mark_alone(now, self.key, until);
        }
    }

    /// What was stored is freshened to `stored`, or dropped: those who wait look again, if it may
    /// be for them.
    pub(crate) fn freshened(&mut self, worker: &Worker, stored: Option<&StoredFacts>) {
        if !stored.is_some_and(|facts| facts.answers_others(worker.now())) {
            self.go_alone(worker, true);
        } else if let Some(leading) = self.leading.take() {
            leading.stored();
        }
    }

    /// Calls `use_it` with the parsed head. It was parsed before, so it parses again.
    pub(crate) fn with_head<T>(&self, use_it: impl FnOnce(&RequestHead<'_, '_>) -> T) -> Option<T> {
        let mut lines = LineBuffer::new();
        match parse_request(&self.head, &self.settings.heads, &mut lines) {
            Ok(Progress::Complete { head, .. }) => Some(use_it(&head)),
            _ => None,
        }
    }

    /// Calls `use_it` with the field lines of the request.
    pub(crate) fn with_fields<T>(&self, use_it: impl FnOnce(&[FieldLine<'_>]) -> T) -> Option<T> {
        self.with_head(|head| use_it(head.fields))
    }

    /// Tells the transaction what happened, where nothing is to be done about it.
    pub(crate) fn tell(&mut self, worker: &Worker, event: Event<'_>) {
        let rules = &self.settings.rules;
        let _ = self.tx.handle(worker.now(), rules, event);
    }

    /// Path and query of the canonical target, or `*`.
    pub(crate) fn path_and_query(&self) -> &str {
        match &self.path {
            PathAt::Head(range) => self
                .head
                .get(range.clone())
                .and_then(|bytes| std::str::from_utf8(bytes).ok())
                .unwrap_or("/"),
            PathAt::Fixed(path) => path,
        }
    }

    /// The canonical target as a URI.
    fn target_uri(&self) -> String {
        let (host, path) = (self.host.as_str(), self.path_and_query());
        match self.port {
            80 => format!("http://{host}{path}"),
            port => format!("http://{host}:{port}{path}"),
        }
    }

    /// Whether content of the request is still to be read from the client.
    pub(crate) fn has_content(&self) -> bool {
        !matches!(self.body, BodyLength::None | BodyLength::Exact(0))
    }
}
