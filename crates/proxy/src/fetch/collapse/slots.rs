//! A slot for each request that leads or follows: the command it was given, and its waker.

use crate::fetch::in_flight::InFlightResponse;
use crate::fetch::waiting::WakeList;
use std::sync::Arc;
use std::task::Waker;
use weir_policy::collapse::Command;

/// Vacant slots that stay allocated when no slot is taken.
const VACANT_MAX: usize = 1024;

/// A request that leads or follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotId(u32);

/// The slots of one part of the targets; a vacant one is used again.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    vacant: Vec<SlotId>,
}

#[derive(Debug, Default)]
pub(super) struct Slot {
    /// The command for the request, which has not read it yet.
    pub(super) command: Option<Command<Arc<InFlightResponse>>>,
    pub(super) waker: Option<Waker>,
}

impl Slots {
    /// An empty slot.
    pub(super) fn take(&mut self) -> SlotId {
        self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            SlotId(u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX))
        })
    }

    /// The slot is vacant again. What was in it, to be dropped without the lock.
    pub(super) fn give_back(&mut self, id: SlotId) -> Option<Slot> {
        let slot = self.slots.get_mut(id.0 as usize).map(std::mem::take);
        self.vacant.push(id);
        if self.vacant.len() == self.slots.len() && self.slots.len() > VACANT_MAX {
            *self = Self::default();
        }
        slot
    }

    pub(super) fn at(&mut self, id: SlotId) -> &mut Slot {
        &mut self.slots[id.0 as usize]
    }

    /// Puts `commands` into their slots; the wakers to be woken without the lock.
    pub(super) fn tell(
        &mut self,
        commands: Vec<(SlotId, Command<Arc<InFlightResponse>>)>,
    ) -> WakeList {
        let mut woken = WakeList::default();
        for (id, command) in commands {
            let slot = self.at(id);
            // a leader looks itself whether others wait
            if !matches!(command, Command::NotAwaited) {
                slot.command = Some(command);
            }
            woken.extend(slot.waker.take());
        }
        woken
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.slots.len() == self.vacant.len()
    }
}
