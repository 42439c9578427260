//! The memory that the content of one message takes on its way through modules: what they hold, and
//! what the decoders in front of them take.
//!
//! It is charged to the memory of responses that arrive, as whole content is
//! ([`weir_extend::Whole`]), so that many slow clients or next hops cannot make it add up.

use std::rc::Rc;
use weir_extend::{ContentMemory, Host, PIECE_BYTES_MAX};

/// Bytes that each message may take without a charge, beside those: most messages are no longer.
/// With the buffers of its stream it then takes at most 256 KiB.
pub(super) const UNCHARGED_BYTES_MAX: usize = PIECE_BYTES_MAX;

/// What is charged is charged in steps of so many bytes: each takes the lock of a shard.
const CHARGE_STEP_BYTES: usize = 64 * 1024;

/// The memory of one message.
pub(super) struct MessageMemory {
    /// Whose budget it is.
    host: Rc<dyn Host>,
    /// Once something is charged. It keeps the most that there was.
    charged: Option<Box<dyn ContentMemory>>,
    bytes: usize,
}

/// There is no room in the memory of responses that arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoMemory;

impl MessageMemory {
    /// None yet, of the budget of `host`.
    pub(super) fn new(host: Rc<dyn Host>) -> Self {
        Self {
            host,
            charged: None,
            bytes: 0,
        }
    }

    /// Takes `bytes` more.
    ///
    /// # Errors
    ///
    /// There is no room for them.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), NoMemory> {
        let all = self.bytes.checked_add(bytes).ok_or(NoMemory)?;
        if all > UNCHARGED_BYTES_MAX {
            let charge = all - UNCHARGED_BYTES_MAX;
            let charge = charge.checked_next_multiple_of(CHARGE_STEP_BYTES);
            let charged = self.charged.get_or_insert_with(|| self.host.memory());
            if !charged.hold(charge.ok_or(NoMemory)?) {
                return Err(NoMemory);
            }
        }
        self.bytes = all;
        Ok(())
    }

    /// `bytes` of it are not used any more: the message may take them again.
    pub(super) fn give_back(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use weir_extend::{Detached, FetchError, LogLevel, OwnRequest, OwnResponse, Pending};

    /// A host with so many bytes of memory, of which it has given some to the only message.
    pub(crate) struct Limited {
        pub(crate) bytes_max: usize,
        /// What the message asked for, each time.
        pub(crate) asked: Arc<Mutex<Vec<usize>>>,
    }

    impl Host for Limited {
        fn worker(&self) -> usize {
            0
        }

        fn wall_ms(&self) -> u64 {
            0
        }

        fn log(&self, _: LogLevel, _: &str) {}

        fn fetch(&self, request: OwnRequest) -> Pending<Result<OwnResponse, FetchError>> {
            Detached.fetch(request)
        }

        fn memory(&self) -> Box<dyn ContentMemory> {
            Box::new(LimitedMemory(self.bytes_max, Arc::clone(&self.asked)))
        }
    }

    struct LimitedMemory(usize, Arc<Mutex<Vec<usize>>>);

    impl ContentMemory for LimitedMemory {
        fn hold(&mut self, bytes: usize) -> bool {
            self.1.lock().expect("no panic").push(bytes);
            bytes <= self.0
        }

        fn another(&self) -> Box<dyn ContentMemory> {
            Box::new(Self(self.0, Arc::clone(&self.1)))
        }
    }

    #[test]
    fn message_is_charged_in_steps_beyond_what_each_may_take() {
        let asked = Arc::<Mutex<Vec<usize>>>::default();
        let asked_for = || asked.lock().expect("no panic").clone();
        let mut memory = MessageMemory::new(Rc::new(Limited {
            bytes_max: 128 * 1024,
            asked: Arc::clone(&asked),
        }));
        assert_eq!(memory.take(UNCHARGED_BYTES_MAX), Ok(()));
        assert_eq!(asked_for(), [0; 0]);
        assert_eq!(memory.take(1), Ok(()));
        assert_eq!(memory.take(64 * 1024), Ok(()));
        assert_eq!(memory.take(64 * 1024), Err(NoMemory));
        assert_eq!(memory.take(usize::MAX), Err(NoMemory));
        assert_eq!(asked_for(), [64 * 1024, 128 * 1024, 192 * 1024]);
        memory.give_back(64 * 1024);
        assert_eq!(memory.take(64 * 1024), Ok(()));
    }
}
