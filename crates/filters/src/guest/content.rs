//! Content of a message that is kept for a filter, and the memory that it is charged to.

use std::fmt;
use std::ops::Range;
use weir_extend::ContentMemory;

/// Bytes of it that are not charged: most messages are no longer.
const UNCHARGED_BYTES_MAX: usize = 16 * 1024;

/// What is charged is charged in steps of so many bytes: each takes the lock of a shard.
const CHARGE_STEP_BYTES: usize = 64 * 1024;

/// Content that is kept for a filter. It is charged before it grows, and keeps the most that there
/// was until it is dropped.
pub(crate) struct Content {
    bytes: Vec<u8>,
    memory: Box<dyn ContentMemory>,
    charged_bytes: usize,
}

/// There is no room in the memory of responses that arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoMemory;

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content")
            .field("bytes", &self.bytes.len())
            .field("charged_bytes", &self.charged_bytes)
            .finish_non_exhaustive()
    }
}

impl Content {
    /// None yet, charged to `memory`.
    pub(crate) fn new(memory: Box<dyn ContentMemory>) -> Self {
        Self {
            bytes: Vec::new(),
            memory,
            charged_bytes: 0,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets what was put out. The room is kept.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Adds content at the end.
    ///
    /// # Errors
    ///
    /// There is no memory for it.
    pub(crate) fn append(&mut self, content: &[u8]) -> Result<(), NoMemory> {
        self.make_room_for(content.len())?;
        self.bytes.extend_from_slice(content);
        Ok(())
    }

    /// Replaces a part, which lies in it.
    ///
    /// # Errors
    ///
    /// There is no memory for it.
    pub(crate) fn replace(&mut self, range: Range<usize>, content: &[u8]) -> Result<(), NoMemory> {
        self.make_room_for(content.len().saturating_sub(range.len()))?;
        self.bytes.splice(range, content.iter().copied());
        Ok(())
    }

    /// Makes room for `more` bytes. It grows by halves at least, so that it is not copied for each
    /// piece.
    fn make_room_for(&mut self, more: usize) -> Result<(), NoMemory> {
        let (bytes, capacity) = (self.bytes.len() + more, self.bytes.capacity());
        if bytes <= capacity {
            return Ok(());
        }
        let wanted = bytes.max(capacity + capacity / 2);
        self.charge(wanted)?;
        self.bytes.reserve_exact(wanted - self.bytes.len());
        Ok(())
    }

    fn charge(&mut self, bytes: usize) -> Result<(), NoMemory> {
        if bytes <= UNCHARGED_BYTES_MAX.max(self.charged_bytes) {
            return Ok(());
        }
        let charge = bytes.checked_next_multiple_of(CHARGE_STEP_BYTES);
        let charge = charge.ok_or(NoMemory)?;
        if !self.memory.hold(charge) {
            return Err(NoMemory);
        }
        self.charged_bytes = charge;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// Memory of so many bytes, and what was asked for each time.
    struct Room(usize, Arc<Mutex<Vec<usize>>>);

    impl ContentMemory for Room {
        fn hold(&mut self, bytes: usize) -> bool {
            self.1.lock().expect("no panic").push(bytes);
            bytes <= self.0
        }

        fn another(&self) -> Box<dyn ContentMemory> {
            Box::new(Self(self.0, Arc::clone(&self.1)))
        }
    }

    #[test]
    fn content_is_charged_in_steps_before_it_grows() {
        let asked = Arc::<Mutex<Vec<usize>>>::default();
        let mut content = Content::new(Box::new(Room(128 * 1024, Arc::clone(&asked))));
        let asked = || std::mem::take(&mut *asked.lock().expect("no panic"));
        assert_eq!(content.append(&[b'x'; UNCHARGED_BYTES_MAX]), Ok(()));
        assert_eq!(asked(), [0; 0]);
        assert_eq!(content.append(b"x"), Ok(()));
        assert_eq!(content.append(b"x"), Ok(()));
        assert_eq!(asked(), [64 * 1024]);
        let more = vec![b'x'; 80 * 1024];
        assert_eq!(content.replace(0..4, &more), Ok(()));
        assert_eq!(content.append(&more), Err(NoMemory));
        assert_eq!(content.replace(0..0, &more), Err(NoMemory));
        assert_eq!(asked(), [128 * 1024, 192 * 1024, 192 * 1024]);
        assert_eq!(content.bytes().len(), 96 * 1024 - 2);
        // what was charged once can be used again
        content.clear();
        assert_eq!(content.append(&more), Ok(()));
        assert_eq!(asked(), [0; 0]);
    }
}
