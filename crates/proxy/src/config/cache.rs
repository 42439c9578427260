//! What is stored, how much of it, and the name of this cache in responses.

use crate::config::setting::invalid::Invalid;
use crate::config::setting::mistakes::Mistakes;
use crate::config::setting::table;
use crate::config::values::byte_size::ByteSize;
use crate::config::values::field_name::FieldName;
use crate::config::values::text::{BadValue, Form, text_value};
use crate::config::values::time::span::Span;
use std::fmt;
use weir_policy::eviction::EvictionKind;
use weir_policy::{Profile, SetCookieRule};
use weir_semantics::TARGETED_FIELDS_MAX;

table! {
    /// The `[cache]` table.
    pub struct Cache in "cache" {
        /// Whether responses are stored at all. If not, Weir forwards every request and opens no
        /// disk store: for comparison, or where only its handling of links is needed.
        enabled: bool = true;
        /// Bytes of the memory tier, including heads, content, index and overhead of the allocator.
        /// 256 MiB hold a useful working set on any machine and leave room on a small one.
        memory: ByteSize = ByteSize::from_mib(256), from MEMORY_MIN, to ByteSize::from_gib(4096);
        /// Which entry is evicted when the budget is full. With S3-FIFO, responses that are
        /// requested once do not evict the others, and most web traces are full of them; the other
        /// policies are for comparison.
        eviction: EvictionKind = EvictionKind::DEFAULT;
        /// Which rules of storing apply. `http-1998` refuses more than RFC 9111 does: responses
        /// with a cookie, dynamic ones, and those with fields for caches. It is for comparison with
        /// measurements of that time.
        profile: Profile = Profile::Rfc9111;
        /// What a response with Set-Cookie must say to be stored and shared. `permitted`: `public`
        /// or `s-maxage`, since many origins give a lifetime to everything, session cookies
        /// included. `rfc9111`: nothing more than any other response (RFC 9111 §7.3), for origins
        /// that mark what may not be shared.
        set_cookie: SetCookieRule = SetCookieRule::Permitted;
        /// The largest response kept in memory, by content alone. Larger ones are kept on disk, or
        /// are forwarded and not stored if there is no disk. A quarter of the default budget, so
        /// that one download cannot fill it; at most `memory`, which is also the default where
        /// `memory` is smaller. Under `s3-fifo` a new response that is larger than the small queue
        /// is not kept in memory either (`too-large-for-small-queue`), since it would evict all
        /// other new ones; that queue is a tenth of `memory`, or of a shard where `memory` is so
        /// large that it is split.
        largest_response: ByteSize = ByteSize::from_mib(64), from ByteSize::from_kib(1), to ByteSize::from_gib(4096);
        /// Heuristic freshness as a share of the time since Last-Modified (RFC 9111 §4.2.2 names 10
        /// % as typical); 0 for no heuristic freshness.
        heuristic_fraction_percent: u8 = 10, from 0, to 100;
        /// The longest heuristic freshness. A lifetime that the origin does not give is assumed for
        /// at most a day.
        heuristic_max: Span = Span::from_days(1), from Span::ZERO, to Span::from_days(365);
        /// Response fields that decide about storing on gateway listeners, in place of
        /// Cache-Control and Expires; the first that is present wins (RFC 9213). So an origin can
        /// give its gateways other directives than browsers. A field that is not a valid Structured
        /// Field is ignored. At most 8. Cache-Status names the field that decided, behind the
        /// `detail` of the response that was fetched; hits repeat the field itself, and their `ttl`
        /// comes from it. A reload does not change responses in memory; a response that is read
        /// from disk and violates the field that decides now is dropped.
        gateway_targeted_fields: Vec<FieldName> = cdn();
        /// The same for forward listeners. None by default: a forward proxy works for its clients,
        /// and CDN-Cache-Control is not meant for such caches.
        forward_targeted_fields: Vec<FieldName> = Vec::new();
        /// Weir's pseudonym in Via (RFC 9110 §7.6.3), Cache-Status (RFC 9211) and Proxy-Status (RFC
        /// 9209). Two caches in one chain need two names: a request that comes back with this name
        /// is a loop.
        name: Pseudonym = Pseudonym::default();
    }
}

/// The least memory that a cache may have.
pub const MEMORY_MIN: ByteSize = ByteSize::from_mib(1);

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

/// The name is in every response: a longer one costs bytes and tells no more.
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

/// Refuses a largest response above the budget, and lists of fields that contradict themselves.
pub(super) fn check(cache: &Cache, mistakes: &mut Mistakes) {
    for (key, fields) in [
        ("gateway_targeted_fields", &cache.gateway_targeted_fields),
        ("forward_targeted_fields", &cache.forward_targeted_fields),
    ] {
        mistakes.note(check_targeted(key, fields));
    }
    // of a memory outside its range that is said already
    if cache.largest_response > cache.memory && cache.memory >= MEMORY_MIN {
        mistakes.note(Err(Invalid::new(
            "cache.largest_response",
            format!(
                "{} is more than cache.memory, {}",
                cache.largest_response, cache.memory
            ),
            format!("raise cache.memory, or use at most \"{}\"", cache.memory),
        )));
    }
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
