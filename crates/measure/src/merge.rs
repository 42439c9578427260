//! Counts of several threads, machines or phases added up, field by field.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Counts that can be added up.
pub trait Merge {
    /// Adds all of another's.
    fn merge(&mut self, other: &Self);
}

impl Merge for u64 {
    fn merge(&mut self, other: &Self) {
        *self += other;
    }
}

impl Merge for f64 {
    fn merge(&mut self, other: &Self) {
        *self += other;
    }
}

/// A sum with an unknown part is unknown.
impl Merge for Option<u64> {
    fn merge(&mut self, other: &Self) {
        *self = self.zip(*other).map(|(one, two)| one + two);
    }
}

impl<K: Clone + Ord, V: Default + Merge> Merge for BTreeMap<K, V> {
    fn merge(&mut self, other: &Self) {
        for (key, value) in other {
            self.entry(key.clone()).or_default().merge(value);
        }
    }
}

/// By place; places that only one has count as zero.
impl<V: Default + Merge> Merge for Vec<V> {
    fn merge(&mut self, other: &Self) {
        if self.len() < other.len() {
            self.resize_with(other.len(), V::default);
        }
        for (one, two) in self.iter_mut().zip(other) {
            one.merge(two);
        }
    }
}

/// Values, ascending, each with its count.
impl Merge for Vec<(u64, u64)> {
    fn merge(&mut self, other: &Self) {
        let mut merged = Self::with_capacity(self.len() + other.len());
        let (mut ours, mut theirs) = (self.as_slice(), other.as_slice());
        while let (Some(&one), Some(&two)) = (ours.first(), theirs.first()) {
            let next = one.0.min(two.0);
            let count = |pair: (u64, u64)| if pair.0 == next { pair.1 } else { 0 };
            merged.push((next, count(one) + count(two)));
            ours = &ours[usize::from(one.0 == next)..];
            theirs = &theirs[usize::from(two.0 == next)..];
        }
        merged.extend_from_slice(ours);
        merged.extend_from_slice(theirs);
        *self = merged;
    }
}

/// Implements [`Merge`] for a structure: the fields of `sum` are merged, of those of `max` the
/// larger one stays, those of `keep` stay as they are. A field that is not named does not compile.
#[macro_export]
macro_rules! merge_fields {
    ($(
        $name:ty {
            sum { $($sum:ident),+ $(,)? }
            $(max { $($max:ident),+ $(,)? })?
            $(keep { $($keep:ident),+ $(,)? })?
        }
    )+) => { $(
        impl $name {
            /// Adds all of another's.
            pub fn merge(&mut self, other: &Self) {
                let Self { $($sum: _,)+ $($($max: _,)+)? $($($keep: _,)+)? } = other;
                $($crate::Merge::merge(&mut self.$sum, &other.$sum);)+
                $($(self.$max = self.$max.max(other.$max);)+)?
            }
        }

        impl $crate::Merge for $name {
            fn merge(&mut self, other: &Self) {
                Self::merge(self, other);
            }
        }
    )+ };
}
