//! A row as the facts that decisions are made from: the same that the live proxy gathers from
//! heads.

use crate::row::Row;
use crate::row::directives::{RequestBit, ResponseBit};
use crate::row::words::TraceMethod;
use weir_semantics::{
    ByteRange, ContentRange, DecidedBy, DeltaSeconds, Expires, Method, RangeKind, RequestFacts,
    ResponseFacts, Strength, Timestamp, VaryKind,
};

impl Row {
    /// What the request says; `None` if the trace does not even say the method. Whatever else the
    /// trace does not say counts as absent.
    ///
    /// A trace has no values of `min-fresh` and `max-stale`: they count as 0 seconds and as any
    /// staleness. A 206 answers a Range field, also one that a row has no place for: of several
    /// parts, or from the end.
    #[must_use]
    pub fn request_facts(&self) -> Option<RequestFacts> {
        Some(self.request_facts_by(self.method?.into()))
    }

    /// The same where the method is known, or assumed.
    #[must_use]
    pub fn request_facts_by(&self, method: Method) -> RequestFacts {
        let bits = self.request_directives.unwrap_or(0);
        let has = |bit: RequestBit| bits & bit.bit() != 0;
        let has_pragma = has(RequestBit::PragmaNoCache);
        let has_range =
            self.range_first.is_some() || self.range_last.is_some() || self.status == Some(206);
        RequestFacts {
            method,
            directives: self.read_request_directives(),
            has_authorization: self.has_authorization.unwrap_or(false),
            has_cookie: self.has_cookie.unwrap_or(false),
            has_range,
            range: match self.range_first {
                _ if method != Method::Get || !has_range => RangeKind::None,
                Some(_) => RangeKind::One,
                None => RangeKind::Many,
            },
            has_if_range: has(RequestBit::OtherPrecondition) && has_range,
            has_query: self.has_query.unwrap_or(false),
            has_cgi_bin: self.has_cgi_bin.unwrap_or(false),
            has_pragma,
            preconditions: has(RequestBit::IfNoneMatch)
                || has(RequestBit::IfModifiedSince)
                || (has(RequestBit::OtherPrecondition) && !has_range),
            expects_continue: false,
        }
    }

    /// What the response says; `None` if the trace does not even say the status. Whatever else the
    /// trace does not say counts as absent.
    ///
    /// A trace has no Content-Range: a 206 to a single range counts as the part that was requested.
    /// Where the trace does not have the complete length, it is known if the range was open-ended.
    #[must_use]
    pub fn response_facts(&self) -> Option<ResponseFacts> {
        Some(self.response_facts_by(self.status?))
    }

    /// The same where the status is known, or assumed.
    #[must_use]
    pub fn response_facts_by(&self, status: u16) -> ResponseFacts {
        let bits = self.response_directives.unwrap_or(0);
        let has = |bit: ResponseBit| bits & bit.bit() != 0;
        let at = |seconds: Option<i64>| seconds.map(Timestamp);
        let content_range = self.part().filter(|_| status == 206);
        ResponseFacts {
            status,
            directives: self.read_response_directives(),
            // which of several fields is not recorded: as if it were the first
            decided_by: if has(ResponseBit::Targeted) {
                DecidedBy::Targeted(0)
            } else {
                DecidedBy::CacheControl
            },
            date: at(self.date_s),
            expires: if has(ResponseBit::ExpiresInvalid) {
                Some(Expires::Invalid)
            } else {
                at(self.expires_s).map(Expires::At)
            },
            last_modified: at(self.last_modified_s),
            age: self.age_s.map(DeltaSeconds),
            entity_tag: self.etag.map(|_| match self.etag_is_weak {
                Some(true) => Strength::Weak,
                _ => Strength::Strong,
            }),
            vary: match self.vary {
                None | Some(Self::VARY_NONE) => VaryKind::None,
                Some(Self::VARY_ALL) => VaryKind::Star,
                Some(_) => VaryKind::Fields,
            },
            has_set_cookie: self.has_set_cookie.unwrap_or(false),
            has_content_range: content_range.is_some(),
            content_range,
            has_pragma: has(ResponseBit::PragmaNoCache),
            has_mixed_line_ends: false,
        }
    }

    fn part(&self) -> Option<ContentRange> {
        let first = self.range_first?;
        let length = self.declared_bytes.max(self.received_bytes);
        let last = first.checked_add(length?.checked_sub(1)?)?;
        Some(ContentRange::Part {
            range: ByteRange { first, last },
            // a response to a range without an end goes up to the end of the whole
            complete_length: match self.complete_bytes {
                Some(complete) => (complete > last).then_some(complete),
                None => self.range_last.is_none().then_some(last.checked_add(1)?),
            },
        })
    }
}

impl From<TraceMethod> for Method {
    fn from(method: TraceMethod) -> Self {
        match method {
            TraceMethod::Get => Self::Get,
            TraceMethod::Head => Self::Head,
            TraceMethod::Post => Self::Post,
            TraceMethod::Put => Self::Put,
            TraceMethod::Delete => Self::Delete,
            TraceMethod::Patch => Self::Patch,
            TraceMethod::Options => Self::Options,
            TraceMethod::Trace => Self::Trace,
            TraceMethod::Connect => Self::Connect,
            TraceMethod::Other => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_semantics::{NotStorable, storable};

    fn get() -> Row {
        Row {
            method: Some(TraceMethod::Get),
            status: Some(200),
            request_directives: Some(0),
            response_directives: Some(0),
            ..Row::default()
        }
    }

    fn verdict(row: &Row) -> Result<(), NotStorable> {
        let request = row.request_facts().expect("a method");
        storable(&request, &row.response_facts().expect("a status"))
    }

    #[test]
    fn row_gives_the_storability_its_recorded_fields_imply() {
        assert_eq!(verdict(&get()), Ok(()));
        let no_store = Row {
            response_directives: Some(ResponseBit::NoStore.bit()),
            ..get()
        };
        assert_eq!(verdict(&no_store), Err(NotStorable::ResponseNoStore));
        let fields = Row {
            response_directives: Some(ResponseBit::PrivateFields.bit()),
            ..get()
        };
        assert_eq!(verdict(&fields), Err(NotStorable::Private));
        let redirect = Row {
            status: Some(302),
            ..get()
        };
        assert_eq!(verdict(&redirect), Err(NotStorable::NoExplicitLifetime));
        let expires = Row {
            response_directives: Some(ResponseBit::ExpiresInvalid.bit()),
            ..redirect
        };
        assert_eq!(verdict(&expires), Ok(()));
        assert!(!expires.response_facts().expect("a status").directives.any);
        let star = Row {
            vary: Some(Row::VARY_ALL),
            ..get()
        };
        assert_eq!(verdict(&star), Err(NotStorable::VaryStar));
    }

    #[test]
    fn partial_response_is_storable_only_with_range_and_strong_entity_tag() {
        let part = Row {
            status: Some(206),
            range_first: Some(10),
            declared_bytes: Some(90),
            etag: Some(1),
            ..get()
        };
        assert_eq!(verdict(&part), Ok(()));
        let weak = Row {
            etag_is_weak: Some(true),
            ..part.clone()
        };
        assert_eq!(verdict(&weak), Err(NotStorable::PartialContent));
        let unasked = Row {
            range_first: None,
            ..part
        };
        assert_eq!(verdict(&unasked), Err(NotStorable::PartialContent));
    }

    #[test]
    fn pragma_no_cache_is_ignored_when_cache_control_is_present() {
        let pragma = RequestBit::PragmaNoCache.bit();
        let facts = |bits| {
            let row = Row {
                request_directives: Some(bits),
                ..get()
            };
            row.request_facts().expect("a method")
        };
        assert!(facts(pragma).directives.no_cache);
        assert!(!facts(pragma).directives.any);
        assert!(facts(pragma).has_pragma);
        assert!(!facts(pragma | RequestBit::MaxAge.bit()).directives.no_cache);
    }

    #[test]
    fn row_without_method_or_status_has_no_facts() {
        assert_eq!(Row::default().request_facts(), None);
        assert_eq!(Row::default().response_facts(), None);
    }
}
