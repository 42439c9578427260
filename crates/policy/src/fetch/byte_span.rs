//! Spans of a representation's content, and sets of them.

use alloc::vec::Vec;

/// The bytes from `from` up to, not including, `to`; `from < to`. An end that is not known is
/// [`ByteSpan::OPEN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSpan {
    /// Offset of the first byte.
    pub from: u64,
    /// Offset after the last byte.
    pub to: u64,
}

impl ByteSpan {
    /// The `to` of a span that goes to the end of a content, wherever that is.
    pub const OPEN: u64 = u64::MAX;

    /// The bytes from `from` up to `to`; none if that is no byte.
    #[must_use]
    pub const fn new(from: u64, to: u64) -> Option<Self> {
        if from < to {
            Some(Self { from, to })
        } else {
            None
        }
    }

    /// How many bytes; for an open span a number without meaning.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a span is never empty")]
    pub const fn len(self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// What this span and `other` have in common.
    #[must_use]
    pub fn overlap(self, other: Self) -> Option<Self> {
        Self::new(self.from.max(other.from), self.to.min(other.to))
    }
}

/// A set of bytes as runs: sorted, disjoint, never adjacent. Look-ups are logarithmic in the number
/// of runs; changes also move the runs behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteSpans(Vec<ByteSpan>);

impl ByteSpans {
    /// No byte.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds `span`; returns how many of its bytes are new.
    pub fn insert(&mut self, span: ByteSpan) -> u64 {
        if span.from >= span.to {
            return 0;
        }
        // runs that touch or overlap the span become one with it
        let first = self.0.partition_point(|run| run.to < span.from);
        let after = self.0.partition_point(|run| run.from <= span.to);
        let mut joined = span;
        let mut had = 0;
        for run in &self.0[first..after] {
            had += run.len();
            joined.from = joined.from.min(run.from);
            joined.to = joined.to.max(run.to);
        }
        match &mut self.0[first..after] {
            [run] => *run = joined,
            _ => drop(self.0.splice(first..after, [joined])),
        }
        joined.len() - had
    }

    /// Takes `span` out; returns how many of its bytes were in.
    pub fn remove(&mut self, span: ByteSpan) -> u64 {
        let first = self.0.partition_point(|run| run.to <= span.from);
        let after = self.0.partition_point(|run| run.from < span.to);
        if span.from >= span.to || first >= after {
            return 0;
        }
        let removed = self.overlap(span);
        let head = ByteSpan::new(self.0[first].from, span.from);
        let tail = ByteSpan::new(span.to, self.0[after - 1].to);
        self.0
            .splice(first..after, head.into_iter().chain(tail))
            .for_each(drop);
        removed
    }

    /// Takes `span` out as far as that makes no more runs of them; returns how many of its bytes
    /// are taken.
    pub(super) fn remove_edge(&mut self, span: ByteSpan) -> u64 {
        let first = self.0.partition_point(|run| run.to <= span.from);
        match self.0.get(first) {
            Some(run) if run.from < span.from && run.to > span.to => 0,
            _ => self.remove(span),
        }
    }

    /// Whether every byte of `span` is in.
    #[must_use]
    pub fn contains(&self, span: ByteSpan) -> bool {
        self.run_end(span.from) >= span.to
    }

    /// How many bytes of `span` are in.
    #[must_use]
    pub fn overlap(&self, span: ByteSpan) -> u64 {
        let first = self.0.partition_point(|run| run.to <= span.from);
        self.0[first..]
            .iter()
            .map_while(|run| run.overlap(span))
            .map(ByteSpan::len)
            .sum()
    }

    /// The first byte at or after `at` that is not in.
    #[must_use]
    pub fn run_end(&self, at: u64) -> u64 {
        match self.run_after(at) {
            Some(run) if run.from <= at => run.to,
            _ => at,
        }
    }

    /// The first byte of the run that holds `at`, or ends just before it; `at` itself if none does.
    #[must_use]
    pub fn run_start(&self, at: u64) -> u64 {
        let first = self.0.partition_point(|run| run.to < at);
        match self.0.get(first) {
            Some(run) if run.from <= at => run.from,
            _ => at,
        }
    }

    /// The first byte at or after `at` that is in.
    #[must_use]
    pub fn next_present(&self, at: u64) -> Option<u64> {
        self.run_after(at).map(|run| run.from.max(at))
    }

    /// The first bytes of `within` that are not in, as many as there are in a row.
    #[must_use]
    pub fn first_missing(&self, within: ByteSpan) -> Option<ByteSpan> {
        let from = self.run_end(within.from);
        let to = self.next_present(from).unwrap_or(within.to);
        ByteSpan::new(from, to.min(within.to))
    }

    /// How many bytes are in.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().copied().map(ByteSpan::len).sum()
    }

    /// How many runs there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no byte is in.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The runs in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = ByteSpan> + '_ {
        self.0.iter().copied()
    }

    /// The run that holds `at`, or the first after it.
    fn run_after(&self, at: u64) -> Option<ByteSpan> {
        let first = self.0.partition_point(|run| run.to <= at);
        self.0.get(first).copied()
    }
}

impl FromIterator<ByteSpan> for ByteSpans {
    fn from_iter<T: IntoIterator<Item = ByteSpan>>(spans: T) -> Self {
        let mut set = Self::new();
        for span in spans {
            set.insert(span);
        }
        set
    }
}

#[cfg(test)]
mod tests;
