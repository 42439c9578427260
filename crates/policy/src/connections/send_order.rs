//! In which order the streams of one connection send content (RFC 9218 §10): the more urgent first,
//! equal ones in turn.
//!
//! A stream hands over content as far as its window is open, so what waits for the connection can
//! be sent. While content waits that is more urgent, a stream adds none. So a stream whose client
//! does not open its window, or whose content does not come, holds up none: it has nothing that
//! waits. Among equally urgent streams each has the same small amount waiting, and the connection
//! takes from them in turn.
//!
//! Whether a response is incremental (`i`) is not looked at: equally urgent ones always share.

use weir_semantics::Urgency;

/// The content that waits for a connection, by urgency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendOrder {
    waiting_bytes: [usize; Urgency::COUNT],
    /// All streams are equal from now on.
    is_ignored: bool,
}

impl SendOrder {
    /// Whether a stream of this urgency may add content.
    #[must_use]
    pub fn may_add(&self, urgency: Urgency) -> bool {
        urgency <= self.least()
    }

    /// The least urgency of which a stream may add content.
    #[must_use]
    pub fn least(&self) -> Urgency {
        if self.is_ignored {
            return Urgency::LEAST;
        }
        let waits = self.waiting_bytes.iter().position(|bytes| *bytes > 0);
        waits.and_then(Urgency::new).unwrap_or(Urgency::LEAST)
    }

    /// Content of a stream waits.
    pub fn add(&mut self, urgency: Urgency, bytes: usize) {
        self.waiting_bytes[urgency.index()] += bytes;
    }

    /// It was sent, or dropped with its stream.
    pub fn leave(&mut self, urgency: Urgency, bytes: usize) {
        let waiting = &mut self.waiting_bytes[urgency.index()];
        *waiting = waiting.saturating_sub(bytes);
    }

    /// Has all streams be equal from now on: content that waits may have to wait for its own window
    /// after all, as a client that makes the windows of its streams smaller brings about (RFC 9113
    /// §6.9.2).
    pub fn ignore(&mut self) {
        self.is_ignored = true;
    }
}

#[cfg(test)]
mod tests;
