//! Field lines as vectors write them: `Name: value`, with dates and the host filled in when they
//! are sent.

use crate::date::RelativeDate;

/// What the value of a field line may depend on: the time and the host.
#[derive(Clone, Copy, Debug)]
pub struct FieldContext<'a> {
    /// Seconds since the vector's start.
    pub at_s: u32,
    /// The host the client asks, with its port if it has one; stands for `{host}`.
    pub host: &'a str,
}

/// A field line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name as written.
    pub name: String,
    value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Text(String),
    Date(RelativeDate),
}

impl Field {
    /// Reads `Name: value`; the error is a fragment that says what is wrong.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| format!("`{line}` is no field line: `Name: value` is expected"))?;
        check_name(name)?;
        let value = value.trim();
        if value.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err(format!("the value of `{name}` holds a control character"));
        }
        let value = match RelativeDate::parse(value) {
            Some(date) => Value::Date(date),
            None if value.starts_with('@') => {
                return Err(format!(
                    "`{value}` is no date: `@0`, `@-10`, `@+60` or `@start-1000` is expected"
                ));
            }
            None => Value::Text(value.to_owned()),
        };
        Ok(Self {
            name: name.to_owned(),
            value,
        })
    }

    /// The value as it is sent in `context`.
    #[must_use]
    pub fn value(&self, context: FieldContext<'_>) -> String {
        match &self.value {
            Value::Text(text) => text.replace("{host}", context.host),
            Value::Date(date) => date.render(context.at_s),
        }
    }
}

/// Refuses what is no token (RFC 9110 §5.1).
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(format!("`{name}` is no field name"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: FieldContext<'static> = FieldContext {
        at_s: 60,
        host: "a.test:81",
    };

    #[test]
    fn field_value_is_trimmed_and_placeholders_are_filled_in() {
        let value = |line| Field::parse(line).map(|field| field.value(CONTEXT));
        assert_eq!(value("A:  b: c "), Ok("b: c".into()));
        assert_eq!(value("A:"), Ok(String::new()));
        assert_eq!(
            value("Location: http://{host}/b"),
            Ok("http://a.test:81/b".into())
        );
        assert_eq!(
            value("Date: @-60"),
            Ok("Thu, 01 Jan 2026 00:00:00 GMT".into())
        );
    }

    #[test]
    fn malformed_field_line_is_refused() {
        for line in ["A", ": b", "A b: c", "Date: @now", "A: b\r\nC: d"] {
            assert!(Field::parse(line).is_err(), "{line}");
        }
    }
}
