//! A response as a client sees it.

/// Head and content.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The final head, line by line as received, without the empty line.
    pub(crate) head: String,
    /// The content, without framing.
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The status code.
    pub(crate) fn status(&self) -> u16 {
        let word = self.head.split(' ').nth(1).and_then(|word| word.get(..3));
        word.and_then(|word| word.parse().ok())
            .unwrap_or_else(|| panic!("no status line: {:?}", self.head))
    }

    /// The values of all lines of a field, joined; empty if there is none.
    pub(crate) fn field(&self, name: &str) -> String {
        let lines = self.head.lines().skip(1);
        let values: Vec<&str> = lines
            .filter_map(|line| line.split_once(':'))
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
            .collect();
        values.join(", ")
    }

    /// What our cache says it did.
    pub(crate) fn cache_status(&self) -> String {
        self.field("cache-status")
    }

    /// Whether it came from the store alone.
    pub(crate) fn is_hit(&self) -> bool {
        self.cache_status().starts_with("weir;hit")
    }

    /// The content as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Fails unless the status is `expected`; hands itself on.
    #[track_caller]
    pub(crate) fn expect(self, expected: u16) -> Self {
        assert_eq!(self.status(), expected, "{}\n\n{}", self.head, self.text());
        self
    }
}
