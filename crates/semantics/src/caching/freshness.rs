//! How long a response is fresh and how old it is, RFC 9111 §4.2. The names are those of the RFC.

use crate::{
    facts::{Expires, ResponseFacts},
    status::is_heuristically_cacheable,
    time::{DeltaSeconds, Timestamp},
    words,
};

/// A freshness lifetime and where it comes from (RFC 9111 §4.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// The response says so; 0 where what it says is invalid.
    Explicit(DeltaSeconds),
    /// Guessed from `Last-Modified`, with the response's permission.
    Heuristic(DeltaSeconds),
    /// Neither: always stale.
    None,
}

impl Lifetime {
    /// The lifetime itself, 0 if there is none.
    #[must_use]
    pub const fn seconds(self) -> DeltaSeconds {
        match self {
            Self::Explicit(seconds) | Self::Heuristic(seconds) => seconds,
            Self::None => DeltaSeconds::ZERO,
        }
    }
}

/// How a lifetime is guessed where the response does not say (RFC 9111 §4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristic {
    /// The percentage of the time since `Last-Modified` that the response is taken to be fresh, 0
    /// to 100.
    pub fraction_percent: u8,
    /// The longest lifetime that is guessed.
    pub max: DeltaSeconds,
    /// The lifetime that the operator gives such responses, in place of a guess, with or without
    /// `Last-Modified`: the RFC leaves the heuristic to the cache.
    pub assigned: Option<DeltaSeconds>,
}

impl Default for Heuristic {
    /// 10 %, the "typical setting" of RFC 9111 §4.2.2, and at most one day: the age from which RFC
    /// 7234 §5.5.4 had caches warn of a heuristic.
    fn default() -> Self {
        Self {
            fraction_percent: 10,
            max: DeltaSeconds(86_400),
            assigned: None,
        }
    }
}

/// May a lifetime be guessed (RFC 9111 §4.2.2)? Only if the response does not give one, and its
/// status is heuristically cacheable or it is marked `public`.
#[must_use]
pub const fn heuristic_permitted(res: &ResponseFacts) -> bool {
    !res.has_explicit_lifetime()
        && (is_heuristically_cacheable(res.status) || res.directives.public)
}

words! {
    /// What gives a response its freshness lifetime.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum LifetimeSource {
        /// `s-maxage` (RFC 9111 §5.2.2.10).
        SMaxage = "s-maxage",
        /// `max-age` (RFC 9111 §5.2.2.1).
        MaxAge = "max-age",
        /// `Expires`, less `Date` or the time of receipt (RFC 9111 §5.3).
        Expires = "expires",
        /// A tenth, or another fraction, of the time since `Last-Modified` (RFC 9111 §4.2.2).
        Heuristic = "heuristic",
        /// The operator, in place of a heuristic.
        Assigned = "assigned",
        /// Nothing: it is stale from the beginning.
        None = "none",
    }
}

/// RFC 9111 §4.2.1 for a shared cache: `s-maxage`, else `max-age`, else `Expires` less `Date`, else
/// a guess.
///
/// `date_value` is the value of `Date`, or the time of receipt where there is none (RFC 9110
/// §6.6.1).
#[must_use]
pub fn freshness_lifetime(
    res: &ResponseFacts,
    date_value: Timestamp,
    heuristic: &Heuristic,
) -> Lifetime {
    let (source, seconds) = sourced_lifetime(res, date_value, heuristic);
    match source {
        LifetimeSource::SMaxage | LifetimeSource::MaxAge | LifetimeSource::Expires => {
            Lifetime::Explicit(seconds)
        }
        LifetimeSource::Heuristic | LifetimeSource::Assigned => Lifetime::Heuristic(seconds),
        LifetimeSource::None => Lifetime::None,
    }
}

/// The same, with what gives it; 0 if nothing does.
#[must_use]
pub fn sourced_lifetime(
    res: &ResponseFacts,
    date_value: Timestamp,
    heuristic: &Heuristic,
) -> (LifetimeSource, DeltaSeconds) {
    let directives = &res.directives;
    if let Some(seconds) = directives.s_maxage {
        return (LifetimeSource::SMaxage, seconds);
    }
    if let Some(seconds) = directives.max_age {
        return (LifetimeSource::MaxAge, seconds);
    }
    match (res.expires, res.last_modified) {
        (Some(Expires::At(expires)), _) => (LifetimeSource::Expires, expires.since(date_value)),
        (Some(Expires::Invalid), _) => (LifetimeSource::Expires, DeltaSeconds::ZERO),
        (None, _) if !heuristic_permitted(res) => (LifetimeSource::None, DeltaSeconds::ZERO),
        (None, last_modified) => heuristic.lifetime(date_value, last_modified),
    }
}

impl Heuristic {
    /// The lifetime of a response that permits a heuristic.
    fn lifetime(
        &self,
        date_value: Timestamp,
        last_modified: Option<Timestamp>,
    ) -> (LifetimeSource, DeltaSeconds) {
        if let Some(assigned) = self.assigned {
            return (LifetimeSource::Assigned, assigned);
        }
        let guess = last_modified.map(|last_modified| {
            let unchanged = u64::from(date_value.since(last_modified).0);
            let guess = DeltaSeconds::from_secs(unchanged * u64::from(self.fraction_percent) / 100);
            guess.min(self.max)
        });
        match guess {
            Some(guess) => (LifetimeSource::Heuristic, guess),
            None => (LifetimeSource::None, DeltaSeconds::ZERO),
        }
    }
}

/// RFC 9111 §4.2.3: the age of a response when it was received.
///
/// `age_value` is what `Age` says, `date_value` what `Date` says or `response_time` where there is
/// none, `request_time` when the request was sent and `response_time` when the response head
/// arrived.
#[must_use]
pub fn corrected_initial_age(
    age_value: Option<DeltaSeconds>,
    date_value: Timestamp,
    request_time: Timestamp,
    response_time: Timestamp,
) -> DeltaSeconds {
    let apparent_age = response_time.since(date_value);
    let response_delay = response_time.since(request_time);
    let corrected_age_value = age_value.unwrap_or_default().saturating_add(response_delay);
    apparent_age.max(corrected_age_value)
}

/// RFC 9111 §4.2.3: the age of a stored response at `now`; a clock that went back adds nothing.
#[must_use]
pub const fn current_age(
    corrected_initial_age: DeltaSeconds,
    response_time: Timestamp,
    now: Timestamp,
) -> DeltaSeconds {
    let resident_time = now.since(response_time);
    corrected_initial_age.saturating_add(resident_time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::field::FieldLine;

    const DATE: Timestamp = Timestamp(784_111_777); // Sun, 06 Nov 1994 08:49:37 GMT

    fn check(status: u16, lines: &[(&str, &str)], expected: Lifetime) {
        let fields: Vec<_> = lines
            .iter()
            .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
            .collect();
        let facts = ResponseFacts::gather(status, &fields, DATE);
        assert_eq!(
            freshness_lifetime(&facts, DATE, &Heuristic::default()),
            expected,
            "{status} {lines:?}"
        );
    }

    #[test]
    fn source_of_the_lifetime_is_the_first_that_gives_one() {
        let check = |lines: &[(&str, &str)], expected: (LifetimeSource, u32)| {
            let fields = lines.iter();
            let fields = fields.map(|(name, value)| FieldLine::new(name, value.as_bytes()));
            let fields: Vec<_> = fields.collect();
            let facts = ResponseFacts::gather(200, &fields, DATE);
            let (source, seconds) = sourced_lifetime(&facts, DATE, &Heuristic::default());
            assert_eq!((source, seconds.0), expected, "{lines:?}");
        };
        let expires = ("Expires", "Sun, 06 Nov 1994 08:49:47 GMT");
        let modified = ("Last-Modified", "Sun, 06 Nov 1994 08:47:57 GMT");
        let both = ("Cache-Control", "max-age=1, s-maxage=2");
        check(&[both, expires], (LifetimeSource::SMaxage, 2));
        let max_age = ("Cache-Control", "max-age=1");
        check(&[max_age, expires], (LifetimeSource::MaxAge, 1));
        check(&[expires, modified], (LifetimeSource::Expires, 10));
        check(&[("Expires", "0"), modified], (LifetimeSource::Expires, 0));
        check(&[modified], (LifetimeSource::Heuristic, 10));
        check(&[], (LifetimeSource::None, 0));
    }

    const fn explicit(seconds: u32) -> Lifetime {
        Lifetime::Explicit(DeltaSeconds(seconds))
    }

    const fn heuristic(seconds: u32) -> Lifetime {
        Lifetime::Heuristic(DeltaSeconds(seconds))
    }

    #[test]
    fn assigned_lifetime_takes_the_place_of_a_guess_and_of_nothing_else() {
        let assigned = Heuristic {
            assigned: Some(DeltaSeconds(7)),
            ..Heuristic::default()
        };
        let check = |status: u16, lines: &[(&str, &str)], expected: Lifetime| {
            let fields = lines.iter();
            let fields = fields.map(|(name, value)| FieldLine::new(name, value.as_bytes()));
            let fields: Vec<_> = fields.collect();
            let facts = ResponseFacts::gather(status, &fields, DATE);
            let found = freshness_lifetime(&facts, DATE, &assigned);
            assert_eq!(found, expected, "{status} {lines:?}");
        };
        let modified = ("Last-Modified", "Sun, 06 Nov 1994 08:49:27 GMT");
        check(200, &[], heuristic(7));
        check(200, &[modified], heuristic(7));
        check(404, &[], heuristic(7));
        check(302, &[modified], Lifetime::None);
        check(302, &[("Cache-Control", "public")], heuristic(7));
        check(
            200,
            &[("Cache-Control", "max-age=3"), modified],
            explicit(3),
        );
        check(200, &[("Expires", "0")], explicit(0));
    }

    #[test]
    fn s_maxage_precedes_max_age_and_max_age_precedes_expires() {
        let expires = ("Expires", "Sun, 06 Nov 1994 08:49:47 GMT");
        check(
            200,
            &[("Cache-Control", "max-age=1, s-maxage=3600"), expires],
            explicit(3600),
        );
        check(
            200,
            &[("Cache-Control", "max-age=3600, s-maxage=1"), expires],
            explicit(1),
        );
        check(
            200,
            &[("Cache-Control", "max-age=3600"), expires],
            explicit(3600),
        );
        check(200, &[("Cache-Control", "max-age=0"), expires], explicit(0));
        check(
            200,
            &[("Cache-Control", "max-age=3600"), ("Expires", "0")],
            explicit(3600),
        );
        check(200, &[("Cache-Control", "public"), expires], explicit(10));
        check(599, &[expires], explicit(10));
    }

    #[test]
    fn invalid_or_past_lifetime_counts_as_zero() {
        check(200, &[("Cache-Control", "max-age=-3600")], explicit(0));
        check(
            200,
            &[
                ("Cache-Control", "max-age='3600'"),
                ("Expires", "Sun, 06 Nov 1994 08:49:47 GMT"),
            ],
            explicit(0),
        );
        check(200, &[("Expires", "0")], explicit(0));
        check(
            200,
            &[("Expires", "Sun, 06 Nov 1994 08:49:37 GMT")],
            explicit(0),
        );
        check(
            200,
            &[("Expires", "Sun, 06 Nov 1994 08:49:27 GMT")],
            explicit(0),
        );
        check(
            200,
            &[
                ("Expires", "0"),
                ("Last-Modified", "Sun, 06 Nov 1994 08:48:37 GMT"),
            ],
            explicit(0),
        );
    }

    #[test]
    fn heuristic_lifetime_is_a_tenth_since_modification_up_to_one_day() {
        check(
            200,
            &[("Last-Modified", "Sun, 06 Nov 1994 08:47:57 GMT")],
            heuristic(10),
        );
        check(
            200,
            &[("Last-Modified", "Sun, 06 Nov 1994 08:49:28 GMT")],
            heuristic(0),
        );
        check(
            200,
            &[("Last-Modified", "Sun, 06 Nov 1994 08:49:38 GMT")],
            heuristic(0),
        );
        check(
            200,
            &[("Last-Modified", "Thu, 27 Oct 1994 08:49:37 GMT")],
            heuristic(86_400),
        );
        check(
            200,
            &[("Last-Modified", "Thu, 27 Oct 1993 08:49:37 GMT")],
            heuristic(86_400),
        );
    }

    #[test]
    fn heuristic_lifetime_requires_cacheable_status_or_public() {
        let modified = ("Last-Modified", "Sun, 06 Nov 1994 08:47:57 GMT");
        check(200, &[], Lifetime::None);
        check(404, &[modified], heuristic(10));
        check(403, &[modified], Lifetime::None);
        check(403, &[modified, ("Cache-Control", "public")], heuristic(10));
        check(200, &[("Last-Modified", "foo")], Lifetime::None);
    }

    #[test]
    fn initial_age_is_the_greater_of_apparent_and_corrected_age() {
        let check = |age: Option<u32>, date, request, response, expected| {
            let age = corrected_initial_age(
                age.map(DeltaSeconds),
                Timestamp(date),
                Timestamp(request),
                Timestamp(response),
            );
            assert_eq!(age, DeltaSeconds(expected));
        };
        check(None, 100, 100, 100, 0);
        check(None, 90, 100, 100, 10);
        check(Some(5), 90, 100, 100, 10);
        check(Some(15), 90, 100, 100, 15);
        check(Some(5), 100, 100, 103, 8);
        // the next hop's clock is fast, or ours went back
        check(Some(5), 200, 100, 100, 5);
        check(Some(5), 100, 100, 90, 5);
        check(Some(1 << 31), 100, 100, 103, 1 << 31);
        assert_eq!(
            current_age(DeltaSeconds(5), Timestamp(100), Timestamp(107)),
            DeltaSeconds(12)
        );
        assert_eq!(
            current_age(DeltaSeconds(5), Timestamp(100), Timestamp(90)),
            DeltaSeconds(5)
        );
    }
}
