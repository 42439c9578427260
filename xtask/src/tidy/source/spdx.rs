//! Licence expressions of packages: `MIT OR Apache-2.0`, `(MIT OR Apache-2.0) AND Unicode-3.0`, and
//! the old `MIT/Apache-2.0`.

/// Whether the terms named in `allowed` are enough for `expression`. `WITH` binds a licence to its
/// exception, and the pair is one name in `allowed`. An expression that cannot be understood is not
/// accepted.
pub(crate) fn is_accepted(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let mut reader = Reader {
        words: spaced.split_whitespace().collect(),
        at: 0,
        allowed,
    };
    let accepted = reader.any_of();
    reader.at == reader.words.len() && accepted == Some(true)
}

struct Reader<'a> {
    words: Vec<&'a str>,
    at: usize,
    allowed: &'a [String],
}

impl Reader<'_> {
    fn take(&mut self, word: &str) -> bool {
        let found = self.words.get(self.at) == Some(&word);
        self.at += usize::from(found);
        found
    }

    fn any_of(&mut self) -> Option<bool> {
        let mut accepted = self.all_of()?;
        while self.take("OR") {
            accepted |= self.all_of()?;
        }
        Some(accepted)
    }

    fn all_of(&mut self) -> Option<bool> {
        let mut accepted = self.one()?;
        while self.take("AND") {
            accepted &= self.one()?;
        }
        Some(accepted)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let accepted = self.any_of()?;
            return self.take(")").then_some(accepted);
        }
        let mut name = (*self.words.get(self.at)?).to_owned();
        self.at += 1;
        if self.take("WITH") {
            let exception = self.words.get(self.at)?;
            self.at += 1;
            name = format!("{name} WITH {exception}");
        }
        Some(self.allowed.contains(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str, expected: bool) {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_owned);
        assert_eq!(is_accepted(expression, &allowed), expected, "{expression}");
    }

    #[test]
    fn or_expression_is_accepted_if_any_term_is() {
        check("MIT", true);
        check("GPL-3.0-only", false);
        check("MIT OR GPL-3.0-only", true);
        check("MIT/Apache-2.0", true);
        check("Apache-2.0 WITH LLVM-exception OR GPL-3.0-only", false);
    }

    #[test]
    fn and_expression_is_accepted_only_if_all_terms_are() {
        check("(MIT OR GPL-3.0-only) AND Unicode-3.0", true);
        check("MIT AND GPL-3.0-only", false);
        check("GPL-3.0-only AND MIT OR MIT", true);
    }

    #[test]
    fn malformed_licence_expression_is_refused() {
        check("", false);
        check("(MIT", false);
        check("MIT OR", false);
        check("MIT MIT", false);
    }
}
