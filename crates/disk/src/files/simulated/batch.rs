//! A batch whose transfers end in any order.

use super::Random;
use crate::files::{Batch, Interrupter, Transfer, TransferResult};
use crate::lock::lock;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug, Default)]
pub(super) struct SimulatedBatch {
    begun: Vec<Transfer>,
    interrupter: Arc<SimulatedInterrupter>,
    random: Random,
}

impl SimulatedBatch {
    fn end(&self, transfer: Transfer) -> TransferResult {
        let Transfer {
            token,
            file,
            is_direct,
            mut memory,
            into,
            offset,
        } = transfer;
        let room = &mut memory.room(into.end)[into];
        let result = if is_direct {
            file.read_at_direct(room, offset)
        } else {
            file.read_at(room, offset)
        };
        TransferResult {
            token,
            memory,
            result,
        }
    }
}

impl Batch for SimulatedBatch {
    fn begin(&mut self, transfer: Transfer) {
        self.begun.push(transfer);
    }

    fn wait(&mut self, longest: Duration, came: &mut Vec<TransferResult>) -> io::Result<()> {
        if self.begun.is_empty() {
            self.interrupter.wait(longest);
            return Ok(());
        }
        let ended = 1 + self.random.below(self.begun.len() as u64);
        for _ in 0..ended {
            let which = self.random.below(self.begun.len() as u64);
            let which = usize::try_from(which).unwrap_or(0);
            let transfer = self.begun.swap_remove(which);
            came.push(self.end(transfer));
        }
        Ok(())
    }

    fn interrupter(&self) -> Arc<dyn Interrupter> {
        Arc::<SimulatedInterrupter>::clone(&self.interrupter)
    }
}

#[derive(Debug, Default)]
struct SimulatedInterrupter {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl SimulatedInterrupter {
    fn wait(&self, longest: Duration) {
        let rung = lock(&self.rung);
        let waited = self.heard.wait_timeout_while(rung, longest, |rung| !*rung);
        let (mut rung, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *rung = false;
    }
}

impl Interrupter for SimulatedInterrupter {
    fn interrupt(&self) {
        *lock(&self.rung) = true;
        self.heard.notify_one();
    }
}
