//! When content was sent to the client.

use std::time::Instant;

/// When the kernel took the first and the last byte of content so far, if a recorder reads that:
/// without one it takes no room in a request under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContentTimes(Option<Box<Times>>);

#[derive(Clone, Debug, Default)]
struct Times {
    content_bytes: u64,
    first_last: Option<(Instant, Instant)>,
}

impl ContentTimes {
    pub(crate) fn new(is_wanted: bool) -> Self {
        Self(is_wanted.then(Box::default))
    }

    /// Called with how much content was sent until now, bytes.
    pub(crate) fn reach(&mut self, content_bytes: u64) {
        if let Some(times) = &mut self.0
            && content_bytes > times.content_bytes
        {
            times.content_bytes = content_bytes;
            let now = Instant::now();
            times.first_last = Some((times.first_last.map_or(now, |(first, _)| first), now));
        }
    }

    /// When the first and the last byte were sent.
    pub(crate) fn first_last(&self) -> Option<(Instant, Instant)> {
        self.0.as_ref().and_then(|times| times.first_last)
    }
}
