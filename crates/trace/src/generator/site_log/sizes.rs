//! Sizes of targets: quantiles of a log-normal law, so that sums hold for every seed.

use super::profile::SizeLaw;
use weir_workload::{Chance, whole};

/// A size for each of `ranks`, the share of each target's rank in (0, 1], most popular first; their
/// sum is `bytes`, to within half a byte a target.
pub(super) fn sizes(law: &SizeLaw, ranks: &[f64], bytes: u64, chance: &mut Chance) -> Vec<u64> {
    let mut drawn = Vec::with_capacity(ranks.len());
    let of_whole = quantiles(law.sigma, NEIGHBOURS);
    for block in ranks.chunks(NEIGHBOURS) {
        let mut factors = match block.len() {
            NEIGHBOURS => of_whole.clone(),
            fewer => quantiles(law.sigma, fewer),
        };
        shuffle(&mut factors, chance);
        let of_block = factors.iter().zip(block);
        drawn.extend(of_block.map(|(factor, rank)| factor * libm::pow(*rank, law.rank_exponent)));
    }
    let factor = bytes as f64 / drawn.iter().sum::<f64>();
    let size = |drawn: f64| whole::<u64>(drawn * factor + 0.5).max(law.bytes_min);
    drawn.into_iter().map(size).collect()
}

/// The middles of `count` equally likely parts of a log-normal law with median 1.
pub(super) fn quantiles(sigma: f64, count: usize) -> Vec<f64> {
    let share = |place: usize| (place as f64 + 0.5) / count as f64;
    let of = |place| libm::exp(sigma * normal_quantile(share(place)));
    (0..count).map(of).collect()
}

/// Fisher and Yates.
pub(super) fn shuffle<T>(all: &mut [T], chance: &mut Chance) {
    for end in (1..all.len()).rev() {
        let other = chance.below(end as u64 + 1);
        all.swap(end, usize::try_from(other).unwrap_or(end));
    }
}

/// Where the standard normal law has this share below, found by halving.
fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-DEVIATIONS_MAX, DEVIATIONS_MAX);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if libm::erfc(-middle / core::f64::consts::SQRT_2) / 2.0 < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// Targets that are neighbours by popularity and share the quantiles among them; ours. More would
/// leave the order of sizes to chance, and with it the bytes of a share of the requests.
pub(super) const NEIGHBOURS: usize = 64;

/// No quantile of so few parts is further out.
const DEVIATIONS_MAX: f64 = 8.0;

/// The last of them is smaller than the last digit of what is found.
const HALVINGS: u32 = 56;

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: SizeLaw = SizeLaw {
        sigma: 1.3,
        rank_exponent: 0.3,
        bytes_min: 64,
    };

    #[test]
    fn normal_quantile_is_that_of_the_tables() {
        for (share, quantile) in [(0.5, 0.0), (0.975, 1.959_964), (0.01, -2.326_348)] {
            let found = normal_quantile(share);
            assert!((found - quantile).abs() < 1e-6, "{share}: {found}");
        }
    }

    #[test]
    fn sizes_of_each_64_neighbours_are_the_quantiles_of_the_law() {
        // without an influence of the rank
        let law = SizeLaw {
            rank_exponent: 0.0,
            ..LAW
        };
        let ranks = vec![0.5; 10 * NEIGHBOURS];
        for seed in 1..4 {
            let sizes = sizes(&law, &ranks, 640_000_000, &mut Chance::new(seed, 0));
            let blocks: Vec<Vec<u64>> = sizes
                .chunks(NEIGHBOURS)
                .map(|block| {
                    let mut block = block.to_vec();
                    block.sort_unstable();
                    block
                })
                .collect();
            assert!(blocks.iter().all(|block| *block == blocks[0]));
            let quantiles = quantiles(law.sigma, NEIGHBOURS);
            let mean = quantiles.iter().sum::<f64>() / NEIGHBOURS as f64;
            for (size, quantile) in blocks[0].iter().zip(quantiles) {
                assert!(
                    (*size as f64 - quantile / mean * 1e6).abs() <= 0.51,
                    "{size}"
                );
            }
            // and not in their order
            assert_ne!(sizes[..NEIGHBOURS], blocks[0]);
            assert_ne!(sizes[..NEIGHBOURS], sizes[NEIGHBOURS..2 * NEIGHBOURS]);
        }
    }

    #[test]
    fn sizes_add_up_and_popular_targets_are_smaller() {
        let ranks: Vec<f64> = (1..=1000).map(|rank| f64::from(rank) / 1000.0).collect();
        let sizes = sizes(&LAW, &ranks, 30_000_000, &mut Chance::new(1, 0));
        let sum: u64 = sizes.iter().sum();
        assert!(sum.abs_diff(30_000_000) <= 1000, "{sum}");
        assert!(sizes.iter().all(|size| *size >= LAW.bytes_min));
        let mean = |sizes: &[u64]| sizes.iter().sum::<u64>() / sizes.len() as u64;
        assert!(mean(&sizes[..128]) * 3 < mean(&sizes[872..]) * 2);
    }
}
