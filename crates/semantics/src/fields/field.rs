//! Field lines and list syntax, RFC 9110 §5.

/// One field line of a header or trailer section (RFC 9110 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLine<'a> {
    /// The name as received; compare without regard to case.
    pub name: &'a str,
    /// The value without the optional whitespace around it.
    pub value: &'a [u8],
}

impl<'a> FieldLine<'a> {
    /// A line from its two parts; the value is taken as it is.
    #[must_use]
    pub const fn new(name: &'a str, value: &'a [u8]) -> Self {
        Self { name, value }
    }
}

/// The values of all lines with this name, in the order received; the name is compared without
/// regard to case.
pub fn lines_named<'s, 'a>(
    fields: &'s [FieldLine<'a>],
    name: &'s str,
) -> impl Iterator<Item = &'a [u8]> + 's {
    fields
        .iter()
        .filter(move |line| line.name.eq_ignore_ascii_case(name))
        .map(|line| line.value)
}

/// The value of the first line with this name.
#[must_use]
pub fn line_named<'a>(fields: &[FieldLine<'a>], name: &str) -> Option<&'a [u8]> {
    fields
        .iter()
        .find(|line| line.name.eq_ignore_ascii_case(name))
        .map(|line| line.value)
}

/// The members of a list-based field value, RFC 9110 §5.6.1: split at commas outside of quoted
/// strings, optional whitespace removed, empty members dropped.
///
/// A quotation mark that is never closed is an ordinary byte: otherwise one stray mark could hide a
/// `no-store` that follows it.
pub fn list_elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    ListElements {
        rest: value,
        quotes_end: false,
    }
}

struct ListElements<'a> {
    rest: &'a [u8],
    /// No closing mark was found once: all that follow are ordinary, which also keeps the whole
    /// walk linear.
    quotes_end: bool,
}

impl<'a> Iterator for ListElements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.rest.is_empty() {
            let end = self.element_end();
            let element = trim_ows(&self.rest[..end]);
            self.rest = self.rest.get(end + 1..).unwrap_or(&[]);
            if !element.is_empty() {
                return Some(element);
            }
        }
        None
    }
}

impl ListElements<'_> {
    /// Where the first element of the rest ends: at a comma, or at the end of the value.
    fn element_end(&mut self) -> usize {
        let mut at = 0;
        while let Some(&byte) = self.rest.get(at) {
            match byte {
                b',' => return at,
                b'"' if !self.quotes_end => match closing_quote(&self.rest[at + 1..]) {
                    Some(inner) => at += inner + 1,
                    None => self.quotes_end = true,
                },
                _ => {}
            }
            at += 1;
        }
        at
    }
}

/// Where the quotation mark is that closes a quoted string, counted from just after the one that
/// opened it.
fn closing_quote(inner: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match inner.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// `value` without the spaces and tabs around it (RFC 9110 §5.6.3); unlike `trim_ascii` nothing
/// else goes.
pub(crate) const fn trim_ows(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// Is this a token (RFC 9110 §5.6.2), as field names, methods and directives are?
#[must_use]
pub fn is_token(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().copied().all(is_tchar)
}

/// Is this a byte of a token (RFC 9110 §5.6.2)?
#[inline]
pub(crate) const fn is_tchar(byte: u8) -> bool {
    TCHARS[byte as usize]
}

/// Which bytes are: each byte of what is written as a token is looked at.
const TCHARS: [bool; 256] = {
    let mut tchars = [false; 256];
    let mut byte = u8::MAX;
    loop {
        tchars[byte as usize] = is_listed(byte);
        if byte == 0 {
            break tchars;
        }
        byte -= 1;
    }
};

const fn is_listed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(value: &str, expected: &[&str]) {
        let elements: Vec<&str> = list_elements(value.as_bytes())
            .map(|element| str::from_utf8(element).unwrap())
            .collect();
        assert_eq!(elements, expected, "{value:?}");
    }

    #[test]
    fn lists_are_split_at_commas_outside_of_quotes() {
        check("", &[]);
        check(" , ,\t,", &[]);
        check("a", &["a"]);
        check("a,b", &["a", "b"]);
        check(" a , ,\tb\t, c d ", &["a", "b", "c d"]);
        check(r#"no-cache="a, b", x"#, &[r#"no-cache="a, b""#, "x"]);
        check(r#"x="a\", b", y"#, &[r#"x="a\", b""#, "y"]);
        check(r#""a""b,c",d"#, &[r#""a""b,c""#, "d"]);
    }

    #[test]
    fn unterminated_quote_hides_no_following_member() {
        check(r#"x="a, no-store"#, &[r#"x="a"#, "no-store"]);
        check(r#"x="a\", no-store"#, &[r#"x="a\""#, "no-store"]);
        check(r#"x="a\"#, &[r#"x="a\"#]);
        check(r#"", b""#, &[r#"", b""#]);
    }

    #[test]
    fn open_quotes_do_not_make_list_splitting_quadratic() {
        let hostile = r#"\","#.repeat(100_000);
        assert_eq!(
            list_elements(format!("\"{hostile}").as_bytes()).count(),
            100_000
        );
    }

    #[test]
    fn field_lines_are_found_case_insensitively_and_in_order() {
        let fields = [
            FieldLine::new("Vary", b"a"),
            FieldLine::new("Varyx", b"b"),
            FieldLine::new("VARY", b"c"),
        ];
        assert!(lines_named(&fields, "vary").eq([&b"a"[..], b"c"]));
        assert_eq!(line_named(&fields, "vary"), Some(&b"a"[..]));
        assert_eq!(line_named(&fields, "var"), None);
    }

    #[test]
    fn tokens_are_not_empty_and_contain_no_delimiters() {
        assert!(is_token(b"max-age") && is_token(b"*") && is_token(b"!#$%&'*+-.^_`|~"));
        for value in [
            &b""[..],
            b"a b",
            b"a,b",
            b"\"a\"",
            b"a=b",
            b"a;b",
            b"(",
            b"\x7f",
            b"\xe4",
        ] {
            assert!(!is_token(value), "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn joined_list_members_are_split_back(members in prop::collection::vec(r#"[a-z]{1,5}(="[a-z ,]{0,6}")?"#, 0..8)) {
            let value = members.join(" ,, ");
            let found: Vec<_> = list_elements(value.as_bytes()).collect();
            let expected: Vec<_> = members.iter().map(|member| member.as_bytes()).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn any_bytes_split_into_trimmed_non_empty_members(value in prop::collection::vec(any::<u8>(), 0..64)) {
            for element in list_elements(&value) {
                prop_assert!(!element.is_empty());
                prop_assert_eq!(trim_ows(element), element);
            }
        }
    }
}
