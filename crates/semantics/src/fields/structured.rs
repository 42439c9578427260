//! Structured field values, RFC 9651: written (§4.1) as far as we send them, and Dictionaries read
//! (§4.2.2) as strictly as it requires: a value that does not parse is ignored.

use alloc::vec::Vec;

use crate::fields::field::is_tchar;

/// A member's value as far as a field that we read needs it. Of most types only the type matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BareItem<'a> {
    /// An Integer.
    Integer(i64),
    /// A Boolean; also a member without a value.
    Boolean(bool),
    /// A String, as it was received: with escapes.
    Text(&'a [u8]),
    /// An Inner List.
    List,
    /// A Token.
    Token(&'a [u8]),
    /// A Byte Sequence, in base64 as it was received.
    Bytes(&'a [u8]),
    /// A Decimal, a Date or a Display String.
    Other,
}

/// The value is no Dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Reads a Dictionary (RFC 9651 §4.2.2) and hands each member to `visit` in order; of one key that
/// comes twice the last counts, which is the visitor's to do. What was visited before an error
/// means nothing.
pub(crate) fn read_dictionary<'a>(
    value: &'a [u8],
    visit: &mut dyn FnMut(&'a [u8], BareItem<'a>),
) -> Result<(), Malformed> {
    let mut input = Input(value);
    input.skip(|byte| byte == b' ');
    while !input.0.is_empty() {
        let key = input.key()?;
        let item = if input.eat(b'=') {
            input.member()?
        } else {
            BareItem::Boolean(true)
        };
        input.parameters()?;
        visit(key, item);
        input.separator()?;
    }
    Ok(())
}

/// Reads a List (RFC 9651 §4.2.1) and gives the value that the parameter `name` has at its last
/// member, if it has one. An Inner List counts as a member, and so do its own parameters.
pub(crate) fn parameter_of_last<'a>(
    value: &'a [u8],
    name: &[u8],
) -> Result<Option<BareItem<'a>>, Malformed> {
    let mut input = Input(value);
    let mut last = None;
    input.skip(|byte| byte == b' ');
    while !input.0.is_empty() {
        input.member()?;
        last = None;
        input.visit_parameters(&mut |key, item| {
            if key == name {
                last = Some(item);
            }
        })?;
        input.separator()?;
    }
    Ok(last)
}

/// What is still to be read.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn skip(&mut self, belongs: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|&byte| !belongs(byte));
        let (skipped, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        skipped
    }

    fn eat(&mut self, byte: u8) -> bool {
        match self.0.split_first() {
            Some((&first, rest)) if first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    fn next(&mut self) -> Result<u8, Malformed> {
        let (&first, rest) = self.0.split_first().ok_or(Malformed)?;
        self.0 = rest;
        Ok(first)
    }

    /// What stands between two members, of which there must be another then, or nothing.
    fn separator(&mut self) -> Result<(), Malformed> {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        if self.0.is_empty() {
            return Ok(());
        }
        if !self.eat(b',') {
            return Err(Malformed);
        }
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        if self.0.is_empty() {
            return Err(Malformed);
        }
        Ok(())
    }

    /// RFC 9651 §4.2.3.3.
    fn key(&mut self) -> Result<&'a [u8], Malformed> {
        if !matches!(self.0.first(), Some(b'a'..=b'z' | b'*')) {
            return Err(Malformed);
        }
        Ok(self.skip(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*')))
    }

    /// An Item or an Inner List, without the parameters behind it (RFC 9651 §4.2.1.1).
    fn member(&mut self) -> Result<BareItem<'a>, Malformed> {
        if !self.eat(b'(') {
            return self.bare_item();
        }
        loop {
            self.skip(|byte| byte == b' ');
            if self.eat(b')') {
                return Ok(BareItem::List);
            }
            self.bare_item()?;
            self.parameters()?;
            if !matches!(self.0.first(), Some(b' ' | b')')) {
                return Err(Malformed);
            }
        }
    }

    fn parameters(&mut self) -> Result<(), Malformed> {
        self.visit_parameters(&mut |_, _| {})
    }

    /// RFC 9651 §4.2.3.2; of a key that comes twice the last counts.
    fn visit_parameters(
        &mut self,
        visit: &mut dyn FnMut(&'a [u8], BareItem<'a>),
    ) -> Result<(), Malformed> {
        while self.eat(b';') {
            self.skip(|byte| byte == b' ');
            let key = self.key()?;
            let item = if self.eat(b'=') {
                self.bare_item()?
            } else {
                BareItem::Boolean(true)
            };
            visit(key, item);
        }
        Ok(())
    }

    /// RFC 9651 §4.2.3.1.
    fn bare_item(&mut self) -> Result<BareItem<'a>, Malformed> {
        match self.0.first() {
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'"') => self.string(),
            Some(b'*' | b'A'..=b'Z' | b'a'..=b'z') => {
                let token = self.skip(|byte| is_tchar(byte) || matches!(byte, b':' | b'/'));
                Ok(BareItem::Token(token))
            }
            Some(b':') => self.byte_sequence(),
            Some(b'?') => self.boolean(),
            Some(b'@') => self.date(),
            Some(b'%') => self.display_string(),
            _ => Err(Malformed),
        }
    }

    /// RFC 9651 §4.2.4.
    fn number(&mut self) -> Result<BareItem<'a>, Malformed> {
        let is_negative = self.eat(b'-');
        let digits = self.skip(|byte| byte.is_ascii_digit());
        if digits.is_empty() {
            return Err(Malformed);
        }
        if self.eat(b'.') {
            let fraction = self.skip(|byte| byte.is_ascii_digit());
            let fits = digits.len() <= 12 && (1..=3).contains(&fraction.len());
            return if fits {
                Ok(BareItem::Other)
            } else {
                Err(Malformed)
            };
        }
        if digits.len() > 15 {
            return Err(Malformed);
        }
        let number = digits
            .iter()
            .fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
        Ok(BareItem::Integer(if is_negative {
            -number
        } else {
            number
        }))
    }

    /// RFC 9651 §4.2.5.
    fn string(&mut self) -> Result<BareItem<'a>, Malformed> {
        self.next()?;
        let begin = self.0;
        loop {
            match self.next()? {
                b'"' => return Ok(BareItem::Text(&begin[..begin.len() - self.0.len() - 1])),
                b'\\' if !matches!(self.next()?, b'"' | b'\\') => return Err(Malformed),
                b'\\' | b' '..=b'~' => {}
                _ => return Err(Malformed),
            }
        }
    }

    /// RFC 9651 §4.2.7. Whether what stands there is padded as it should be does not matter: it
    /// means nothing here, and §4.2.7 leaves that to the parser.
    fn byte_sequence(&mut self) -> Result<BareItem<'a>, Malformed> {
        self.next()?;
        let base64 =
            self.skip(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
        if self.eat(b':') {
            Ok(BareItem::Bytes(base64))
        } else {
            Err(Malformed)
        }
    }

    /// RFC 9651 §4.2.8.
    fn boolean(&mut self) -> Result<BareItem<'a>, Malformed> {
        self.next()?;
        match self.next()? {
            b'0' => Ok(BareItem::Boolean(false)),
            b'1' => Ok(BareItem::Boolean(true)),
            _ => Err(Malformed),
        }
    }

    /// RFC 9651 §4.2.9.
    fn date(&mut self) -> Result<BareItem<'a>, Malformed> {
        self.next()?;
        match self.number()? {
            BareItem::Integer(_) => Ok(BareItem::Other),
            _ => Err(Malformed),
        }
    }

    /// RFC 9651 §4.2.10.
    fn display_string(&mut self) -> Result<BareItem<'a>, Malformed> {
        self.next()?;
        if !self.eat(b'"') {
            return Err(Malformed);
        }
        let mut text = Vec::new();
        loop {
            let byte = match self.next()? {
                b'"' => break,
                b'%' => hex(self.next()?)? << 4 | hex(self.next()?)?,
                byte @ b' '..=b'~' => byte,
                _ => return Err(Malformed),
            };
            text.push(byte);
        }
        match str::from_utf8(&text) {
            Ok(_) => Ok(BareItem::Other),
            Err(_) => Err(Malformed),
        }
    }
}

/// The value of a lower case hexadecimal digit: a Display String has no others.
const fn hex(digit: u8) -> Result<u8, Malformed> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(Malformed),
    }
}

/// The largest magnitude of a structured integer: fifteen digits (RFC 9651 §3.3.1).
const INTEGER_MAX: i64 = 999_999_999_999_999;

/// Appends `text` as a token if it is one, otherwise as a string.
pub(crate) fn write_token_or_string(text: &str, out: &mut Vec<u8>) {
    let is_token = match text.as_bytes() {
        [first, rest @ ..] => {
            (first.is_ascii_alphabetic() || *first == b'*')
                && rest
                    .iter()
                    .all(|&byte| is_tchar(byte) || matches!(byte, b':' | b'/'))
        }
        [] => false,
    };
    if is_token {
        out.extend_from_slice(text.as_bytes())
    } else {
        write_string(text, out)
    }
}

/// Appends `text` as a string. A string holds visible ASCII and spaces only (RFC 9651 §3.3.3): each
/// other character becomes `?`.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for character in text.chars() {
        match u8::try_from(character) {
            Ok(byte @ (b'"' | b'\\')) => out.extend_from_slice(&[b'\\', byte]),
            Ok(byte @ b' '..=b'~') => out.push(byte),
            _ => out.push(b'?'),
        }
    }
    out.push(b'"');
}

/// Appends `number` in decimal; clamped to fifteen digits.
pub(crate) fn write_integer(number: i64, out: &mut Vec<u8>) {
    let number = number.clamp(-INTEGER_MAX, INTEGER_MAX);
    if number < 0 {
        out.push(b'-');
    }
    write_decimal(number.unsigned_abs(), out);
}

/// Appends `number` in decimal; all of its digits.
pub(crate) fn write_decimal(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        let mut out = Vec::new();
        write_token_or_string(text, &mut out);
        assert_eq!(str::from_utf8(&out).unwrap(), expected, "{text:?}");
    }

    #[test]
    fn text_that_is_no_token_is_written_as_a_string() {
        check("weir", "weir");
        check("weir.example:8080/a", "weir.example:8080/a");
        check("*", "*");
        check("", r#""""#);
        check("1a", r#""1a""#);
        check("a b", r#""a b""#);
        check(r#"a"\"#, r#""a\"\\""#);
        check("é\n\u{7f}ÿ€", r#""?????""#);
    }

    /// Without the value of a type that the reference implementation decodes.
    fn type_of(item: BareItem<'_>) -> BareItem<'static> {
        match item {
            BareItem::Integer(number) => BareItem::Integer(number),
            BareItem::Boolean(boolean) => BareItem::Boolean(boolean),
            BareItem::Text(_) => BareItem::Text(b""),
            BareItem::List => BareItem::List,
            BareItem::Token(_) => BareItem::Token(b""),
            BareItem::Bytes(_) => BareItem::Bytes(b""),
            BareItem::Other => BareItem::Other,
        }
    }

    /// The members that our reader and the reference implementation find, the last of each key, in
    /// an order of no meaning.
    fn check_dictionary(value: &str) {
        let mut ours = std::collections::BTreeMap::new();
        let read = read_dictionary(value.as_bytes(), &mut |key, item| {
            ours.insert(String::from_utf8(key.to_vec()).unwrap(), type_of(item));
        });
        let theirs = sfv::Parser::new(value).parse::<sfv::Dictionary>();
        let theirs = theirs.map(|members| {
            let member = |entry: &sfv::ListEntry| match entry {
                sfv::ListEntry::InnerList(_) => BareItem::List,
                sfv::ListEntry::Item(item) => match &item.bare_item {
                    sfv::BareItem::Integer(number) => BareItem::Integer(i64::from(*number)),
                    sfv::BareItem::Boolean(boolean) => BareItem::Boolean(*boolean),
                    sfv::BareItem::String(_) => BareItem::Text(b""),
                    sfv::BareItem::Token(_) => BareItem::Token(b""),
                    sfv::BareItem::ByteSequence(_) => BareItem::Bytes(b""),
                    _ => BareItem::Other,
                },
            };
            let pairs = members
                .iter()
                .map(|(key, entry)| (key.to_string(), member(entry)));
            pairs.collect::<std::collections::BTreeMap<_, _>>()
        });
        assert_eq!(read.map(|()| ours).ok(), theirs.ok(), "{value:?}");
    }

    #[test]
    fn dictionary_is_parsed_as_by_the_reference_implementation() {
        for value in [
            "",
            " ",
            "a",
            " a ",
            "a\t",
            "a,b",
            "a ,\tb",
            "a,",
            "a=1;b;c=?0",
            "a=(1 2;x \"y\")",
            "a=()",
            "a=(1  2 )",
            "a=(1\t2)",
            "a=-0",
            "a=-",
            "a=1.",
            "a=1.1234",
            "a=123456789012.123",
            "a=1234567890123.1",
            "a=999999999999999",
            "a=1000000000000000",
            "a=\"\\\"\"",
            "a=\"\\a\"",
            "a=:YQ==:",
            "a=?1",
            "a=?",
            "a=@1",
            "a=@1.5",
            "a=%\"%c3%a9\"",
            "a=%\"%C3\"",
            "a=%\"%ff\"",
            "A=1",
            "a=b/c:d",
            "a=*",
            "a = 1",
            "a; b",
            "a ;b",
            "a=1,a=2",
            "_a",
            "*a",
            "a=1\u{e9}",
            "a b",
        ] {
            check_dictionary(value);
        }
    }

    proptest! {
        #[test]
        fn random_dictionary_is_parsed_as_by_the_reference_implementation(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "a", "b", "max-age", "=", "1", "-1", "1.5", "\"x\"", "(", ")", " ", "\t", ",", ", ", ";", "?1", "?0",
                    "tok", ":YQ==:", "@1", "%\"a\"", "A", "*", "\\", "=60", "=?1",
                ]),
                0..10,
            ),
        ) {
            check_dictionary(&pieces.concat());
        }

        #[test]
        fn numbers_are_written_as_by_the_standard_library(number: i64, decimal: u64) {
            let mut out = Vec::new();
            write_integer(number, &mut out);
            prop_assert_eq!(str::from_utf8(&out).unwrap(), number.clamp(-INTEGER_MAX, INTEGER_MAX).to_string());
            out.clear();
            write_decimal(decimal, &mut out);
            prop_assert_eq!(str::from_utf8(&out).unwrap(), decimal.to_string());
        }
    }
}
