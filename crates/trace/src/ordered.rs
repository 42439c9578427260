//! Order by a key alone, for values in a heap.

/// Orders values of a type by a key of theirs; values with equal keys are equal.
macro_rules! ordered_by {
    ($name:ty, $key:expr) => {
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                let key = $key;
                key(self).cmp(&key(other))
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other).is_eq()
            }
        }

        impl Eq for $name {}
    };
}
pub(crate) use ordered_by;
