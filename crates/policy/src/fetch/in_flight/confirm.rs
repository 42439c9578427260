//! When a reader may be sent its head: once all content by that head is known to be of one
//! representation.
//!
//! Content that is here, or of a fetch whose head was received, is. Content that must still be
//! fetched may be of another one (RFC 9110 §13.1.5): as long as nothing was sent, the request can
//! be forwarded again instead of cutting the response.

use super::InFlightState;
use super::fetch::Fetch;
use super::reader::Reader;
use super::types::{Confirm, FetchId, ReaderId};
use crate::fetch::byte_span::ByteSpan;
use crate::now::Now;

impl InFlightState {
    /// The response head of the fetch has come, and is of this representation.
    pub fn confirmed(&mut self, fetch: FetchId) {
        if let Some(fetch) = self.fetches.get_mut(fetch) {
            fetch.is_confirmed = true;
        }
    }

    /// Whether the reader, which was sent nothing so far, can be sent its head. It begins the fetch
    /// of the first gap that no other will bring, however far the reader is from it: the gaps
    /// beyond that one are as likely to be of the same representation as anything that is fetched
    /// later.
    pub fn confirm(&mut self, now: Now, reader: ReaderId) -> Confirm {
        let Some(Reader { at, to, .. }) = self.readers.get(reader) else {
            return Confirm::No;
        };
        if self.is_ended_by_module() {
            return Confirm::No;
        }
        let end = to.min(self.length());
        let mut missing = self.present.run_end(at);
        while missing < end {
            let Some(fetch) = self.surely_bringing(missing) else {
                return self.confirm_by_fetch(
                    now,
                    reader,
                    at,
                    ByteSpan {
                        from: missing,
                        to: end,
                    },
                );
            };
            if !fetch.is_confirmed {
                return Confirm::Wait;
            }
            missing = self.present.run_end(self.limit(fetch));
        }
        Confirm::Yes
    }

    /// The fetch that brings the byte `missing`, and for which no other will be begun.
    fn surely_bringing(&self, missing: u64) -> Option<&Fetch> {
        if self.can_begin() {
            self.near(missing)
        } else {
            self.bringing(missing)
        }
    }

    /// By a fetch of what is missing, for a reader at `at`. Where all places are taken, those that
    /// run have to do: it is one more of a crowd, and will have its fetch when it is its turn.
    fn confirm_by_fetch(
        &mut self,
        now: Now,
        reader: ReaderId,
        at: u64,
        missing: ByteSpan,
    ) -> Confirm {
        if !self.can_begin() {
            return Confirm::No;
        }
        // as for a step: one that has something to read does not take the last places
        let max = self.fetches_max();
        let max = if self.present.run_end(at) > at {
            max.div_ceil(2)
        } else {
            max
        };
        if self.fetches.len() >= max {
            let is_confirmed = self.fetches.iter().any(|fetch| fetch.is_confirmed);
            return if is_confirmed {
                Confirm::Yes
            } else {
                Confirm::Wait
            };
        }
        let span = self.gap(missing.from, missing.to);
        let fetch = self.ask(now, span);
        if let Some(begun) = self.fetches.get_mut(fetch) {
            begun.expected_by = Some(reader);
        }
        Confirm::Fetch { fetch, span }
    }

    /// The reader that had the fetch begun to be sent its head, if it is still before it: the fetch
    /// waits for it.
    pub(super) fn expecting(&self, fetch: &Fetch) -> Option<Reader> {
        let reader = self.readers.get(fetch.expected_by?)?;
        (reader.at <= fetch.front && reader.to > fetch.front).then_some(reader)
    }
}
