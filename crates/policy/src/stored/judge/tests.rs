use super::*;
use crate::now::Tick;
use crate::stored::ignored::StoringIgnored;
use weir_semantics::{DeltaSeconds, Timestamp};

/// Fresh for 60 seconds from second 0.
const STORED: StoredFacts = StoredFacts {
    status: 200,
    strong_tag: false,
    is_transformed: false,
    keeps_lifetime: false,
    ignored: StoringIgnored::NONE,
    is_permitted: false,
    has_validator: true,
    no_cache: false,
    must_revalidate: false,
    freshness_lifetime: DeltaSeconds(60),
    corrected_initial_age: DeltaSeconds::ZERO,
    response_tick: Tick(0),
    stale_while_revalidate: None,
    stale_if_error: None,
};

fn at(at_s: u64) -> Now {
    Now {
        wall: Timestamp(0),
        tick: Tick(at_s * 1000),
    }
}

fn directives(control: &str) -> RequestDirectives {
    let mut directives = RequestDirectives::default();
    directives.add_line(control.as_bytes());
    directives
}

fn check(control: &str, stored: &StoredFacts, at_s: u64, expected: Judgement) {
    let judged = judge(at(at_s), &directives(control), stored);
    assert_eq!(judged, expected, "{control:?} after {at_s} s");
}

#[test]
fn stale_outranks_max_age_and_min_fresh_as_forward_reason() {
    let (request, stale) = (
        Judgement::Forward(Fwd::Request),
        Judgement::Forward(Fwd::Stale),
    );
    check("max-age=9", &STORED, 10, request);
    check("max-age=9", &STORED, 60, stale);
    check("min-fresh=9", &STORED, 52, request);
    check("min-fresh=9", &STORED, 60, stale);
    check("no-cache", &STORED, 0, request);
    check("no-cache", &STORED, 100, request);
    let no_cache = StoredFacts {
        no_cache: true,
        ..STORED
    };
    check("", &no_cache, 0, stale);
    check("max-stale", &no_cache, 0, stale);
}

#[test]
fn response_once_too_old_to_use_stays_unusable() {
    let windows = [None, Some(DeltaSeconds(20))];
    let requests = [
        "",
        "max-age=40",
        "max-age=70",
        "min-fresh=10",
        "max-stale",
        "max-stale=10",
        "max-age=40, max-stale=100",
        "max-age=65, max-stale=10",
        "min-fresh=10, max-stale",
        "no-cache, max-stale",
    ];
    for (window, must_revalidate) in windows.iter().flat_map(|w| [(*w, false), (*w, true)]) {
        let stored = StoredFacts {
            stale_while_revalidate: window,
            must_revalidate,
            ..STORED
        };
        for request in requests {
            let directives = directives(request);
            let used = (0..200).map(|at_s| {
                let judged = judge(at(at_s), &directives, &stored);
                matches!(judged, Judgement::Use(_))
            });
            assert!(
                used.is_sorted_by(|younger, older| younger >= older),
                "{request:?} {stored:?}"
            );
        }
    }
}

/// The tests that are made, by their words, and what they come to.
fn noted(control: &str, stored: &StoredFacts, at_s: u64) -> (Vec<&'static str>, Judgement) {
    let mut tests = Vec::new();
    let directives = directives(control);
    let judged = judge_noting(at(at_s), &directives, stored, |test| {
        tests.push(test.as_str());
    });
    assert_eq!(judged, judge(at(at_s), &directives, stored));
    (tests, judged)
}

#[test]
fn last_test_that_is_noted_is_the_one_that_decides() {
    let check = |control, stored: &StoredFacts, at_s, last: &str, expected| {
        let (tests, judged) = noted(control, stored, at_s);
        assert_eq!(judged, expected, "{control:?} after {at_s} s");
        assert_eq!(tests.last(), Some(&last), "{control:?} after {at_s} s");
    };
    let forward = Judgement::Forward;
    check("", &STORED, 59, "freshness", Judgement::Use(Hit::Fresh));
    check("", &STORED, 60, "stale", forward(Fwd::Stale));
    check(
        "no-cache",
        &STORED,
        0,
        "request-no-cache",
        forward(Fwd::Request),
    );
    check(
        "max-age=9",
        &STORED,
        10,
        "request-max-age",
        forward(Fwd::Request),
    );
    check(
        "min-fresh=9",
        &STORED,
        52,
        "request-min-fresh",
        forward(Fwd::Request),
    );
    check(
        "min-fresh=9",
        &STORED,
        60,
        "request-min-fresh",
        forward(Fwd::Stale),
    );
    let used = Judgement::Use(Hit::MaxStale);
    check("max-stale", &STORED, 99, "request-max-stale", used);
    let no_cache = StoredFacts {
        no_cache: true,
        ..STORED
    };
    check("", &no_cache, 0, "response-no-cache", forward(Fwd::Stale));
    let windowed = StoredFacts {
        stale_while_revalidate: Some(DeltaSeconds(5)),
        ..STORED
    };
    let used = Judgement::Use(Hit::WhileRevalidate);
    check("", &windowed, 64, "stale-while-revalidate", used);
    check("", &windowed, 66, "stale", forward(Fwd::Stale));
}
