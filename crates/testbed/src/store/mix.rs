//! What is asked for: the content types of PolyMix-3 with their sizes, and which response is asked
//! for next.
//!
//! Web Polygraph's third workload (2000): 65 % images, exponential of 4.5 KB in the mean; 15 %
//! HTML, exponential of 8.5 KB; 0.5 % downloads, log-normal of 300 KB (deviation 300 KB); the rest
//! log-normal of 25 KB (10 KB). 10.6 KB in the mean. A hot set of 1 % of the working set is asked
//! for by 10 % of requests, the rest evenly. A response's size is a function of seed and number.

/// No response is larger: a log-normal law has no end.
const SIZE_BYTES_MAX: f64 = 16.0 * 1024.0 * 1024.0;

/// Share of requests for the hot set, and its share of the working set.
const HOT_REQUESTS: f64 = 0.1;
const HOT_SHARE: f64 = 0.01;

/// Numbers that look random and come again for the same seed: splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut chance = Self(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        chance.next();
        chance
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Above 0, at most 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are what a float holds")]
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.unit().ln()
    }

    /// Mean and deviation are those of the variable, not of its logarithm.
    fn log_normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let variance = (1.0 + (deviation / mean).powi(2)).ln();
        let normal = (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos();
        (mean.ln() - variance / 2.0 + variance.sqrt() * normal).exp()
    }
}

/// Bytes of content of response `number`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 1 and 16 MiB"
)]
pub(crate) fn size_bytes(seed: u64, number: u64) -> u64 {
    let mut chance = Chance::new(seed, number + 1);
    let size = match chance.unit() {
        kind if kind <= 0.65 => chance.exponential(4.5 * 1024.0),
        kind if kind <= 0.80 => chance.exponential(8.5 * 1024.0),
        kind if kind <= 0.805 => chance.log_normal(300.0 * 1024.0, 300.0 * 1024.0),
        _ => chance.log_normal(25.0 * 1024.0, 10.0 * 1024.0),
    };
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

/// The number of the response that is asked for next, of `count`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share of a count"
)]
pub(crate) fn next(chance: &mut Chance, count: u64) -> u64 {
    let hot = ((count as f64 * HOT_SHARE) as u64).max(1);
    if chance.unit() <= HOT_REQUESTS {
        chance.below(hot)
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
