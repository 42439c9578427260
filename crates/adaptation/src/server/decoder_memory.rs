//! The memory that the decoders of all messages have: a peer chooses how large a window is.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use weir_codings::MemoryGauge;

/// Most bytes that the decoders of a process have, beside what one call takes: as the largest
/// windows of br take 16 MiB each, and those of gzip 32 KiB.
const DECODER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// What the decoders of this process have.
static USED: AtomicUsize = AtomicUsize::new(0);

/// The memory of one decoder. Dropping it gives that back.
#[derive(Debug)]
pub(super) struct DecoderMemory {
    used: &'static AtomicUsize,
    gauge: MemoryGauge,
    charged_bytes: usize,
}

impl DecoderMemory {
    pub(super) fn new(gauge: MemoryGauge) -> Self {
        Self {
            used: &USED,
            gauge,
            charged_bytes: 0,
        }
    }

    /// Charges what the decoder has now; `false` if there is no room for it. To be called after
    /// each call of the decoder.
    pub(super) fn charge(&mut self) -> bool {
        let bytes = self.gauge.bytes();
        let (more, less) = (
            bytes.saturating_sub(self.charged_bytes),
            self.charged_bytes.saturating_sub(bytes),
        );
        self.charged_bytes = bytes;
        self.used.fetch_sub(less, Relaxed);
        let before = self.used.fetch_add(more, Relaxed);
        more == 0 || before + more <= DECODER_BYTES_MAX
    }
}

impl Drop for DecoderMemory {
    fn drop(&mut self) {
        self.used.fetch_sub(self.charged_bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_codings::Decoder;
    use weir_extend::Coding;

    #[test]
    fn decoders_have_no_more_than_the_limit_and_give_it_back() {
        static OWN: AtomicUsize = AtomicUsize::new(0);
        let begin = || {
            let (stage, gauge) = Decoder::gauged_stage(Coding::Gzip);
            let mut memory = DecoderMemory::new(gauge);
            memory.used = &OWN;
            (stage, memory)
        };
        let (_stage, mut memory) = begin();
        assert!(memory.charge() && memory.charge());
        let bytes = OWN.load(Relaxed);
        assert!(bytes > 32 * 1024, "{bytes}");
        OWN.store(DECODER_BYTES_MAX - bytes, Relaxed);
        let (_other, mut other) = begin();
        assert!(other.charge());
        let (_third, mut third) = begin();
        assert!(!third.charge());
        drop((memory, other, third));
        assert_eq!(OWN.load(Relaxed), DECODER_BYTES_MAX - 2 * bytes);
    }
}
