//! Numbers of targets, in the order in which they come.

use super::error::GroupingError;
use super::{ConnectionTrace, Target};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use weir_workload::MixHasher;

#[derive(Debug, Default)]
pub(super) struct TargetNumbers {
    numbers: HashMap<u64, u32, BuildHasherDefault<MixHasher>>,
    targets: Vec<Target>,
}

impl TargetNumbers {
    /// The number of a target, which has `bytes` if it is new.
    pub(super) fn number(&mut self, hash: u64, bytes: u64) -> Result<u32, GroupingError> {
        if let Some(number) = self.numbers.get(&hash) {
            return Ok(*number);
        }
        let number = u32::try_from(self.targets.len()).ok();
        let number = number.filter(|number| *number < ConnectionTrace::TARGETS_MAX);
        let number = number.ok_or(GroupingError::TooManyTargets)?;
        self.numbers.insert(hash, number);
        self.targets.push(Target { hash, bytes });
        Ok(number)
    }

    pub(super) fn finish(self) -> Vec<Target> {
        self.targets
    }
}
