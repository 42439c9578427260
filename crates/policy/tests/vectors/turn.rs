//! One request: what is asked for it, and what its client sees.

use crate::reference_store::{Form, Lines, borrow, is_precondition, range_value, value};
use crate::store::{Key, StoredEntry};
use weir_policy::{
    Covers, Event, Forwarding, Handling, Now, Serving, StoredFacts, Storing, Transaction,
};
use weir_semantics::{ByteRange, ConnectionOptions, Fwd, RequestDirectives};
use weir_vectors::{
    Answer, ClientResponse, Fault, Field, FieldContext, Observation, OriginRequest, Parameters,
    Step,
};

/// One request under way.
pub(crate) struct Turn<'a> {
    pub(crate) step: &'a Step,
    pub(crate) context: FieldContext<'a>,
    pub(crate) key: Key,
    pub(crate) request: Lines,
    /// The target as it is forwarded.
    pub(crate) target: String,
    /// The facts of what was found, as it is stored.
    pub(crate) own: Option<StoredFacts>,
    /// Its directives, if such a rule has some ignored.
    pub(crate) directives_sent: Option<RequestDirectives>,
    pub(crate) now: Now,
    pub(crate) tx: Transaction,
    /// The bytes of a stored part that the origin was asked for.
    pub(crate) asked: Option<ByteRange>,
    pub(crate) observation: Observation,
}

impl Turn<'_> {
    /// The event for what was found.
    pub(crate) fn found<'s>(&self, kept: &'s StoredEntry) -> Event<'s> {
        if kept.content.is_whole() {
            return Event::Found(&kept.facts);
        }
        let (_, text) = self.answer(kept);
        let covers = match text {
            Some(_) => Covers::Wanted,
            None => Covers::Lacking,
        };
        Event::FoundPart(&kept.facts, covers)
    }

    /// The origin gets the request.
    pub(crate) fn ask(
        &mut self,
        method: &str,
        forwarding: Forwarding,
        stored: Option<&StoredEntry>,
    ) {
        let mut fields = self.request.clone();
        fields.push(("Host".to_owned(), self.context.host.to_owned()));
        match stored {
            Some(kept) if forwarding.validate => {
                fields.retain(|line| !is_precondition(&line.0));
                let own = [
                    ("If-None-Match", "etag"),
                    ("If-Modified-Since", "last-modified"),
                ];
                for (name, from) in own {
                    if let Some(value) = value(&kept.lines, from) {
                        fields.push((name.to_owned(), value.to_owned()));
                    }
                }
            }
            Some(kept) if forwarding.complete => {
                fields.retain(|line| !is_precondition(&line.0));
                let tag = value(&kept.lines, "etag").expect("a part has an entity tag");
                fields.push(("If-Range".to_owned(), tag.to_owned()));
                fields.push(("Range".to_owned(), self.range_of_rest(kept)));
            }
            _ => {}
        }
        self.note(method, fields);
    }

    /// The origin gets the request once more, as the client sent it.
    pub(crate) fn ask_as_sent(&mut self) {
        self.asked = None;
        let mut fields = self.request.clone();
        fields.push(("Host".to_owned(), self.context.host.to_owned()));
        let method = &self.step.request.method;
        self.note(method, fields);
    }

    fn note(&mut self, method: &str, mut fields: Lines) {
        let all = fields.clone();
        let borrowed = borrow(&all);
        let options = ConnectionOptions::gather(&borrowed);
        fields.retain(|line| !options.names(&line.0));
        self.observation.requests.push(OriginRequest {
            method: method.to_owned(),
            target: self.target.clone(),
            fields,
        });
    }

    /// What is missing of what the client wants. A driver that finds several gaps fetches each; a
    /// step has one answer, so no vector has that.
    fn range_of_rest(&mut self, kept: &StoredEntry) -> String {
        let wanted = match self.form(kept) {
            Form::Part(range) => range,
            Form::Whole | Form::Bare(_) => ByteRange {
                first: 0,
                last: kept.content.complete_length().saturating_sub(1),
            },
        };
        let missing = kept.content.missing(wanted).expect("something is missing");
        self.asked = Some(missing);
        range_value(missing)
    }

    pub(crate) fn response_lines(&self, answer: &Answer) -> Lines {
        let context = FieldContext {
            at_s: self.step.end_s(),
            ..self.context
        };
        render(&answer.response.fields, context)
    }

    pub(crate) fn relay(&mut self, answer: &Answer, lines: &Lines) {
        let response = &answer.response;
        let is_empty = self.step.request.method == "HEAD" || matches!(response.status, 204 | 304);
        let age = value(lines, "age").and_then(|age| age.parse().ok());
        self.observation.response = ClientResponse {
            status: response.status,
            body: Some(if is_empty {
                String::new()
            } else {
                response.body.clone()
            }),
            age_s: Some(age),
            fields: None,
            cache_status: self.words(),
            cut: answer.fault == Some(Fault::Cut),
        };
    }

    /// The client gets a stored part and what joins it.
    pub(crate) fn relay_joined(&mut self, answer: &Answer, joined: &StoredEntry) {
        let (status, body) = self.answer(joined);
        self.observation.response = ClientResponse {
            status,
            body,
            age_s: None,
            fields: None,
            cache_status: self.words(),
            cut: answer.fault == Some(Fault::Cut),
        };
    }

    pub(crate) fn serve(&mut self, stored: Option<&StoredEntry>, serving: Serving) {
        let Some(kept) = stored else { return };
        let (status, body) = self.answer(kept);
        self.observation.response = ClientResponse {
            status,
            body: Some(body.expect("what is served is there")),
            age_s: Some(Some(serving.age.0)),
            fields: None,
            cache_status: self.words(),
            cut: false,
        };
    }

    pub(crate) fn refuse(&mut self, status: u16) {
        self.observation.response = ClientResponse {
            status,
            cache_status: self.words(),
            ..ClientResponse::default()
        };
    }

    /// The answer that `kept` gives: its status, and its content if every byte of it is there.
    fn answer(&self, kept: &StoredEntry) -> (u16, Option<String>) {
        match self.form(kept) {
            Form::Bare(status) => (status, Some(String::new())),
            Form::Whole => (kept.facts.status, kept.content.whole_text()),
            Form::Part(range) => (206, kept.content.text(range)),
        }
    }

    fn form(&self, kept: &StoredEntry) -> Form {
        let method = self.tx.request().method;
        kept.base().form(method, &self.request, self.now.wall)
    }

    /// The verdict as parameters of Cache-Status (RFC 9211).
    fn words(&self) -> Parameters {
        let verdict = self.tx.verdict();
        let fwd = match verdict.handling {
            Handling::Hit(_) => None,
            Handling::Forward(fwd) | Handling::Collapsed(fwd) => Some(fwd),
            Handling::StaleInstead(_) => Some(Fwd::Stale),
            Handling::Refused(_) | Handling::Tunnel => Some(Fwd::Bypass),
        };
        let mut words = Parameters::default();
        match fwd {
            None => words.add("hit", ""),
            Some(fwd) => {
                words.add("fwd", fwd.as_str());
                if let Some(status) = verdict.fwd_status {
                    words.add("fwd-status", status);
                }
                if verdict.storing == Some(Storing::Stored) {
                    words.add("stored", "");
                }
            }
        }
        if let Some(ttl) = verdict.ttl {
            words.add("ttl", ttl);
        }
        if let Some(detail) = verdict.detail() {
            words.add("detail", detail);
        }
        words
    }
}

/// The lines as they are sent in `context`.
pub(crate) fn render(fields: &[Field], context: FieldContext<'_>) -> Lines {
    fields
        .iter()
        .map(|field| (field.name.clone(), field.value(context)))
        .collect()
}
