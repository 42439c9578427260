//! Which configurations have been in force, one after the other.

use super::model::State;
use std::ops::RangeInclusive;
use std::sync::Mutex;

/// All that have been in force, and how many of them surely are, or were.
pub(super) struct History(Mutex<(Vec<State>, usize)>);

impl History {
    pub(super) fn new(first: State) -> Self {
        Self(Mutex::new((vec![first], 0)))
    }

    /// Has `change` put `state` in force.
    pub(super) fn change(&self, state: State, change: impl FnOnce()) {
        self.0.lock().expect("no panic").0.push(state);
        change();
        let mut states = self.0.lock().expect("no panic");
        states.1 = states.0.len() - 1;
    }

    pub(super) fn last(&self) -> State {
        let states = self.0.lock().expect("no panic");
        states.0.last().expect("one").clone()
    }

    /// The place of the one that is surely in force.
    pub(super) fn settled(&self) -> usize {
        self.0.lock().expect("no panic").1
    }

    /// The place of the one that may be in force.
    pub(super) fn begun(&self) -> usize {
        self.0.lock().expect("no panic").0.len() - 1
    }

    pub(super) fn states(&self, places: RangeInclusive<usize>) -> Vec<State> {
        self.0.lock().expect("no panic").0[places].to_vec()
    }
}
