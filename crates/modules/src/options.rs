//! Reading options.

use weir_extend::{LoadError, OptionValue, Options};

/// The strings of a list; none if the option is absent.
pub(crate) fn texts(options: &mut Options, name: &str) -> Result<Vec<String>, LoadError> {
    let Some(value) = options.take(name) else {
        return Ok(Vec::new());
    };
    let OptionValue::List(values) = value else {
        return Err(wrong_form(name, "a list of strings", &value));
    };
    let values = values.into_iter().enumerate();
    let texts = values.map(|(index, value)| match value {
        OptionValue::Text(text) => Ok(text),
        other => Err(wrong_form(&format!("{name}[{index}]"), "a string", &other)),
    });
    texts.collect()
}

/// What each name of a list stands for among `known`, in order, none twice; all of these if the
/// option is absent or empty. `what` is what a name is no one of.
pub(crate) fn chosen<T: Copy>(
    options: &mut Options,
    name: &str,
    known: &[(&str, T)],
    what: &str,
) -> Result<Vec<T>, LoadError> {
    let names = texts(options, name)?;
    if names.is_empty() {
        return Ok(known.iter().map(|(_, value)| *value).collect());
    }
    let chosen = names.iter().enumerate().map(|(index, text)| {
        let found = known.iter().find(|(it, _)| it == text);
        let is_first = !names[..index].contains(text);
        found
            .filter(|_| is_first)
            .map(|(_, value)| *value)
            .ok_or_else(|| {
                let all: Vec<&str> = known.iter().map(|(it, _)| *it).collect();
                let what = format!("`{text}` is no {what}, or is there twice");
                let hint = format!("use {}", all.join(", "));
                LoadError::new(format!("{name}[{index}]"), what, hint)
            })
    });
    chosen.collect()
}

/// The tables of a list; none if the option is absent.
pub(crate) fn tables(options: &mut Options, name: &str) -> Result<Vec<Options>, LoadError> {
    let Some(value) = options.take(name) else {
        return Ok(Vec::new());
    };
    let OptionValue::List(values) = value else {
        return Err(wrong_form(name, "a list of tables", &value));
    };
    let values = values.into_iter().enumerate();
    let tables = values.map(|(index, value)| match value {
        OptionValue::Table(values) => Ok(Options::new(values)),
        other => Err(wrong_form(&format!("{name}[{index}]"), "a table", &other)),
    });
    tables.collect()
}

/// A string; `None` if the option is absent.
pub(crate) fn text(options: &mut Options, name: &str) -> Result<Option<String>, LoadError> {
    match options.take(name) {
        None => Ok(None),
        Some(OptionValue::Text(text)) => Ok(Some(text)),
        Some(other) => Err(wrong_form(name, "a string", &other)),
    }
}

/// A number; `None` if the option is absent.
pub(crate) fn number(options: &mut Options, name: &str) -> Result<Option<i64>, LoadError> {
    match options.take(name) {
        None => Ok(None),
        Some(OptionValue::Number(number)) => Ok(Some(number)),
        Some(other) => Err(wrong_form(name, "a number", &other)),
    }
}

/// A number of `range`, both ends included; `default` if the option is absent.
pub(crate) fn number_in(
    options: &mut Options,
    name: &str,
    default: u32,
    range: (i64, i64),
) -> Result<u32, LoadError> {
    let number = number(options, name)?.unwrap_or_else(|| default.into());
    let is_in = (range.0..=range.1).contains(&number);
    u32::try_from(number).ok().filter(|_| is_in).ok_or_else(|| {
        let what = format!("{number} is out of range");
        LoadError::new(name, what, format!("use {} to {}", range.0, range.1))
    })
}

/// A size of `range` in bytes, both ends included: a number, or a string with a unit, such as
/// `"64MiB"`. `default` if the option is absent.
pub(crate) fn size_in(
    options: &mut Options,
    name: &str,
    default: u32,
    range: (u32, u32),
) -> Result<u32, LoadError> {
    let Some(value) = options.take(name) else {
        return Ok(default);
    };
    let expected = "a size, such as \"64KiB\" or \"4MiB\"";
    let bytes = match (&value, value.size_bytes()) {
        (_, Some(bytes)) => bytes,
        (OptionValue::Text(text), None) => {
            let what = format!("`{text}` is no size");
            return Err(LoadError::new(name, what, format!("write {expected}")));
        }
        (OptionValue::Number(number), None) => {
            let what = format!("{number} is out of range");
            return Err(LoadError::new(name, what, in_bytes(range)));
        }
        (other, None) => return Err(wrong_form(name, expected, other)),
    };
    u32::try_from(bytes)
        .ok()
        .filter(|bytes| (range.0..=range.1).contains(bytes))
        .ok_or_else(|| {
            let found = match &value {
                OptionValue::Text(text) => text.clone(),
                _ => bytes.to_string(),
            };
            LoadError::new(name, format!("{found} is out of range"), in_bytes(range))
        })
}

fn in_bytes((least, most): (u32, u32)) -> String {
    format!("use {least} to {most} bytes")
}

/// `true` or `false`; `None` if the option is absent.
pub(crate) fn flag(options: &mut Options, name: &str) -> Result<Option<bool>, LoadError> {
    match options.take(name) {
        None => Ok(None),
        Some(OptionValue::Flag(flag)) => Ok(Some(flag)),
        Some(other) => Err(wrong_form(name, "true or false", &other)),
    }
}

/// Whether a string is the second of the two that there are; absent, it is the first.
pub(crate) fn one_of(
    options: &mut Options,
    name: &str,
    known: [&str; 2],
) -> Result<bool, LoadError> {
    match text(options, name)? {
        Some(value) if !known.contains(&value.as_str()) => {
            let what = format!("there is no {name} `{value}`");
            let hint = format!("use {} or {}", known[0], known[1]);
            Err(LoadError::new(name, what, hint))
        }
        value => Ok(value.as_deref() == Some(known[1])),
    }
}

fn wrong_form(name: &str, expected: &str, found: &OptionValue) -> LoadError {
    let what = format!("expected {expected}, found {}", found.form());
    LoadError::new(name, what, format!("write {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn size_has_a_unit_or_is_a_number_of_bytes_and_is_within_its_range() {
        let read = |value: OptionValue| {
            let mut options = Options::new(BTreeMap::from([("memory".to_owned(), value)]));
            size_in(&mut options, "memory", 5, (1, 1 << 30)).map_err(|error| error.to_string())
        };
        let text = |text: &str| OptionValue::Text(text.to_owned());
        assert_eq!(read(text("64MiB")), Ok(64 << 20));
        assert_eq!(read(OptionValue::Number(7)), Ok(7));
        assert_eq!(size_in(&mut Options::default(), "memory", 5, (1, 9)), Ok(5));
        for (value, expected) in [
            (
                text("64MB"),
                "memory: `64MB` is no size; write a size, such as \"64KiB\" or \"4MiB\"",
            ),
            (
                text("2GiB"),
                "memory: 2GiB is out of range; use 1 to 1073741824 bytes",
            ),
            (
                OptionValue::Number(-7),
                "memory: -7 is out of range; use 1 to 1073741824 bytes",
            ),
            (
                OptionValue::Number(0),
                "memory: 0 is out of range; use 1 to 1073741824 bytes",
            ),
            (
                OptionValue::Flag(true),
                "memory: expected a size, such as \"64KiB\" or \"4MiB\", found true or false; \
                 write a size, such as \"64KiB\" or \"4MiB\"",
            ),
        ] {
            assert_eq!(read(value), Err(expected.to_owned()));
        }
    }
}
