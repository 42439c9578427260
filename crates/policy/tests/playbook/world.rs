//! What a random conversation is made of.

use crate::script::{RULES, at};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use weir_policy::rule::StoringIgnored;
use weir_policy::{Covers, Failure, Profile, Rules, StoredFacts};
use weir_semantics::{
    DeltaSeconds, FieldLine, Fits, Method, RequestFacts, ResponseFacts, Timestamp,
};

/// What the world holds ready for one transaction.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) request: RequestFacts,
    pub(crate) rules: Rules,
    pub(crate) unshared: bool,
    pub(crate) stored: Option<StoredFacts>,
    /// What is stored is a part.
    pub(crate) part: Option<Covers>,
    pub(crate) answer: Answer,
    pub(crate) fits: Fits,
    /// To a request that was sent again.
    pub(crate) second_answer: Answer,
    /// What the answer makes of the stored response.
    pub(crate) merged: ResponseFacts,
    pub(crate) changes_vary: bool,
    pub(crate) ends: Ends,
    pub(crate) steps_s: [u64; 3],
}

#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Response(ResponseFacts),
    Failed(Failure),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Ends {
    Whole,
    Incomplete,
    NotAdmitted,
}

pub(crate) fn request() -> impl Strategy<Value = RequestFacts> {
    let directives = [
        "no-cache",
        "no-store",
        "only-if-cached",
        "max-age=40",
        "min-fresh=30",
        "max-stale",
        "max-stale=10",
    ];
    let methods = [
        Method::Get,
        Method::Get,
        Method::Get,
        Method::Head,
        Method::Post,
        Method::Options,
        Method::Other,
    ];
    let fields = [
        ("Cookie", "a"),
        ("Authorization", "a"),
        ("Pragma", "no-cache"),
        ("Range", "bytes=0-1"),
        ("Range", "bytes=0-1,3-4"),
        ("If-Range", "\"a\""),
        ("If-None-Match", "\"a\""),
    ];
    (
        select(methods.to_vec()),
        subsequence(directives.to_vec(), 0..3),
        subsequence(fields.to_vec(), 0..3),
        select(&["/", "/?a", "/cgi-bin/"][..]),
    )
        .prop_map(|(method, directives, fields, target)| {
            let control = directives.join(", ");
            let mut lines: Vec<FieldLine<'_>> = fields
                .iter()
                .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
                .collect();
            if !control.is_empty() {
                lines.push(FieldLine::new("Cache-Control", control.as_bytes()));
            }
            RequestFacts::gather(method, target, &lines)
        })
}

pub(crate) fn response() -> impl Strategy<Value = ResponseFacts> {
    let directives = [
        "max-age=60",
        "max-age=0",
        "s-maxage=30",
        "no-store",
        "no-cache",
        "private",
        "public",
        "must-revalidate",
        "stale-if-error=20",
        "stale-while-revalidate=20",
    ];
    let statuses = [
        200, 200, 200, 204, 206, 206, 206, 301, 304, 304, 304, 404, 416, 500, 501, 502, 503, 504,
    ];
    let fields = [
        ("ETag", "\"a\""),
        ("Content-Range", "bytes 4-9/10"),
        ("Last-Modified", "Sun, 06 Nov 1994 08:40:00 GMT"),
        ("Set-Cookie", "a=b"),
        ("Vary", "*"),
        ("Age", "50"),
        ("Expires", "0"),
    ];
    (
        select(statuses.to_vec()),
        subsequence(directives.to_vec(), 0..4),
        subsequence(fields.to_vec(), 0..3),
    )
        .prop_map(|(status, directives, fields)| {
            let control = directives.join(", ");
            let mut lines: Vec<FieldLine<'_>> = fields
                .iter()
                .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
                .collect();
            if !control.is_empty() {
                lines.push(FieldLine::new("Cache-Control", control.as_bytes()));
            }
            ResponseFacts::gather(status, &lines, Timestamp(784_111_777))
        })
}

pub(crate) fn stored() -> impl Strategy<Value = StoredFacts> {
    let seconds = || prop::option::of((0..40_u32).prop_map(DeltaSeconds));
    (
        any::<[bool; 4]>(),
        0..60_u32,
        0..60_u32,
        seconds(),
        seconds(),
    )
        .prop_map(
            |([tagged, strong_tag, no_cache, must_revalidate], lifetime, age, swr, sie)| {
                StoredFacts {
                    status: 200,
                    has_validator: tagged,
                    strong_tag: tagged && strong_tag,
                    is_transformed: false,
                    keeps_lifetime: false,
                    ignored: StoringIgnored::NONE,
                    is_permitted: false,
                    no_cache,
                    must_revalidate,
                    freshness_lifetime: DeltaSeconds(lifetime),
                    corrected_initial_age: DeltaSeconds(age),
                    response_tick: at(0).tick,
                    stale_while_revalidate: swr,
                    stale_if_error: sie,
                }
            },
        )
}

pub(crate) fn failure() -> impl Strategy<Value = Failure> {
    select(&[Failure::Disconnected, Failure::Protocol, Failure::Ours][..])
}

pub(crate) fn world() -> impl Strategy<Value = World> {
    let rules = (any::<bool>(), 0..40_u32).prop_map(|(is_1998, limit)| Rules {
        profile: if is_1998 {
            Profile::Http1998
        } else {
            Profile::Rfc9111
        },
        disconnected_stale_max: DeltaSeconds(limit),
        ..RULES
    });
    let answer = || {
        prop_oneof![
            3 => response().prop_map(Answer::Response),
            1 => failure().prop_map(Answer::Failed),
        ]
    };
    let ends = select(&[Ends::Whole, Ends::Incomplete, Ends::NotAdmitted][..]);
    let unshared = prop::bool::weighted(0.1);
    let found = (
        prop::option::weighted(0.8, stored()),
        select(&[None, Some(Covers::Wanted), Some(Covers::Lacking)][..]),
    );
    let answers = (answer(), fits(), answer());
    let steps = prop::array::uniform3(0..40_u64);
    (
        request(),
        rules,
        unshared,
        found,
        answers,
        (response(), prop::bool::weighted(0.1)),
        ends,
        steps,
    )
        .prop_map(
            |(request, rules, unshared, found, answers, updated, ends, steps_s)| World {
                request,
                rules,
                unshared,
                stored: found.0,
                part: found.1,
                answer: answers.0,
                fits: answers.1,
                second_answer: answers.2,
                merged: updated.0,
                changes_vary: updated.1,
                ends,
                steps_s,
            },
        )
}

pub(crate) fn fits() -> impl Strategy<Value = Fits> {
    select(&[Fits::Same, Fits::Other][..])
}
