//! What is known without cleverness: lists of spans, looked through from the beginning.

use weir_policy::fetch::{ByteSpan, ByteSpans};

/// The content that is here, as it came.
#[derive(Debug, Default)]
pub(crate) struct Here(Vec<ByteSpan>);

impl Here {
    pub(crate) fn came(&mut self, from: u64, to: u64) {
        // what goes on where another ended is one with it, or each look would take forever
        match self.0.iter_mut().find(|span| span.to == from) {
            Some(span) => span.to = to,
            None => self.0.extend(ByteSpan::new(from, to)),
        }
    }

    /// Whether all bytes are here from `from` to `to`.
    pub(crate) fn holds(&self, from: u64, to: u64) -> bool {
        self.end_of(from) >= to
    }

    /// The first byte from `at` on that is not here.
    pub(crate) fn end_of(&self, mut at: u64) -> u64 {
        while let Some(span) = self.0.iter().find(|span| span.from <= at && at < span.to) {
            at = span.to;
        }
        at
    }

    /// How many bytes are not here from `from` to `to`.
    pub(crate) fn missing(&self, from: u64, to: u64) -> u64 {
        let mut missing = 0;
        let mut at = self.end_of(from);
        while at < to {
            let next = self
                .0
                .iter()
                .map(|span| span.from)
                .filter(|&next| next > at);
            let next = next.min().unwrap_or(to).min(to);
            missing += next - at;
            at = self.end_of(next);
        }
        missing
    }

    /// Fails if `present` is not the same set of bytes.
    #[track_caller]
    pub(crate) fn assert_is(&self, present: &ByteSpans) {
        let mut last = None;
        for run in present.iter() {
            assert!(last.is_none_or(|last| last < run.from), "{present:?}");
            assert_eq!(self.end_of(run.from), run.to, "{present:?} {self:?}");
            last = Some(run.to);
        }
        let within = |span: &ByteSpan| {
            present
                .iter()
                .any(|run| run.from <= span.from && span.to <= run.to)
        };
        assert!(self.0.iter().all(within), "{present:?} {self:?}");
    }
}
