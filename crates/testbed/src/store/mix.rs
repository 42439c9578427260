//! The requests: the content types of PolyMix-3 with their sizes, and the choice of the next
//! response.
//!
//! Web Polygraph's third workload (2000): 65 % images, exponential of 4.5 KB in the mean; 15 %
//! HTML, exponential of 8.5 KB; 0.5 % downloads, log-normal of 300 KB (deviation 300 KB); the rest
//! log-normal of 25 KB (10 KB). 10.6 KB in the mean. A hot set of 1 % of the working set gets 10 %
//! of the requests, the rest is requested evenly. A response's size is a function of seed and
//! number.

use std::sync::LazyLock;
use weir_workload::{Chance, Law};

/// Up to which share of all responses, and the law of their sizes.
static SIZES: LazyLock<Vec<(f64, Law)>> = LazyLock::new(|| {
    let law = |text: &str| text.parse::<Law>().ok();
    let sizes = [
        (0.65, "exp(4.5KB)"),
        (0.80, "exp(8.5KB)"),
        (0.805, "lognormal(300KB, 300KB)"),
        (1.0, "lognormal(25KB, 10KB)"),
    ];
    sizes
        .into_iter()
        .filter_map(|(up_to, text)| Some((up_to, law(text)?)))
        .collect()
});

/// No response is larger: a log-normal law has no end.
const SIZE_BYTES_MAX: f64 = 16.0 * 1024.0 * 1024.0;

/// Share of requests for the hot set, and one response in so many is in it.
const HOT_REQUESTS: f64 = 0.1;
const HOT_ONE_IN: u64 = 100;

/// Bytes of content of response `number`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 1 and 16 MiB"
)]
pub(crate) fn size_bytes(seed: u64, number: u64) -> u64 {
    let mut chance = Chance::new(seed, number + 1);
    let kind = chance.unit();
    let law = SIZES.iter().find(|(up_to, _)| kind < *up_to);
    let size = law.map_or(0.0, |(_, law)| law.draw(&mut chance));
    size.clamp(1.0, SIZE_BYTES_MAX) as u64
}

/// Responses of a working set of so many bytes.
pub(crate) fn count(seed: u64, bytes: u64) -> u64 {
    let mut sum = 0;
    let mut count = 0;
    while sum < bytes {
        sum += size_bytes(seed, count);
        count += 1;
    }
    count
}

/// The number of the response that is requested next, of `count`.
pub(crate) fn next(chance: &mut Chance, count: u64) -> u64 {
    if chance.is(HOT_REQUESTS) {
        chance.below((count / HOT_ONE_IN).max(1))
    } else {
        chance.below(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_response_size_matches_the_mix() {
        let sum: u64 = (0..100_000).map(|number| size_bytes(1, number)).sum();
        let mean = sum / 100_000;
        // 0.65 x 4.5 + 0.15 x 8.5 + 0.005 x 300 + 0.195 x 25 = 10.6 KiB
        assert!((10_500..11_200).contains(&mean), "{mean}");
        assert_eq!(size_bytes(1, 5), size_bytes(1, 5));
        assert_ne!(size_bytes(1, 5), size_bytes(2, 5));
    }

    #[test]
    fn working_set_has_the_fewest_responses_that_reach_its_size() {
        let count = count(1, 1 << 20);
        let sum: u64 = (0..count).map(|number| size_bytes(1, number)).sum();
        assert!(sum >= 1 << 20);
        assert!(sum - size_bytes(1, count - 1) < 1 << 20);
    }

    #[test]
    fn hot_set_receives_its_share_of_requests() {
        let mut chance = Chance::new(1, 0);
        let hot = (0..100_000).filter(|_| next(&mut chance, 10_000) < 100);
        let hot = hot.count();
        // 10 %, and 1 % of the others
        assert!((10_400..11_400).contains(&hot), "{hot}");
    }
}
