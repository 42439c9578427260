//! Conformance vectors: conversations in virtual time that hold for any shared HTTP cache.
//!
//! The vectors are the files `*.toml` beside this crate's manifest, one file a subject. A vector
//! says what a client asks, whether the origin must be asked, what it answers, and what the client
//! must see. This crate reads them, says with file and line what is wrong with one, and compares
//! what a runner observed with what is expected. Deliberately absent: any cache, any clock, any
//! socket. A runner brings those: one drives `weir_policy`, one the live proxy, one the simulator,
//! others may drive other caches.
//!
//! # A vector
//!
//! ```toml
//! [[vector]]
//! id = "fresh-until-max-age"              # kebab-case, unique
//! spec = "RFC 9111 §4.2.1"
//! kind = "must"                           # must, optimal (better so), observe (told, never failed)
//! why = "A response is fresh while its lifetime is greater than its age."
//! # profile = "http-1998"                 # the rules in force; "rfc9111" if not said
//! # rules = [{ path = ["/a"], bypass = true }]          # of the operator, as in a configuration
//! # needs = ["live: fields are merged by the driver"]   # what not every runner has, and why
//! steps = [
//!   { origin = { fields = ["Cache-Control: max-age=60"] } },
//!   { at = 59, origin = "none", client = { body = 1, age = 59, cache_status = "hit; ttl=1" } },
//!   { at = 60, origin = { fields = ["Cache-Control: max-age=60"] } },
//! ]
//! ```
//!
//! # A step
//!
//! * `at`: seconds since the vector's start, never before the step before ended; at once after it
//!   if not said. The start is 2026-01-01 00:00:00 GMT ([`START_S`]).
//! * `request`: method and path, `"GET /"` if not said; `host`: another host than the usual;
//!   `fields`: its field lines; `content`: its content, sent with `Content-Length`.
//! * `origin`: always said. `"none"`: it must not be asked. Else a table: what must be in the
//!   request as the origin sees it (`method`, `target`, `has`, `has_not`), and its answer
//!   (`status`, 200 if not said, `fields`, `body` or `body_bytes`, `takes`: seconds until it
//!   answers, `waits`: seconds before, until there is a connection to ask it on). `fails =
//!   "closed"`: it closes without an answer; `"broken"`: it answers with what is not HTTP; `"cut"`:
//!   it closes within the body. `background = true`: it is asked after the client has its answer.
//!   `again`: a table of the same form; it must be asked once more for this request, and answers
//!   so.
//! * `client`: what it must see. `status` (one or a list), `body` (the number of the step whose
//!   response is served, a text, or `{ step = 1, first = 2, last = 5 }`), `age`, `has` (`"Name"` or
//!   `"Name: value"`), `has_not`, `cache_status` (parameters of the last member of Cache-Status,
//!   `!name` for one that must be absent), `cut`. What is not said follows from the origin's
//!   answer: it is relayed.
//!
//! A response has the fields that are written and Content-Length; its body is a text no other step
//! has, unless it is written. In field values `{host}` stands for the host asked, and a value that
//! begins with `@` is a date: `@-10` and `@+60` count from the step's time, `@start-1000` from the
//! vector's start.

mod cache_status;
mod collection;
mod date;
mod field;
mod judge;
mod load;
mod observation;
mod raw;
mod rule;
mod tally;
mod vector;

pub use cache_status::Parameters;
pub use collection::{Collection, folder};
pub use date::START_S;
pub use field::{Field, FieldContext};
pub use judge::judge;
pub use load::LoadError;
pub use observation::{ClientResponse, Observation, OriginRequest};
pub use rule::RuleTable;
pub use tally::Tally;
pub use vector::{
    Answer, ExpectedResponse, Fault, FieldPattern, Kind, Need, Origin, Profile, Request, Response,
    Runner, Step, Vector, Word,
};
