//! One change of a head as operators write it: `set NAME: VALUE`, `add NAME: VALUE` or
//! `remove NAME`.

use super::{FieldError, Fields};
use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

/// One change of a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldRule {
    /// Puts one line with this name and value in the place of all with this name.
    Set(String, String),
    /// Adds a line with this name and value behind the others.
    Add(String, String),
    /// Removes all lines with this name.
    Remove(String),
}

/// Why a text is no change of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldRuleError {
    /// It does not have the form of one.
    Form,
    /// No head would take the field.
    Field(FieldError),
}

impl FieldRule {
    /// How one is written, for messages.
    pub const FORM: &'static str = "`set NAME: VALUE`, `add NAME: VALUE` or `remove NAME`";

    /// Reads one.
    ///
    /// # Errors
    ///
    /// The text is none, or is refused of every head.
    pub fn parse(text: &str) -> Result<Self, FieldRuleError> {
        let (action, rest) = text.split_once(' ').ok_or(FieldRuleError::Form)?;
        let named = |rest: &str| {
            let (name, value) = rest.split_once(':').ok_or(FieldRuleError::Form)?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        };
        let rule = match action {
            "remove" => Self::Remove(rest.trim().to_owned()),
            "set" => named(rest).map(|(name, value)| Self::Set(name, value))?,
            "add" => named(rest).map(|(name, value)| Self::Add(name, value))?,
            _ => return Err(FieldRuleError::Form),
        };
        rule.apply(&mut Fields::default())
            .map_err(FieldRuleError::Field)?;
        Ok(rule)
    }

    /// The name of the field.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Set(name, _) | Self::Add(name, _) | Self::Remove(name) => name,
        }
    }

    /// The value, if one is written.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        match self {
            Self::Set(_, value) | Self::Add(_, value) => Some(value),
            Self::Remove(_) => None,
        }
    }

    /// Changes `fields`.
    ///
    /// # Errors
    ///
    /// The fields are as they were.
    pub fn apply(&self, fields: &mut Fields) -> Result<(), FieldError> {
        match self {
            Self::Set(name, value) => fields.set(name, value.as_bytes()),
            Self::Add(name, value) => fields.add(name, value.as_bytes()),
            Self::Remove(name) => fields.remove(name).map(|_| ()),
        }
    }
}

impl fmt::Display for FieldRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(name, value) => write!(f, "set {name}: {value}"),
            Self::Add(name, value) => write!(f, "add {name}: {value}"),
            Self::Remove(name) => write!(f, "remove {name}"),
        }
    }
}

impl fmt::Display for FieldRuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => write!(f, "{} is expected", FieldRule::FORM),
            Self::Field(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for FieldRuleError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_with_their_names_and_values() {
        let check = |text: &str, expected: FieldRule| {
            assert_eq!(FieldRule::parse(text), Ok(expected.clone()), "{text}");
            assert_eq!(FieldRule::parse(&expected.to_string()), Ok(expected));
        };
        check("set X-A: b: c", FieldRule::Set("X-A".into(), "b: c".into()));
        check("add X-A:b", FieldRule::Add("X-A".into(), "b".into()));
        check("add X-A:", FieldRule::Add("X-A".into(), String::new()));
        check("remove Server", FieldRule::Remove("Server".into()));
    }

    #[test]
    fn rule_that_no_head_would_take_is_refused() {
        let check = |text: &str, expected: FieldRuleError| {
            assert_eq!(FieldRule::parse(text), Err(expected), "{text}");
        };
        for text in ["", "set", "set X", "delete X"] {
            check(text, FieldRuleError::Form);
        }
        check("remove X Y", FieldRuleError::Field(FieldError::BadName));
        for text in [
            "set Content-Length: 1",
            "remove Transfer-Encoding",
            "add Via: x",
        ] {
            check(text, FieldRuleError::Field(FieldError::Reserved));
        }
        check("set X: a\r\nb", FieldRuleError::Field(FieldError::BadValue));
    }
}
