//! What the naive stores of the tests have in common: field lines as text, how variants are told
//! apart, what an update makes of a stored response, and in what form it answers a request.

use weir_policy::{Now, Update};
use weir_semantics::{
    ByteRange, EntityTag, FieldLine, Fits, Method, Precondition, RangeOutcome, RangeSpan,
    RequestedPart, ResponseFacts, StoredValidators, TargetedFields, Timestamp, Validators,
    combines, evaluate, feed_selecting, if_range_holds, lines_named, merge, nominated,
    parse_http_date, select, write_http_date,
};

/// Field lines, owned.
pub(crate) type Lines = Vec<(String, String)>;

/// The lines as semantics takes them.
pub(crate) fn borrow(lines: &Lines) -> Vec<FieldLine<'_>> {
    lines
        .iter()
        .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
        .collect()
}

/// The value of the first line with this name.
pub(crate) fn value<'a>(lines: &'a Lines, name: &str) -> Option<&'a str> {
    let line = lines.iter().find(|line| line.0.eq_ignore_ascii_case(name));
    line.map(|line| line.1.as_str())
}

/// The fields that the cache's own requests replace.
pub(crate) fn is_precondition(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("if-") || name == "range"
}

/// The value of `Range` for these bytes.
pub(crate) fn range_value(range: ByteRange) -> String {
    let span = RangeSpan::From {
        first: range.first,
        last: range.last,
    };
    let mut value = Vec::new();
    span.write(&mut value);
    String::from_utf8(value).expect("a range is text")
}

/// The fields that a response nominates, with what its request says in them (RFC 9111 §4.1).
#[derive(Clone, Debug)]
pub(crate) struct Selecting(pub(crate) Vec<(String, Vec<u8>)>);

impl Selecting {
    pub(crate) fn of(response: &Lines, request: &Lines) -> Self {
        let borrowed = borrow(response);
        let names = nominated(lines_named(&borrowed, "vary"));
        let selecting = names.map(|name| (name.to_ascii_lowercase(), feed(request, name)));
        Self(selecting.collect())
    }

    /// Whether a request says the same in them.
    pub(crate) fn matches(&self, request: &Lines) -> bool {
        let mut selecting = self.0.iter();
        selecting.all(|(name, fed)| feed(request, name) == *fed)
    }
}

fn feed(request: &Lines, name: &str) -> Vec<u8> {
    let mut fed = Vec::new();
    feed_selecting(&borrow(request), name, &mut |bytes| {
        fed.extend_from_slice(bytes);
    });
    fed
}

/// What preconditions are evaluated against: those of a response that was received at `received`.
pub(crate) fn validators(lines: &Lines, received: Timestamp) -> Validators<'_> {
    let date =
        |name| value(lines, name).and_then(|value| parse_http_date(value.as_bytes(), received));
    Validators {
        entity_tag: value(lines, "etag").and_then(|tag| EntityTag::parse(tag.as_bytes())),
        last_modified: date("last-modified"),
        date: date("date").or(Some(received)),
    }
}

/// A stored response as far as it is compared with others.
pub(crate) struct Base<'a> {
    pub(crate) lines: &'a Lines,
    pub(crate) status: u16,
    pub(crate) received: Timestamp,
    pub(crate) complete_length: u64,
}

/// A response that may update a stored one, merged into that.
pub(crate) struct Merging {
    pub(crate) facts: ResponseFacts,
    pub(crate) stored: Lines,
    pub(crate) for_client: Lines,
    fits: Fits,
    changes_vary: bool,
}

impl Merging {
    /// What the transaction is told.
    pub(crate) fn update<'a>(&'a self, response: &'a ResponseFacts) -> Update<'a> {
        Update {
            response,
            merged: &self.facts,
            fits: self.fits,
            changes_vary: self.changes_vary,
        }
    }
}

impl Base<'_> {
    /// What a response makes of this one; `asked` are the bytes that were asked for, if a part was.
    pub(crate) fn merging(
        &self,
        asked: Option<ByteRange>,
        (response, lines): (&ResponseFacts, &Lines),
        now: Now,
        targeted: &TargetedFields,
    ) -> Merging {
        let (stored, update) = (borrow(self.lines), borrow(lines));
        let mut received = [0; 29];
        write_http_date(now.wall, &mut received);
        let merged = merge(&stored, &update, &received);
        let validators = validators(self.lines, self.received);
        let complete_length = Some(self.complete_length);
        let bytes_of = |name| value(self.lines, name).map(str::as_bytes);
        let compared = StoredValidators {
            entity_tag: bytes_of("etag"),
            last_modified: validators.last_modified,
            complete_length,
        };
        let fits = match (response.status, asked) {
            (206, Some(asked)) => {
                let asked = RequestedPart {
                    entity_tag: validators.entity_tag,
                    content_encoding: bytes_of("content-encoding"),
                    complete_length,
                    asked,
                };
                combines(&asked, response, &update)
            }
            (206, None) => Fits::Other,
            (304, _) => compared.validated_by(&update, response),
            _ => compared.fits(&update, response),
        };
        Merging {
            facts: merged.facts(self.status, now.wall, targeted),
            stored: owned(&merged.stored),
            for_client: owned(&merged.for_client()),
            fits,
            changes_vary: merged.changes_vary,
        }
    }

    /// In what form it answers a request (RFC 9110 §13.2.2): preconditions first, then Range.
    pub(crate) fn form(&self, method: Method, request: &Lines, now: Timestamp) -> Form {
        let fields = borrow(request);
        let validators = validators(self.lines, self.received);
        let is_whole = self.status == 200;
        if is_whole && evaluate(method, &fields, &validators, now) == Precondition::NotModified {
            return Form::Bare(304);
        }
        if method == Method::Head {
            return Form::Bare(self.status);
        }
        if is_whole
            && let Some(range) = value(request, "range")
            && if_range_holds(&fields, &validators, now)
        {
            return match select(range.as_bytes(), self.complete_length, 1) {
                RangeOutcome::Single(range) => Form::Part(range),
                RangeOutcome::Unsatisfiable => Form::Bare(416),
                RangeOutcome::Whole | RangeOutcome::Multiple(_) => Form::Whole,
            };
        }
        Form::Whole
    }
}

/// In what form a stored response answers a request.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// With this status and without content.
    Bare(u16),
    /// As stored.
    Whole,
    /// 206.
    Part(ByteRange),
}

/// Without Age, which is made for each use.
fn owned(fields: &[FieldLine<'_>]) -> Lines {
    let lines = fields.iter().map(|line| {
        let value = String::from_utf8_lossy(line.value).into_owned();
        (line.name.to_owned(), value)
    });
    lines
        .filter(|line| !line.0.eq_ignore_ascii_case("age"))
        .collect()
}
