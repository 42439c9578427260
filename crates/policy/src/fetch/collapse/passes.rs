//! The groups that one request was in, one after the other.

use super::GroupId;

/// Groups that a request may be in before it is forwarded by itself: each group whose response
/// cannot answer it costs a wait.
pub const PASSES_MAX: usize = 3;

/// The groups that had no response for a request, and what it learnt there. `V` names a variant of
/// the target (RFC 9111 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passes<V> {
    groups: [Option<GroupId>; PASSES_MAX],
    /// The variant that the request selects, by the `Vary` of the last response that was another
    /// one.
    pub(super) variant: Option<V>,
}

impl<V> Default for Passes<V> {
    fn default() -> Self {
        Self {
            groups: [None; PASSES_MAX],
            variant: None,
        }
    }
}

impl<V> Passes<V> {
    /// A response of the target is another variant than `variant`, which the request selects.
    pub fn wants_variant(&mut self, variant: V) {
        self.variant = Some(variant);
    }

    /// The response of `group` does not answer the request.
    pub fn pass(&mut self, group: GroupId) {
        if let Some(place) = self.groups.iter_mut().find(|place| place.is_none()) {
            *place = Some(group);
        }
    }

    /// Whether the request is forwarded by itself now.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.groups.iter().all(Option::is_some)
    }

    /// Whether `group` is one of them.
    #[must_use]
    pub fn contains(&self, group: GroupId) -> bool {
        self.groups.contains(&Some(group))
    }
}
