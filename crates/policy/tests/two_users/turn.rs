//! One request on its way through the cache, and what is seen of the response.

use crate::origin::{LENGTH, OriginExchange, Question, Secrets};
use crate::reference_store::{Form, Lines, borrow, is_precondition, range_value, value};
use crate::sequence::{Role, User, Verb};
use crate::stored::{StoredResponse, end_to_end};
use weir_policy::{Covers, Event, Forwarding, Now, Transaction};
use weir_semantics::{ByteRange, Known, Method, RequestFacts, identify};

/// What a user sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Observation {
    pub(crate) exchange: usize,
    pub(crate) role: Role,
    pub(crate) user: User,
    pub(crate) status: u16,
    pub(crate) lines: Lines,
    pub(crate) content: Vec<u8>,
    /// Answers of the origin before the request came.
    pub(crate) told: usize,
}

/// One request.
pub(crate) struct Turn<'a> {
    pub(crate) question: Question<'a>,
    /// Its fields as received.
    pub(crate) lines: Lines,
    pub(crate) now: Now,
    pub(crate) tx: Transaction,
    /// What the cache is about to ask.
    pub(crate) pending: Option<Pending>,
    /// The bytes of a stored part that the origin was asked for.
    pub(crate) asked: Option<ByteRange>,
    /// Answers of the origin before it came.
    pub(crate) told: usize,
    pub(crate) seen: Option<Observation>,
}

/// A question to the origin.
#[derive(Clone)]
pub(crate) struct Pending {
    pub(crate) forwarding: Forwarding,
    pub(crate) stored: Option<StoredResponse>,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(question: Question<'a>, secrets: Secrets, now: Now) -> Self {
        let request = question.request;
        let secret = secrets.of(request.user);
        let mut lines = vec![("Host".to_owned(), "a.test".to_owned())];
        lines.extend(request.asks.iter().map(|ask| {
            let (name, value) = ask.line(secret);
            (name.to_owned(), value)
        }));
        let method = Method::parse(request.method.as_str());
        let facts = RequestFacts::gather(method, "/", &borrow(&lines));
        Self {
            question,
            lines,
            now,
            tx: Transaction::new(facts, now),
            pending: None,
            asked: None,
            told: 0,
            seen: None,
        }
    }

    /// The event for what was found.
    pub(crate) fn found<'s>(&self, stored: &'s StoredResponse) -> Event<'s> {
        if stored.is_whole() {
            Event::Found(&stored.facts)
        } else if self.content_of(stored).is_some() {
            Event::FoundPart(&stored.facts, Covers::Wanted)
        } else {
            Event::FoundPart(&stored.facts, Covers::Lacking)
        }
    }

    /// Method and fields as they go to the origin.
    pub(crate) fn outgoing(&mut self, pending: &Pending) -> (Verb, Lines) {
        let mut lines = end_to_end(&self.lines);
        let (method, is_background) = match self.question.role {
            Role::Background => (Verb::Get, true),
            Role::Client | Role::Follower => (self.question.request.method, false),
        };
        let Forwarding { validate, complete } = pending.forwarding;
        if validate || complete || is_background {
            lines.retain(|line| !is_precondition(&line.0));
        }
        self.asked = None;
        let Some(stored) = &pending.stored else {
            return (method, lines);
        };
        let tag = value(&stored.lines, "etag").unwrap_or_default().to_owned();
        if validate {
            lines.push(("If-None-Match".to_owned(), tag));
        } else if complete {
            lines.push(("If-Range".to_owned(), tag));
            lines.push(("Range".to_owned(), self.missing(stored)));
        }
        (method, lines)
    }

    /// What is missing of what the client wants.
    fn missing(&mut self, stored: &StoredResponse) -> String {
        let (first, last) = match self.form(stored) {
            Form::Part(range) => (place(range.first), place(range.last)),
            _ => (0, LENGTH - 1),
        };
        let mut gap = (first..=last).filter(|at| stored.content[*at].is_none());
        let from = gap.next().expect("something is missing");
        let to = gap.next_back().unwrap_or(from);
        let missing = ByteRange {
            first: from as u64,
            last: to as u64,
        };
        self.asked = Some(missing);
        range_value(missing)
    }

    /// The origin's answer goes to the client.
    pub(crate) fn relay(&mut self, told: &OriginExchange) {
        self.see(told.status, end_to_end(&told.lines), told.content.clone());
    }

    /// A stored response goes to the client, in the form it asked for; as much of the content as is
    /// there.
    pub(crate) fn serve(&mut self, stored: &StoredResponse) {
        let keep = |keeps: fn(Option<Known>, &str) -> bool| {
            let mut lines = stored.lines.clone();
            lines.retain(|line| keeps(identify(&line.0), &line.0));
            lines
        };
        let content = self.content_of(stored).unwrap_or_default();
        let status = stored.facts.status;
        match self.form(stored) {
            Form::Bare(304) => self.see(304, keep(keeps_in_304), content),
            Form::Bare(416) => self.see(416, keep(keeps_bare), content),
            Form::Whole | Form::Bare(_) => self.see(status, stored.lines.clone(), content),
            Form::Part(_) => self.see(206, stored.lines.clone(), content),
        }
    }

    pub(crate) fn refuse(&mut self, status: u16) {
        self.see(status, Lines::new(), Vec::new());
    }

    fn see(&mut self, status: u16, lines: Lines, content: Vec<u8>) {
        self.seen = Some(Observation {
            exchange: self.question.index,
            role: self.question.role,
            user: self.question.request.user,
            status,
            lines,
            content,
            told: self.told,
        });
    }

    /// The content that `stored` gives, if every byte of it is there.
    pub(crate) fn content_of(&self, stored: &StoredResponse) -> Option<Vec<u8>> {
        match self.form(stored) {
            Form::Bare(_) => Some(Vec::new()),
            Form::Whole => stored.content.iter().copied().collect(),
            Form::Part(range) => {
                let range = place(range.first)..=place(range.last);
                stored.content[range].iter().copied().collect()
            }
        }
    }

    fn form(&self, stored: &StoredResponse) -> Form {
        let method = self.tx.request().method;
        stored.base().form(method, &self.lines, self.now.wall)
    }
}

/// RFC 9110 §15.4.5: no metadata of content that is not sent.
fn keeps_in_304(known: Option<Known>, name: &str) -> bool {
    !name.to_ascii_lowercase().starts_with("content-") || known == Some(Known::ContentLocation)
}

/// What is no representation says when it was made.
fn keeps_bare(known: Option<Known>, _: &str) -> bool {
    matches!(known, Some(Known::Date | Known::Via))
}

fn place(at: u64) -> usize {
    usize::try_from(at).expect("few bytes")
}
