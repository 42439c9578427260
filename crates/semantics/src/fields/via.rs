//! `Via`, RFC 9110 §7.6.3: has this message been here before?

use crate::fields::field::trim_ows;

/// Does one of these `Via` values name us: `name` as received-by and, if `comment` is given,
/// exactly that comment?
///
/// Received-by is compared without regard to case, the comment byte by byte without its
/// parentheses. With a comment that is random for each process, several proxies may share one
/// pseudonym and still find their own loops.
pub fn contains_pseudonym<'a>(
    lines: impl Iterator<Item = &'a [u8]>,
    name: &str,
    comment: Option<&str>,
) -> bool {
    let names_us = |member: &[u8]| {
        // received-protocol RWS received-by [ RWS comment ]
        let (_, rest) = split_word(member);
        let (received_by, rest) = split_word(rest);
        received_by.eq_ignore_ascii_case(name.as_bytes())
            && comment.is_none_or(|comment| {
                let inner = rest
                    .strip_prefix(b"(")
                    .and_then(|rest| rest.strip_suffix(b")"));
                inner == Some(comment.as_bytes())
            })
    };
    lines.flat_map(Members::new).any(names_us)
}

/// The first word, and what follows it.
fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text
        .iter()
        .position(|byte| matches!(byte, b' ' | b'\t'))
        .unwrap_or(text.len());
    (&text[..end], trim_ows(&text[end..]))
}

/// The members of one `Via` line: unlike other lists, commas within comments do not count.
struct Members<'a> {
    rest: &'a [u8],
    /// A comment was never closed: parentheses are ordinary from then on, lest one hides the
    /// members after it.
    comments_end: bool,
}

impl<'a> Members<'a> {
    fn new(value: &'a [u8]) -> Self {
        Self {
            rest: value,
            comments_end: false,
        }
    }

    /// Where the first comma outside of comments is; `None` if a comment is never closed.
    fn end(&self) -> Option<usize> {
        let mut depth: usize = 0;
        let mut at = 0;
        while let Some(&byte) = self.rest.get(at) {
            match byte {
                b',' if depth == 0 => return Some(at),
                b'(' if !self.comments_end => depth += 1,
                b')' => depth = depth.saturating_sub(1),
                b'\\' if depth > 0 => at += 1,
                _ => {}
            }
            at += 1;
        }
        (depth == 0).then_some(self.rest.len())
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        if self.end().is_none() {
            self.comments_end = true;
        }
        let end = self.end().unwrap_or(self.rest.len());
        let member = trim_ows(&self.rest[..end]);
        self.rest = self.rest.get(end + 1..).unwrap_or(&[]);
        Some(member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[&str], comment: Option<&str>, expected: bool) {
        let lines_bytes = lines.iter().map(|line| line.as_bytes());
        assert_eq!(
            contains_pseudonym(lines_bytes, "weir", comment),
            expected,
            "{lines:?}"
        );
    }

    #[test]
    fn own_pseudonym_is_found_in_any_member_and_line() {
        check(&["1.1 weir"], None, true);
        check(&["1.0 fred, HTTP/1.1\tWEIR (x)"], None, true);
        check(
            &["1.0 fred", "", ", 1.1 p.example.net,1.1 weir"],
            None,
            true,
        );
        check(&["1.0 fred, 1.1 weirs, 1.1 weir:80, weir"], None, false);
        check(&[], None, false);
    }

    #[test]
    fn via_comment_distinguishes_instances() {
        check(&["1.1 weir (a1)"], Some("a1"), true);
        check(&["1.1 weir (a1)"], Some("a2"), false);
        check(&["1.1 weir"], Some("a1"), false);
        check(&["1.1 weir (a2), 1.1 weir (a1)"], Some("a1"), true);
        check(&["1.1 weir (a1"], Some("a1"), false);
    }

    #[test]
    fn comment_neither_splits_a_member_nor_hides_later_ones() {
        check(&["1.1 fred (a, 1.1 weir)"], None, false);
        check(&["1.1 fred ((a), 1.1 weir), 1.1 bob"], None, false);
        check(&[r"1.1 fred (\), 1.1 weir)"], None, false);
        check(&["1.1 fred (a), 1.1 weir"], None, true);
        check(&["1.1 fred (a, 1.1 weir"], None, true);
        check(&["1.1 fred ), 1.1 weir"], None, true);
    }

    #[test]
    fn open_comments_do_not_make_the_search_quadratic() {
        let hostile = "a (,".repeat(100_000);
        check(&[&hostile], None, false);
        let hostile = format!("({}", "a (b),".repeat(100_000));
        check(&[&hostile], None, false);
    }
}
