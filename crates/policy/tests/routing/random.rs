//! Numbers and clusters for tests.

use weir_policy::route::{Load, Node, NodeKey, TargetKey, Weight};

/// `SplitMix64`: the same numbers for the same seed, everywhere.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }

    pub(crate) fn load(&mut self, requests_max: usize) -> Load {
        Load::requests(u32::try_from(self.below(requests_max + 1)).unwrap())
    }

    pub(crate) fn weight(&mut self, max: usize) -> Weight {
        Weight::new(u16::try_from(1 + self.below(max)).unwrap()).unwrap()
    }
}

/// A hash of a name, FNV-1a and mixed: only for tests.
pub(crate) fn hash_of(name: &str) -> u64 {
    let hash = name.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    Random(hash).next()
}

/// `count` nodes without load, named by their number.
pub(crate) fn nodes(count: usize) -> Vec<Node> {
    let names = (0..count).map(|number| format!("node{number}"));
    names
        .map(|name| Node::new(NodeKey(hash_of(&name))))
        .collect()
}

/// The number of a target of a Zipf law of exponent 0.8 over `count` targets.
#[derive(Debug)]
pub(crate) struct Zipf(Vec<f64>);

impl Zipf {
    pub(crate) fn new(count: u32) -> Self {
        let mut sum = 0.0;
        let sums = (1..=count).map(|rank| {
            sum += f64::from(rank).powf(-0.8);
            sum
        });
        Self(sums.collect())
    }

    pub(crate) fn draw(&self, random: &mut Random) -> TargetKey {
        #[expect(clippy::cast_precision_loss, reason = "32 bits of chance are enough")]
        let part = (random.next() >> 32) as f64 / 4_294_967_296.0;
        let drawn = part * self.0.last().unwrap();
        let rank = self.0.partition_point(|sum| *sum <= drawn);
        TargetKey(hash_of(&format!("/target/{rank}")))
    }
}
