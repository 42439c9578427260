//! What is kept, how much of it, and under which name we speak of it.

use crate::config::invalid::Invalid;
use crate::config::setting::table;
use crate::config::value::{BadValue, Form, text_value};
use crate::config::values::byte_size::ByteSize;
use crate::config::values::field_name::FieldName;
use crate::config::values::span::Span;
use std::fmt;
use weir_policy::eviction::EvictionKind;
use weir_policy::{Profile, SetCookieRule};
use weir_semantics::TARGETED_FIELDS_MAX;

table! {
    /// The `[cache]` table.
    pub struct Cache in "cache" {
        /// Whether responses are stored and served again at all. Without, weir forwards every
        /// request by itself and opens no disk store: to compare with, or where only its links are
        /// wanted.
        enabled: bool = true;
        /// Budget of the memory tier, everything counted: heads, content, index and allocator
        /// overhead. 256 MiB holds a working set worth trying on any machine and leaves a small one
        /// alive.
        memory: ByteSize = ByteSize::from_mib(256), from ByteSize::from_mib(1), to ByteSize::from_gib(4096);
        /// Who leaves when the budget is full. S3-FIFO keeps one-hit responses from pushing out the
        /// rest, which most web traces are full of; the others are for comparison.
        eviction: EvictionKind = EvictionKind::DEFAULT;
        /// Which rules of storing apply. `http-1998` refuses more than RFC 9111: whatever has a
        /// cookie, is dynamic or speaks of caching itself. It is for comparison with the
        /// measurements of its time.
        profile: Profile = Profile::Rfc9111;
        /// What a response with Set-Cookie must say to be stored and shared. `permitted`: `public`
        /// or `s-maxage`, as many origins give everything a lifetime, and a session cookie with it.
        /// `rfc9111`: nothing more than any other response (RFC 9111 §7.3), for origins that mark
        /// what is not to be shared.
        set_cookie: SetCookieRule = SetCookieRule::Permitted;
        /// The largest response kept in memory, head and content; larger ones are kept on disk, or
        /// forwarded and not stored if there is none. A quarter of the default budget, so that one
        /// download cannot empty it; at most `memory`. Where it is left out and `memory` is
        /// smaller, it is `memory`. Under `s3-fifo` a new response that is larger than the small
        /// queue, a tenth of `memory` (of each shard, where `memory` is so large that it is split),
        /// is not kept in memory either (`too-large-for-small-queue`): it would drive out all other
        /// newcomers.
        largest_response: ByteSize = ByteSize::from_mib(64), from ByteSize::from_kib(1), to ByteSize::from_gib(4096);
        /// Heuristic freshness as a share of the time since Last-Modified (RFC 9111 §4.2.2 names 10
        /// % as typical); 0 for no heuristic freshness.
        heuristic_fraction_percent: u8 = 10, from 0, to 100;
        /// The longest heuristic freshness: what is not said by the origin is not believed for more
        /// than a day.
        heuristic_max: Span = Span::from_days(1), from Span::ZERO, to Span::from_days(365);
        /// Response fields that decide about storing in place of Cache-Control and Expires on
        /// gateway listeners, the one that wins first (RFC 9213): an origin can tell the caches in
        /// front of it something else than browsers. A field that is not a valid Structured Field
        /// is ignored whole. At most 8. Cache-Status names the field that decided behind the
        /// `detail` of the response that was fetched, not on hits: those repeat the field itself,
        /// and their `ttl` is what came of it. What is in memory at a reload stays as it was
        /// decided; what is read from disk and breaks the field that decides now is dropped.
        gateway_targeted_fields: Vec<FieldName> = cdn();
        /// The same for forward listeners. None: a forward proxy works for its clients, and
        /// CDN-Cache-Control is not for such caches.
        forward_targeted_fields: Vec<FieldName> = Vec::new();
        /// Our pseudonym in Via (RFC 9110 §7.6.3), Cache-Status (RFC 9211) and Proxy-Status (RFC
        /// 9209). Two caches in one chain want two names: a request that comes back with our own is
        /// a loop.
        name: Pseudonym = Pseudonym::default();
    }
}

/// A name that is a token in every field it appears in: a letter, then letters, digits, `-`, `_`,
/// `.`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pseudonym(String);

impl Pseudonym {
    /// The name as text, 1 to 64 bytes of ASCII.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Pseudonym {
    fn default() -> Self {
        Self("weir".to_owned())
    }
}

impl fmt::Display for Pseudonym {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for Pseudonym {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let begins_well = text.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
        if !begins_well || text.len() > NAME_BYTES_MAX || !text.bytes().all(token) {
            return Err(BadValue::new(format!(
                "`{text}` is not a name: a letter is expected, then at most 63 letters, digits, `-`, `_` or `.`"
            )));
        }
        Ok(Self(text.to_owned()))
    }
}

impl Form for Pseudonym {
    const FORM: &'static str = "a name, such as \"weir\"";
}

text_value!(Pseudonym);

/// The name goes into every response; longer ones help nobody.
const NAME_BYTES_MAX: usize = 64;

fn cdn() -> Vec<FieldName> {
    vec![FieldName::cdn_cache_control()]
}

/// Refuses a list of targeted fields that is too long or has a name twice.
fn check_targeted(key: &str, fields: &[FieldName]) -> Result<(), Invalid> {
    let key = format!("cache.{key}");
    if fields.len() > TARGETED_FIELDS_MAX {
        let problem = format!(
            "{} fields are more than {TARGETED_FIELDS_MAX}",
            fields.len()
        );
        return Err(Invalid::new(key, problem, "name fewer fields"));
    }
    let twice = fields.iter().enumerate().find(|(place, field)| {
        let same = |other: &FieldName| other.as_str().eq_ignore_ascii_case(field.as_str());
        fields[..*place].iter().any(same)
    });
    match twice {
        Some((_, field)) => Err(Invalid::new(
            key,
            format!("`{field}` is there twice"),
            "name each field once",
        )),
        None => Ok(()),
    }
}

/// Refuses a single response larger than everything kept, and lists of fields that cannot be meant.
pub(super) fn check(cache: &Cache) -> Result<(), Invalid> {
    check_targeted("gateway_targeted_fields", &cache.gateway_targeted_fields)?;
    check_targeted("forward_targeted_fields", &cache.forward_targeted_fields)?;
    if cache.largest_response > cache.memory {
        return Err(Invalid::new(
            "cache.largest_response",
            format!(
                "{} is more than cache.memory, {}",
                cache.largest_response, cache.memory
            ),
            format!("raise cache.memory, or use at most \"{}\"", cache.memory),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pseudonym_must_be_a_token_of_at_most_64_characters() {
        let check = |text: &str, expected: bool| {
            assert_eq!(text.parse::<Pseudonym>().is_ok(), expected, "{text}");
        };
        check("weir", true);
        check("edge-1.example", true);
        check(&"a".repeat(64), true);
        check(&"a".repeat(65), false);
        check("", false);
        check("1weir", false);
        check("my cache", false);
        check("a;b", false);
        check("a,b", false);
        check("wéir", false);
    }
}
