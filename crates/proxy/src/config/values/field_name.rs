//! The name of a targeted cache control field (RFC 9213).

use crate::config::values::text::{BadValue, Form, text_value};
use std::fmt;
use weir_semantics::{Known, identify, is_token};

/// A field name, in the spelling it was given in; compared without regard to case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldName(String);

/// The name is in every Cache-Status that its field decides: a longer one costs bytes.
const NAME_BYTES_MAX: usize = 64;

impl FieldName {
    /// The name as text, 1 to 64 bytes of ASCII.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `CDN-Cache-Control` (RFC 9213 §3.1).
    #[must_use]
    pub fn cdn_cache_control() -> Self {
        Self(Known::CdnCacheControl.as_str().to_owned())
    }
}

impl fmt::Display for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for FieldName {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let begins_well = text.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
        if !begins_well || text.len() > NAME_BYTES_MAX || !is_token(text.as_bytes()) {
            return Err(BadValue::new(format!(
                "`{text}` is not a field name: a letter is expected, then at most 63 letters, digits or `-`"
            )));
        }
        // others that we know say something else, and none of them is a Dictionary of directives
        if identify(text).is_some_and(|known| known != Known::CdnCacheControl) {
            return Err(BadValue::new(format!(
                "`{text}` is not a targeted cache control field (RFC 9213)"
            ))
            .suggesting("CDN-Cache-Control"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl Form for FieldName {
    const FORM: &'static str = "a field name, such as \"CDN-Cache-Control\"";
}

impl Form for Vec<FieldName> {
    const FORM: &'static str = "a list of field names, such as [\"CDN-Cache-Control\"]";
}

text_value!(FieldName);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targeted_field_name_must_be_an_unreserved_token() {
        let check = |text: &str, expected: bool| {
            assert_eq!(text.parse::<FieldName>().is_ok(), expected, "{text}");
        };
        check("CDN-Cache-Control", true);
        check("cdn-cache-control", true);
        check("Example-CDN-Cache-Control", true);
        check(&"a".repeat(64), true);
        check(&"a".repeat(65), false);
        check("", false);
        check("Cache Control", false);
        check("Cache-Control:", false);
        check("Cache-Control", false);
        check("Surrogate-Control", false);
        check("Set-Cookie", false);
    }
}
