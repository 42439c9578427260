//! A ramp: a next hop that is new, or was ejected, gets its share little by little, as its cache is
//! to be filled and its connections are to be opened.
//!
//! The share grows evenly from a tenth to the whole. Policies that choose by the target then move
//! targets to it one after the other.

use crate::route::cluster::{Node, Weight};

/// How long a ramp lasts, milliseconds; 0: there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RampMs(pub u64);

impl RampMs {
    /// The parts of a whole share.
    pub(super) const WHOLE: u32 = 100;

    /// The parts of a share that a ramp begins with.
    const FIRST: u32 = 10;

    /// The parts of its share that a next hop gets which has been back for so long.
    pub(super) fn parts(self, back_for_ms: Option<u64>) -> u32 {
        let Some(back_for_ms) = back_for_ms.filter(|ms| *ms < self.0) else {
            return Self::WHOLE;
        };
        let passed = u128::from(back_for_ms) * u128::from(Self::WHOLE) / u128::from(self.0);
        u32::try_from(passed).map_or(Self::WHOLE, |parts| parts.max(Self::FIRST))
    }
}

/// Writes the weights of `nodes`: `parts` of [`RampMs::WHOLE`] of `weights` by place, each times
/// one factor, so that a weight of 1 has parts, too. The factor is always the same: what policies
/// remember of weights stays true.
pub(super) fn write_weights(nodes: &mut [Node], weights: &[Weight], parts: impl Fn(usize) -> u32) {
    let largest = weights.iter().map(|weight| u32::from(weight.get())).max();
    let factor = largest.map_or(1, |largest| u32::from(u16::MAX) / largest);
    let factor = factor.clamp(1, RampMs::WHOLE);
    for (place, (node, weight)) in nodes.iter_mut().zip(weights).enumerate() {
        let scaled = u32::from(weight.get()) * factor * parts(place) / RampMs::WHOLE;
        let scaled = u16::try_from(scaled.max(1)).unwrap_or(u16::MAX);
        node.weight = Weight::new(scaled).unwrap_or(Weight::ONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::cluster::NodeKey;

    #[test]
    fn share_grows_evenly_from_a_tenth_to_the_whole() {
        let check = |back_for_ms, expected| {
            assert_eq!(
                RampMs(30_000).parts(back_for_ms),
                expected,
                "{back_for_ms:?}"
            );
        };
        check(None, 100);
        check(Some(0), 10);
        check(Some(3_000), 10);
        check(Some(3_300), 11);
        check(Some(15_000), 50);
        check(Some(29_999), 99);
        check(Some(30_000), 100);
        assert_eq!(RampMs(0).parts(Some(0)), 100);
        assert_eq!(RampMs(u64::MAX).parts(Some(u64::MAX - 1)), 99);
    }

    #[test]
    fn weights_are_parts_of_those_that_are_configured() {
        let check = |weights: [u16; 2], parts: [u32; 2], expected: [u16; 2]| {
            let mut nodes = [Node::new(NodeKey(1)), Node::new(NodeKey(2))];
            let weights = weights.map(|weight| Weight::new(weight).unwrap());
            write_weights(&mut nodes, &weights, |place| parts[place]);
            assert_eq!(nodes.map(|node| node.weight.get()), expected);
        };
        check([1, 1], [100, 10], [100, 10]);
        check([3, 1], [50, 100], [150, 100]);
        check([3, 1], [100, 100], [300, 100]);
        check([u16::MAX, 1], [50, 100], [u16::MAX / 2, 1]);
    }
}
