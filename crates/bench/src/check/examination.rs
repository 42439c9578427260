//! The examination of one response: every byte, status, length, version and validators, against
//! what the origin would have sent.
//!
//! What is right follows from the scenario and the seed, without a request to the origin. Of the
//! proxy only one thing is trusted: the mark, which has the request that fetched this content, and
//! its version. A proxy that invents marks is found by the content, which is another one for every
//! version.

use std::ops::ControlFlow;

use weir_semantics::{FieldLine, ResponseDirectives, Timestamp, parse_http_date};
use weir_wire::ResponseHead;
use weir_workload::{Content, Method, Representation, RequestType, Target};

use super::cache_status::Claim;
use super::reference::Reference;
use super::wrong_response::{HEAD_BYTES_MAX, WrongKind};
use crate::client::{Ending, Inspect};
use crate::mark::{self, Id, ResponseMark};
use crate::tally::{CrossCheck, ErrorKind, Outcome};

/// By how much the clocks of clients and origin may differ, and how late an answer may be on its
/// way, in seconds.
const SLACK_S: i64 = 2;

/// The properties of a request that decide the right response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SentRequest {
    pub(crate) target: Target,
    pub(crate) kind: RequestType,
    pub(crate) method: Method,
    /// The share of the content after which the client disconnects.
    pub(crate) abort_at: Option<f32>,
    pub(crate) id: Id,
    /// When it was sent.
    pub(crate) at: Timestamp,
    /// `If-Modified-Since`.
    pub(crate) modified_since: Option<Timestamp>,
}

/// How a response differs from the right one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub(crate) kind: WrongKind,
    /// In the content.
    pub(crate) offset: Option<u64>,
    /// What should be there, and what is.
    pub(crate) what: String,
}

/// The result of an examination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conclusion {
    pub(crate) outcome: Outcome,
    pub(crate) mismatch: Option<Mismatch>,
    /// `None` where there is nothing to compare: no content, no answer.
    pub(crate) cross_check: Option<CrossCheck>,
    /// 200 to a request whose condition held.
    pub(crate) condition_ignored: bool,
}

/// An examination under way.
#[derive(Debug)]
pub(crate) struct Examination {
    request: SentRequest,
    /// None before the head.
    pub(crate) status: Option<u16>,
    pub(crate) answered: Option<ResponseMark>,
    content: Content,
    /// How long the content is.
    length: u64,
    declared: Option<u64>,
    pub(crate) received: u64,
    /// The client disconnects when it has so many bytes; all ones: it does not.
    abort_from: u64,
    mismatch: Option<Mismatch>,
    claim: Option<Claim>,
    /// The head as received, for the record of a wrong response. Keeps its room.
    pub(crate) head: Vec<u8>,
}

/// The fields that are examined.
#[derive(Default)]
struct Fields<'a> {
    answered: Option<ResponseMark>,
    entity_tag: Option<&'a [u8]>,
    modified: Option<Timestamp>,
    declared: Option<u64>,
    claim: Option<Claim>,
}

impl Examination {
    /// `head`: room to use.
    pub(crate) fn new(request: SentRequest, mut head: Vec<u8>) -> Self {
        head.clear();
        Self {
            request,
            status: None,
            answered: None,
            content: Content::of(0, request.target, 0),
            length: 0,
            declared: None,
            received: 0,
            abort_from: u64::MAX,
            mismatch: None,
            claim: None,
            head,
        }
    }

    /// The request.
    pub(crate) fn request(&self) -> &SentRequest {
        &self.request
    }

    /// The version that the response claims to be.
    pub(crate) fn version(&self) -> Option<u64> {
        self.answered.map(|answered| answered.version)
    }

    /// Ends it.
    pub(crate) fn conclude(&mut self, reference: &Reference<'_>, ending: Ending) -> Conclusion {
        let outcome = match ending {
            Ending::Whole { .. } => self.whole(reference),
            Ending::Surplus => self.surplus(reference),
            Ending::Aborted => Outcome::Aborted,
            Ending::Unreadable(why) => {
                self.find(WrongKind::Unreadable, None, || why.to_owned());
                Outcome::Error(ErrorKind::Unreadable)
            }
            Ending::Failed(kind) | Ending::Stale(kind) => self.failed(reference, kind),
        };
        let is_compared = matches!(
            outcome,
            Outcome::Hit | Outcome::Validated | Outcome::Forwarded
        );
        let agreement = |claim: Claim| claim.agrees(outcome);
        Conclusion {
            outcome,
            mismatch: self.mismatch.take(),
            cross_check: is_compared.then(|| self.claim.map_or(CrossCheck::Absent, agreement)),
            condition_ignored: is_compared
                && self.request.kind == (RequestType::IfModifiedSince { newer: true })
                && self.request.modified_since.is_some(),
        }
    }

    fn whole(&mut self, reference: &Reference<'_>) -> Outcome {
        if self.received < self.length && self.has_content() {
            if reference.may_have_wrong_length(self.request.target) {
                return Outcome::Error(ErrorKind::OriginFault);
            }
            let (received, length) = (self.received, self.length);
            self.find(WrongKind::ShortBody, Some(received), || {
                format!("the content ends after {received} bytes and has {length}")
            });
        }
        self.outcome(reference)
    }

    fn surplus(&mut self, reference: &Reference<'_>) -> Outcome {
        if reference.may_have_wrong_length(self.request.target) {
            return Outcome::Error(ErrorKind::OriginFault);
        }
        let (received, length) = (self.received, self.length);
        let kind = if received < length {
            WrongKind::WrongLength
        } else {
            WrongKind::LongBody
        };
        self.find(kind, Some(received), || {
            format!("bytes follow the {received} that were announced; the content has {length}")
        });
        self.outcome(reference)
    }

    fn failed(&mut self, reference: &Reference<'_>, kind: ErrorKind) -> Outcome {
        if self.has_content()
            && self.declares_other_length()
            && matches!(kind, ErrorKind::EarlyClose | ErrorKind::Reset)
        {
            if reference.may_have_wrong_length(self.request.target) {
                return Outcome::Error(ErrorKind::OriginFault);
            }
            self.find_wrong_length();
        }
        Outcome::Error(kind)
    }

    /// The account, by status and mark.
    fn outcome(&self, reference: &Reference<'_>) -> Outcome {
        match (self.status.unwrap_or(0), self.answered) {
            (200, None) => Outcome::Error(ErrorKind::Unmarked),
            (200, Some(answered)) if answered.id != Some(self.request.id) => Outcome::Hit,
            (200, Some(answered)) if answered.is_validated => Outcome::Validated,
            (200, Some(_)) => Outcome::Forwarded,
            (304, answered) if self.request.modified_since.is_some() => Outcome::NotModified {
                by_origin: answered.is_some_and(|answered| answered.id == Some(self.request.id)),
            },
            (status, _) if reference.may_have_status(self.request.target, status) => {
                Outcome::Error(ErrorKind::OriginFault)
            }
            (400..500, _) => Outcome::Error(ErrorKind::Status4xx),
            (500..600, _) => Outcome::Error(ErrorKind::Status5xx),
            _ => Outcome::Error(ErrorKind::StatusOther),
        }
    }

    /// Is this a response with the target's content?
    fn has_content(&self) -> bool {
        self.status == Some(200) && self.answered.is_some() && self.request.method != Method::Head
    }

    fn declares_other_length(&self) -> bool {
        self.declared
            .is_some_and(|declared| declared != self.length)
    }

    fn find_wrong_length(&mut self) {
        let (declared, length) = (self.declared.unwrap_or(0), self.length);
        self.find(WrongKind::WrongLength, None, || {
            format!("Content-Length is {declared}, the content has {length}")
        });
    }

    /// The first thing that is wrong is kept.
    fn find(&mut self, kind: WrongKind, offset: Option<u64>, what: impl FnOnce() -> String) {
        if self.mismatch.is_none() {
            self.mismatch = Some(Mismatch {
                kind,
                offset,
                what: what(),
            });
        }
    }

    fn read_head(&mut self, reference: &Reference<'_>, head: &ResponseHead<'_, '_>) {
        let fields = Fields::read(head.fields, reference.now);
        self.status = Some(head.status);
        self.answered = fields.answered;
        self.declared = fields.declared;
        self.claim = fields.claim;
        match (head.status, fields.answered) {
            (200, Some(answered)) => self.read_200(reference, &fields, answered),
            (200, None) => {}
            (304, _) => self.read_304(reference),
            (status, answered) => self.read_other(reference, status, answered),
        }
    }

    fn read_200(&mut self, reference: &Reference<'_>, fields: &Fields<'_>, answered: ResponseMark) {
        let target = self.request.target;
        self.content = Content::of(reference.seed, target, answered.version);
        if let Some(tag) = fields.entity_tag
            && self.is_swapped(reference, tag, answered.version)
        {
            return;
        }
        let Some(truth) = self.truth(reference, answered.version) else {
            self.length = reference.site.describe(target, reference.now).length;
            self.find(WrongKind::StaleVersion, None, || {
                let current = reference.site.describe(target, reference.now).version;
                format!(
                    "version {} was not current when it may have been; version {current} is",
                    answered.version
                )
            });
            return;
        };
        self.length = truth.length;
        if let (Some(found), Some(right)) = (fields.modified, truth.modified)
            && found != right
        {
            self.find(WrongKind::StaleVersion, None, || {
                format!(
                    "Last-Modified is {} s beside that of version {}",
                    found.0 - right.0,
                    answered.version
                )
            });
        }
        let (declared, length) = (fields.declared, self.length);
        if self.request.method == Method::Head {
            if declared.is_some_and(|declared| declared != length)
                && !reference.may_have_wrong_length(target)
            {
                self.find_wrong_length();
            }
            return;
        }
        if let Some(share) = self.request.abort_at {
            self.abort_from = part(self.length, share);
        }
    }

    /// Does the entity tag belong to another target, or to another version than the mark?
    fn is_swapped(&mut self, reference: &Reference<'_>, tag: &[u8], version: u64) -> bool {
        match reference.site.parse_entity_tag(self.request.target, tag) {
            Some(found) if found == version => {}
            Some(found) => self.find(WrongKind::StaleVersion, None, || {
                format!("the entity tag is that of version {found}, the mark that of {version}")
            }),
            None => {
                let target = self.request.target;
                self.find(WrongKind::Swapped, None, || {
                    let mut right = Vec::new();
                    reference.site.write_entity_tag(target, version, &mut right);
                    let (tag, right) = (
                        String::from_utf8_lossy(tag),
                        String::from_utf8_lossy(&right),
                    );
                    format!("the entity tag {tag} is another target's; this one's is {right}")
                });
                return true;
            }
        }
        false
    }

    /// The right representation of this version; `None` if it was not current at any time that
    /// would allow it.
    fn truth<'s>(&self, reference: &Reference<'s>, version: u64) -> Option<Representation<'s>> {
        let target = self.request.target;
        let now = reference.site.describe(target, reference.now);
        if now.version == version {
            return Some(now);
        }
        let (from, until) = self.excuse(reference, &now);
        if !reference.site.was_current(target, version, from, until) {
            return None;
        }
        // of the times that allow it, one at which it was current
        [self.request.at, until, from]
            .into_iter()
            .map(|at| reference.site.describe(target, at))
            .find(|described| described.version == version)
            .or(Some(now))
    }

    /// From when to when a version may have been current for a right answer now.
    fn excuse(
        &self,
        reference: &Reference<'_>,
        now: &Representation<'_>,
    ) -> (Timestamp, Timestamp) {
        let beyond = i64::try_from(lifetime_beyond_change_s(now)).unwrap_or(i64::MAX);
        let from = self
            .request
            .at
            .0
            .saturating_sub(beyond)
            .saturating_sub(SLACK_S);
        (Timestamp(from), Timestamp(reference.now.0 + SLACK_S))
    }

    /// 304 says: what you have is current. That is right if nothing that may be served was modified
    /// after the date in the condition.
    fn read_304(&mut self, reference: &Reference<'_>) {
        let Some(since) = self.request.modified_since else {
            self.find(WrongKind::WrongStatus, None, || {
                "304 to a request without a condition".to_owned()
            });
            return;
        };
        let target = self.request.target;
        let now = reference.site.describe(target, reference.now);
        let (from, _) = self.excuse(reference, &now);
        let oldest = reference.site.describe(target, from).modified;
        if oldest.is_some_and(|oldest| oldest > since) {
            self.find(WrongKind::WrongStatus, None, || {
                format!(
                    "304, and it was modified {} s after the date in the condition",
                    now.modified.map_or(0, |modified| modified.0 - since.0)
                )
            });
        }
    }

    fn read_other(
        &mut self,
        reference: &Reference<'_>,
        status: u16,
        answered: Option<ResponseMark>,
    ) {
        let is_error = (400..600).contains(&status);
        if reference.may_have_status(self.request.target, status)
            || (is_error && answered.is_none())
        {
            return;
        }
        self.find(WrongKind::WrongStatus, None, || {
            format!(
                "status {status}, where the origin answers 200 or, to a condition that holds, 304"
            )
        });
    }

    fn read_content(&mut self, reference: &Reference<'_>, bytes: &[u8]) {
        let within =
            usize::try_from(self.length.saturating_sub(self.received)).unwrap_or(usize::MAX);
        let right = &bytes[..within.min(bytes.len())];
        if self.mismatch.is_none()
            && let Some(at) = self.content.differs_at(self.received, right)
        {
            let from = usize::try_from(at - self.received).unwrap_or(0);
            self.find_wrong_bytes(reference, at, &right[from..]);
        }
        if bytes.len() > right.len() && !reference.may_have_wrong_length(self.request.target) {
            let length = self.length;
            self.find(WrongKind::LongBody, Some(length), || {
                format!("the content goes on after its {length} bytes")
            });
        }
    }

    /// `bytes`: what is there, from the first wrong one on.
    fn find_wrong_bytes(&mut self, reference: &Reference<'_>, at: u64, bytes: &[u8]) {
        if at == 0
            && let Some(other) = reference.target_with(bytes)
        {
            self.find(WrongKind::Swapped, Some(at), || {
                format!(
                    "it is the content of server {}, number {}",
                    other.server, other.number
                )
            });
            return;
        }
        let mut right = [0; SHOWN_BYTES];
        let shown = &bytes[..bytes.len().min(SHOWN_BYTES)];
        self.content.fill(at, &mut right[..shown.len()]);
        let right = &right[..shown.len()];
        self.find(WrongKind::WrongByte, Some(at), || {
            format!("{shown:02x?} instead of {right:02x?}")
        });
    }
}

/// How many wrong bytes are shown.
const SHOWN_BYTES: usize = 8;

impl<'a> Fields<'a> {
    fn read(fields: &[FieldLine<'a>], now: Timestamp) -> Self {
        let mut read = Self::default();
        for line in fields {
            // names by length first: most lines are none of these
            match line.name.len() {
                4 if line.name.eq_ignore_ascii_case("ETag") => {
                    read.entity_tag = Some(line.value);
                }
                7 if line.name.eq_ignore_ascii_case("X-Cache") => {
                    read.claim = read.claim.or_else(|| Claim::of_x_cache(line.value));
                }
                10 if line.name.eq_ignore_ascii_case(mark::FIELD) => {
                    read.answered = ResponseMark::parse(line.value);
                }
                12 if line.name.eq_ignore_ascii_case("Cache-Status") => {
                    read.claim = Claim::of_cache_status(line.value).or(read.claim);
                }
                13 if line.name.eq_ignore_ascii_case("Last-Modified") => {
                    read.modified = parse_http_date(line.value, now);
                }
                14 if line.name.eq_ignore_ascii_case("Content-Length") => {
                    let text = std::str::from_utf8(line.value).ok();
                    read.declared = text.and_then(|text| text.parse().ok());
                }
                _ => {}
            }
        }
        read
    }
}

/// How long after a change a response may still be used that was sent before it, in seconds. With
/// `Expires` at the time of the change there is no lifetime; `max-age` counts from when the
/// response was sent (RFC 9111 §4.2.1), and RFC 5861 beyond that.
fn lifetime_beyond_change_s(described: &Representation<'_>) -> u64 {
    let mut directives = ResponseDirectives::default();
    if let Some(line) = described.cache_control {
        directives.add_line(line.as_bytes());
    }
    let stale = directives
        .stale_while_revalidate
        .max(directives.stale_if_error);
    let stale_s = stale.map_or(0, |stale| u64::from(stale.0));
    let ends_with_version = described.max_age_s.is_none()
        && described.expires.is_some()
        && described.expires == described.changes_at;
    if ends_with_version {
        stale_s
    } else {
        described.freshness_lifetime_s.saturating_add(stale_s)
    }
}

/// So much of the content; the whole of it where there is nothing to leave out.
fn part(length: u64, share: f32) -> u64 {
    if length == 0 {
        return u64::MAX;
    }
    weir_workload::whole(length as f64 * f64::from(share))
}

/// An examination with its reference: reads a response while it arrives.
pub(crate) struct Inspector<'e, 'g> {
    pub(crate) examination: &'e mut Examination,
    pub(crate) reference: &'e Reference<'g>,
}

impl Inspect for Inspector<'_, '_> {
    fn head(&mut self, head: &ResponseHead<'_, '_>, bytes: &[u8]) {
        let kept = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
        self.examination.head.extend_from_slice(kept);
        self.examination.read_head(self.reference, head);
    }

    fn content(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        let examination = &mut *self.examination;
        if examination.has_content() {
            examination.read_content(self.reference, bytes);
        }
        examination.received += bytes.len() as u64;
        if examination.received >= examination.abort_from {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
