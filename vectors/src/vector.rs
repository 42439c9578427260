//! A vector as a runner uses it: everything that was left out is filled in.

use crate::cache_status::Pattern;
use crate::field::Field;
use crate::rule::RuleTable;
use serde::Deserialize;
use std::fmt;

/// A conversation in virtual time.
#[derive(Clone, Debug)]
pub struct Vector {
    /// Unique name in kebab-case.
    pub id: String,
    /// The section that says so.
    pub spec: String,
    /// How binding it is.
    pub kind: Kind,
    /// One sentence.
    pub why: String,
    /// The storing rules it is about.
    pub profile: Profile,
    /// The rules of the operator that it is run under, in their order.
    pub rules: Vec<RuleTable>,
    /// What a runner must have to run it.
    pub needs: Vec<Need>,
    /// Requests in order; at least one.
    pub steps: Vec<Step>,
    /// File and line, for messages.
    pub place: String,
}

/// How binding a vector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The RFC demands it.
    Must,
    /// The RFC allows it and a good cache does it.
    Optimal,
    /// Worth knowing; either way is right.
    Observe,
}

/// The storing rules in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Profile {
    /// RFC 9111.
    #[default]
    #[serde(rename = "rfc9111")]
    Rfc9111,
    /// RFC 9111 narrowed to the caches of 1998.
    #[serde(rename = "http-1998")]
    Http1998,
}

/// What a vector needs that not every runner has, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// What.
    pub word: Word,
    /// Why, in a few words.
    pub reason: String,
}

/// The things that can be needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A message on a connection: the rule is the driver's, a decision alone does not show it.
    Live,
    /// Several hosts behind one listener.
    Hosts,
    /// What messages have beyond the columns of a trace.
    Heads,
    /// Rules of the operator.
    Rules,
    /// A cache on the origin's side, which reads `CDN-Cache-Control` (RFC 9213).
    Gateway,
}

/// The runners of vectors here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// Decisions alone.
    Policy,
    /// The live proxy as a gateway.
    Gateway,
    /// The live proxy as a forward proxy.
    Forward,
    /// The simulator, of the rows of a trace.
    Simulator,
}

impl Runner {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Policy, Self::Gateway, Self::Forward, Self::Simulator];

    /// What it has.
    const fn offers(self) -> &'static [Word] {
        match self {
            Self::Policy => &[Word::Hosts, Word::Heads, Word::Rules, Word::Gateway],
            Self::Gateway => &[
                Word::Live,
                Word::Hosts,
                Word::Heads,
                Word::Rules,
                Word::Gateway,
            ],
            Self::Forward => &[Word::Live, Word::Heads, Word::Rules],
            Self::Simulator => &[Word::Hosts],
        }
    }
}

impl Vector {
    /// The first need that `runner` cannot fill; `None` if it can run the vector.
    #[must_use]
    pub fn unmet(&self, runner: Runner) -> Option<&Need> {
        self.needs
            .iter()
            .find(|need| !runner.offers().contains(&need.word))
    }
}

/// One request and what must come of it.
#[derive(Clone, Debug)]
pub struct Step {
    /// Place in the vector, from 1.
    pub number: usize,
    /// Seconds since the vector's start.
    pub at_s: u32,
    /// What the client sends.
    pub request: Request,
    /// Whether the origin is asked, and what it answers.
    pub origin: Origin,
    /// What the client must see.
    pub client: ExpectedResponse,
    /// Line in the file.
    pub line: usize,
}

impl Step {
    /// When it is over: the origin may take its time. Seconds since the vector's start.
    #[must_use]
    pub fn end_s(&self) -> u32 {
        match &self.origin {
            Origin::None => self.at_s,
            Origin::Asked(answer) => self.sent_s() + answer.takes_s,
        }
    }

    /// When the origin is asked, if it is: the request may have to wait for a connection to it.
    /// Seconds since the vector's start.
    #[must_use]
    pub fn sent_s(&self) -> u32 {
        self.at_s + self.waits_s()
    }

    /// Seconds that the request waits for a connection to the origin.
    #[must_use]
    pub const fn waits_s(&self) -> u32 {
        match &self.origin {
            Origin::None => 0,
            Origin::Asked(answer) => answer.waits_s,
        }
    }
}

/// A client's request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The host, if it is not the usual one.
    pub host: Option<String>,
    /// Field lines beside Host and the framing.
    pub fields: Vec<Field>,
    /// Content, if any.
    pub content: Option<String>,
}

/// The origin's part.
#[derive(Clone, Debug)]
pub enum Origin {
    /// It must not be asked.
    None,
    /// It must be asked once, and answers so; twice where the answer says what it answers `again`.
    Asked(Answer),
}

/// What the origin must see and how it answers.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The client has its response already.
    pub background: bool,
    /// Method it must see, if it matters.
    pub method: Option<String>,
    /// Path and query it must see, if they are not those of the client's request.
    pub target: Option<String>,
    /// What the request must have.
    pub has: Vec<FieldPattern>,
    /// What the request must not have.
    pub has_not: Vec<String>,
    /// Seconds of virtual time until the cache has a connection on which it can be asked.
    pub waits_s: u32,
    /// Seconds of virtual time until it answers.
    pub takes_s: u32,
    /// The response; without it where `fault` says so.
    pub response: Response,
    /// How it fails, if it does.
    pub fault: Option<Fault>,
    /// What it answers when it is asked once more for the same request, as it must be then.
    pub again: Option<Box<Self>>,
}

impl Answer {
    /// The answer that counts: the second, if it is asked twice.
    #[must_use]
    pub fn last(&self) -> &Self {
        self.again.as_deref().unwrap_or(self)
    }
}

/// The origin's response.
#[derive(Clone, Debug)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Field lines; Content-Length is the runner's.
    pub fields: Vec<Field>,
    /// Content, also where the request's method or the status lets none be sent.
    pub body: String,
}

/// How the origin fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// It closes without an answer.
    Closed,
    /// It answers with something that is not HTTP.
    Broken,
    /// It closes within the body.
    Cut,
}

/// A field that must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldPattern {
    /// With any value.
    Named(String),
    /// With this value in one of its lines.
    Line(Field),
}

/// What the client must see.
#[derive(Clone, Debug, Default)]
pub struct ExpectedResponse {
    /// One of these status codes.
    pub status: Vec<u16>,
    /// This content; `None` if any will do.
    pub body: Option<String>,
    /// This age in seconds.
    pub age_s: Option<u32>,
    /// These fields.
    pub has: Vec<FieldPattern>,
    /// None of these.
    pub has_not: Vec<String>,
    /// Parameters of Cache-Status.
    pub(crate) cache_status: Option<Pattern>,
    /// The response ends before it is whole.
    pub cut: bool,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Must => "must",
            Self::Optimal => "optimal",
            Self::Observe => "observe",
        })
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.word {
            Word::Live => "live",
            Word::Hosts => "hosts",
            Word::Heads => "heads",
            Word::Rules => "rules",
            Word::Gateway => "gateway",
        };
        write!(f, "{word}: {}", self.reason)
    }
}
