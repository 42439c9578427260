//! The groups that one request was in, one after the other.

use super::GroupId;

/// Groups that a request may be in before it asks for itself: each that turns out to be for other
/// requests costs it a wait.
pub const PASSES_MAX: usize = 3;

/// The groups that had no response for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passes([Option<GroupId>; PASSES_MAX]);

impl Passes {
    /// The response of `group` does not answer the request.
    pub fn pass(&mut self, group: GroupId) {
        if let Some(place) = self.0.iter_mut().find(|place| place.is_none()) {
            *place = Some(group);
        }
    }

    /// Whether the request asks for itself now.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0.iter().all(Option::is_some)
    }

    /// Whether `group` is one of them.
    #[must_use]
    pub fn contains(&self, group: GroupId) -> bool {
        self.0.contains(&Some(group))
    }
}
