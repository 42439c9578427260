//! What a copy of the content of a hit costs: a module that takes content and puts it out again
//! makes one, and Weir without a module makes none. Content in memory leaves by `writev` from where
//! it is stored, and content on disk by `sendfile`.

use super::counts::LARGE_BYTES;
use crate::process::affinity;
use std::hint::black_box;
use std::thread;
use std::time::Instant;
use weir_measure::quantile::Spread;
use xtask::failure::Failure;

/// As many bytes are copied to one place: what a module puts out at once.
const PIECE_BYTES: usize = 64 << 10;

/// Copies that are timed together, and how often: some are disturbed.
const COPIES: u32 = 100;
const BATCHES: u32 = 15;

/// The time of a copy of 256 KiB on this core, microseconds, the median of some.
///
/// # Errors
///
/// The thread cannot move to the core.
pub(super) fn measure(core: usize) -> Result<f64, Failure> {
    thread::scope(|scope| {
        let run = || {
            affinity::stay_on(core)?;
            let batches = (0..BATCHES).map(|_| time_batch());
            let spread = Spread::of(batches.collect::<Vec<_>>());
            Ok(spread.map_or(0.0, |spread| spread.median))
        };
        let ended = scope.spawn(run).join();
        ended.unwrap_or_else(|_| Err(Failure::Refused("it panicked".to_owned())))
    })
}

/// The time of a copy in microseconds, of some one after the other.
fn time_batch() -> f64 {
    let content = vec![b'c'; usize::try_from(LARGE_BYTES).unwrap_or(PIECE_BYTES)];
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    let begun = Instant::now();
    for _ in 0..COPIES {
        for from in content.chunks(PIECE_BYTES) {
            piece.clear();
            piece.extend_from_slice(black_box(from));
            black_box(&piece);
        }
    }
    begun.elapsed().as_secs_f64() * 1e6 / f64::from(COPIES)
}
