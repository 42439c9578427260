//! Preconditions evaluated against a stored response, RFC 9110 §13 as RFC 9111 §4.3.2 has a cache
//! apply it.
//!
//! `If-Match` and `If-Unmodified-Since` concern the origin's current state and are not applicable
//! to a cache (RFC 9111 §4.3.2): they are passed over here. [`crate::RequestFacts::preconditions`]
//! counts them too, so that a cache can forward such a request.

use crate::date::parse_http_date;
use crate::fields::field::{FieldLine, line_named, lines_named};
use crate::method::Method;
use crate::time::Timestamp;
use crate::validation::entity_tag::EntityTag;

/// What a stored response has to be validated with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validators<'a> {
    /// The entity tag.
    pub entity_tag: Option<EntityTag<'a>>,
    /// `Last-Modified`.
    pub last_modified: Option<Timestamp>,
    /// `Date`, or the time of receipt where there is none.
    pub date: Option<Timestamp>,
}

/// What the preconditions of a request come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// There is none that a cache evaluates.
    Absent,
    /// It holds: answer as if there were none.
    Proceed,
    /// The client has the stored response already: 304.
    NotModified,
    /// It fails for a method that is neither `GET` nor `HEAD`: 412.
    Failed,
}

/// Evaluates `If-None-Match`, else `If-Modified-Since`, in the order of RFC 9110 §13.2.2.
///
/// Without `Last-Modified` the stored response's `Date` stands in (RFC 9111 §4.3.2). `now` is for
/// two-digit years.
#[must_use]
pub fn evaluate(
    method: Method,
    fields: &[FieldLine<'_>],
    v: &Validators<'_>,
    now: Timestamp,
) -> Precondition {
    let is_read = matches!(method, Method::Get | Method::Head);
    let mut if_none_match = lines_named(fields, "if-none-match").peekable();
    if if_none_match.peek().is_some() {
        return match (if_none_match.any(|value| names_tag(value, v)), is_read) {
            (false, _) => Precondition::Proceed,
            (true, true) => Precondition::NotModified,
            (true, false) => Precondition::Failed,
        };
    }
    // RFC 9110 §13.1.3: ignored with another method, when invalid, and when repeated
    let Some(since) =
        only_line(fields, "if-modified-since").and_then(|value| parse_http_date(value, now))
    else {
        return Precondition::Absent;
    };
    match v.last_modified.or(v.date) {
        _ if !is_read => Precondition::Absent,
        Some(modified) if modified <= since => Precondition::NotModified,
        _ => Precondition::Proceed,
    }
}

/// Does `If-Range` let the range through (RFC 9110 §13.1.5)? Also true without such a field. False:
/// send the whole.
///
/// An entity tag must be the same strongly. A date must be the `Last-Modified` exactly, and that
/// must be strong: at least one second before `Date` (RFC 9110 §8.8.2.2). `now` is for two-digit
/// years.
#[must_use]
pub fn if_range_holds(fields: &[FieldLine<'_>], v: &Validators<'_>, now: Timestamp) -> bool {
    if line_named(fields, "if-range").is_none() {
        return true;
    }
    let Some(value) = only_line(fields, "if-range") else {
        return false;
    };
    if let Some(tag) = EntityTag::parse(value) {
        return v.entity_tag.is_some_and(|stored| stored.strong_eq(&tag));
    }
    let Some(date) = parse_http_date(value, now) else {
        return false;
    };
    v.last_modified
        .is_some_and(|modified| modified == date && v.date.is_some_and(|date| modified < date))
}

/// Does this `If-None-Match` value name the stored response? `*` names any (RFC 9110 §13.1.2).
fn names_tag(value: &[u8], v: &Validators<'_>) -> bool {
    value == b"*"
        || v.entity_tag
            .is_some_and(|stored| EntityTag::parse_list(value).any(|tag| tag.weak_eq(&stored)))
}

/// The value of the line with this name if there is exactly one.
fn only_line<'a>(fields: &[FieldLine<'a>], name: &str) -> Option<&'a [u8]> {
    let mut lines = lines_named(fields, name);
    let value = lines.next()?;
    lines.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
    const MODIFIED: Timestamp = Timestamp(784_111_777);

    fn stored(tag: &'static str) -> Validators<'static> {
        Validators {
            entity_tag: EntityTag::parse(tag.as_bytes()),
            last_modified: Some(MODIFIED),
            date: Some(Timestamp(784_111_778)),
        }
    }

    fn lines<'a>(lines: &[(&'a str, &'a str)]) -> Vec<FieldLine<'a>> {
        lines
            .iter()
            .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
            .collect()
    }

    fn check(fields: &[(&str, &str)], expected: Precondition) {
        let found = evaluate(Method::Get, &lines(fields), &stored("\"a\""), MODIFIED);
        assert_eq!(found, expected, "{fields:?}");
    }

    fn check_range(tag: &'static str, fields: &[(&str, &str)], expected: bool) {
        assert_eq!(
            if_range_holds(&lines(fields), &stored(tag), MODIFIED),
            expected,
            "{tag} {fields:?}"
        );
    }

    #[test]
    fn if_none_match_compares_weakly_at_any_list_position() {
        for value in [
            "\"a\"",
            "W/\"a\"",
            "\"b\", \"a\"",
            "\"a\", \"b\"",
            "*",
            "\"b\",, W/\"a\" ",
        ] {
            check(&[("If-None-Match", value)], Precondition::NotModified);
        }
        for value in ["\"b\"", "a", "\"A\"", "", "w/\"a\"", "\"a"] {
            check(&[("If-None-Match", value)], Precondition::Proceed);
        }
        check(
            &[("If-None-Match", "\"b\""), ("if-none-match", "\"a\"")],
            Precondition::NotModified,
        );
    }

    #[test]
    fn if_none_match_takes_precedence_over_if_modified_since() {
        check(
            &[("If-None-Match", "\"b\""), ("If-Modified-Since", AT)],
            Precondition::Proceed,
        );
        check(
            &[("If-Modified-Since", BEFORE), ("If-None-Match", "\"a\"")],
            Precondition::NotModified,
        );
    }

    #[test]
    fn if_modified_since_matches_from_the_same_second_on() {
        check(&[("If-Modified-Since", BEFORE)], Precondition::Proceed);
        check(&[("If-Modified-Since", AT)], Precondition::NotModified);
        check(&[("If-Modified-Since", AFTER)], Precondition::NotModified);
        check(&[("If-Modified-Since", "foo")], Precondition::Absent);
        check(
            &[("If-Modified-Since", AT), ("If-Modified-Since", AT)],
            Precondition::Absent,
        );
        check(&[], Precondition::Absent);
    }

    #[test]
    fn date_is_compared_if_last_modified_is_missing() {
        let mut validators = Validators {
            date: Some(MODIFIED),
            ..Validators::default()
        };
        let evaluate = |v: &Validators<'_>, value| {
            evaluate(
                Method::Get,
                &lines(&[("If-Modified-Since", value)]),
                v,
                MODIFIED,
            )
        };
        assert_eq!(evaluate(&validators, AT), Precondition::NotModified);
        assert_eq!(evaluate(&validators, BEFORE), Precondition::Proceed);
        validators.date = None;
        assert_eq!(evaluate(&validators, AT), Precondition::Proceed);
    }

    #[test]
    fn if_match_and_if_unmodified_since_are_ignored() {
        check(&[("If-Match", "\"b\"")], Precondition::Absent);
        check(&[("If-Unmodified-Since", BEFORE)], Precondition::Absent);
    }

    #[test]
    fn matching_if_none_match_fails_the_precondition_of_a_post() {
        let evaluate = |fields| evaluate(Method::Post, &lines(fields), &stored("\"a\""), MODIFIED);
        assert_eq!(
            evaluate(&[("If-None-Match", "\"a\"")]),
            Precondition::Failed
        );
        assert_eq!(
            evaluate(&[("If-None-Match", "\"b\"")]),
            Precondition::Proceed
        );
        assert_eq!(evaluate(&[("If-Modified-Since", AT)]), Precondition::Absent);
    }

    #[test]
    fn if_range_holds_only_for_an_equal_strong_tag_or_equal_date() {
        check_range("\"a\"", &[], true);
        check_range("\"a\"", &[("If-Range", "\"a\"")], true);
        check_range("\"a\"", &[("If-Range", "\"b\"")], false);
        check_range("\"a\"", &[("If-Range", "W/\"a\"")], false);
        check_range("W/\"a\"", &[("If-Range", "\"a\"")], false);
        check_range("W/\"a\"", &[("If-Range", "W/\"a\"")], false);
        check_range("\"a\"", &[("If-Range", "a")], false);
        check_range("\"a\"", &[("If-Range", "\"a\", \"b\"")], false);
        check_range(
            "\"a\"",
            &[("If-Range", "\"a\""), ("If-Range", "\"a\"")],
            false,
        );
        check_range("", &[("If-Range", AT)], true);
        check_range("", &[("If-Range", AFTER)], false);
        check_range("", &[("If-Range", BEFORE)], false);
    }

    #[test]
    fn last_modified_not_before_date_is_too_weak_for_if_range() {
        let mut validators = stored("");
        validators.date = Some(MODIFIED);
        assert!(!if_range_holds(
            &lines(&[("If-Range", AT)]),
            &validators,
            MODIFIED
        ));
        validators.date = None;
        assert!(!if_range_holds(
            &lines(&[("If-Range", AT)]),
            &validators,
            MODIFIED
        ));
    }
}
