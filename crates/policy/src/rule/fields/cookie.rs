//! Responses that lose their cookie by a rule: who may share them then.

use super::FieldRules;
use crate::transaction::SetCookieRule;
use weir_extend::HeadFields;
use weir_semantics::{ResponseDirectives, is_same_field};

/// Fields that set a cookie.
const COOKIES: [&str; 2] = ["Set-Cookie", "Set-Cookie2"];

impl FieldRules {
    /// Whether caches behind this one are to keep a response with these `fields` for its client
    /// alone (`Cache-Control: private`), and [targeted fields](is_targeted_field) go: it loses its
    /// cookie, and nothing else would show them that what it has may be of the session that the
    /// cookie was for. Not if it says itself that it is for all, which has it stored here with a
    /// cookie.
    #[must_use]
    pub fn makes_private(&self, fields: &HeadFields<'_>) -> bool {
        self.removes_cookie(fields) && !may_be_shared(fields)
    }

    /// Whether a cookie that a response sets is taken away.
    fn removes_cookie(&self, fields: &HeadFields<'_>) -> bool {
        self.replaced().any(|name| {
            let mut cookies = COOKIES.iter();
            cookies.any(|cookie| is_same_field(name, cookie) && fields.get(cookie).is_some())
        })
    }
}

/// Whether a field is a targeted one (RFC 9213), whose cache reads no `Cache-Control`.
#[must_use]
pub fn is_targeted_field(name: &str) -> bool {
    let start = name.len().saturating_sub("-Cache-Control".len());
    let end = name.get(start..).unwrap_or_default();
    end.eq_ignore_ascii_case("-Cache-Control") || is_same_field(name, "Surrogate-Control")
}

fn may_be_shared(fields: &HeadFields<'_>) -> bool {
    let mut directives = ResponseDirectives::default();
    for line in fields.all("cache-control") {
        directives.add_line(line);
    }
    SetCookieRule::Permitted.permits(&directives)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{Message, parse_fields};

    #[test]
    fn response_that_loses_its_cookie_is_private_unless_it_says_that_it_is_for_all() {
        let cookie = "Set-Cookie: a=b\r\n";
        for (changes, head, expected) in [
            (&["remove Set-Cookie"][..], cookie, true),
            (&["set set_cookie: x"], cookie, true),
            (&["add Set-Cookie: x"], cookie, false),
            (&["remove X"], cookie, false),
            (&["remove Set-Cookie"], "A: b\r\n", false),
            (&["remove Set-Cookie2"], "Set-Cookie2: a=b\r\n", true),
            (
                &["remove Set-Cookie"],
                "Set-Cookie: a=b\r\nCache-Control: max-age=60\r\n",
                true,
            ),
            (
                &["remove Set-Cookie"],
                "Set-Cookie: a=b\r\nCache-Control: public\r\n",
                false,
            ),
            (
                &["remove Set-Cookie"],
                "Cache-Control: no-cache\r\nSet-Cookie: a=b\r\nCache-Control: s-maxage=5\r\n",
                false,
            ),
        ] {
            let rules = parse_fields(Message::Response, changes).expect("changes");
            let fields = HeadFields::of_section(head.as_bytes());
            assert_eq!(rules.makes_private(&fields), expected, "{changes:?} {head}");
        }
    }

    #[test]
    fn targeted_field_ends_in_cache_control_or_is_that_of_surrogates() {
        for (name, expected) in [
            ("CDN-Cache-Control", true),
            ("x-cache-control", true),
            ("Surrogate-Control", true),
            ("Cache-Control", false),
            ("Surrogate-Capability", false),
            ("Control", false),
        ] {
            assert_eq!(is_targeted_field(name), expected, "{name}");
        }
    }
}
