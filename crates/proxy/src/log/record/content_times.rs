//! When content was sent to the client.

use std::time::Instant;

/// When the kernel took the first and the last byte of content so far, if a recorder reads that.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ContentTimes {
    is_wanted: bool,
    content_bytes: u64,
    first_last: Option<(Instant, Instant)>,
}

impl ContentTimes {
    pub(crate) fn new(is_wanted: bool) -> Self {
        Self {
            is_wanted,
            ..Self::default()
        }
    }

    /// Called with how much content was sent until now, bytes.
    pub(crate) fn reach(&mut self, content_bytes: u64) {
        if self.is_wanted && content_bytes > self.content_bytes {
            self.content_bytes = content_bytes;
            let now = Instant::now();
            self.first_last = Some((self.first_last.map_or(now, |(first, _)| first), now));
        }
    }

    /// When the first and the last byte were sent.
    pub(crate) fn first_last(&self) -> Option<(Instant, Instant)> {
        self.first_last
    }
}
