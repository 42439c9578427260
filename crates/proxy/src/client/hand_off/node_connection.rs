//! A connection that was handed over to this node.

use std::cell::Cell;
use std::time::Instant;
use weir_policy::connections::hand_off::MoveCredit;

/// What is known of it beside the connection itself.
#[derive(Debug)]
pub(crate) struct NodeConnection {
    /// The front end that leads its packets here.
    pub(super) front_end: String,
    /// By which the front end knows it.
    pub(super) ticket: String,
    /// How often it was tried to move it on.
    attempts: Cell<u32>,
    credit: Cell<MoveCredit>,
    credited: Cell<Instant>,
    /// Another node has it.
    has_moved: Cell<bool>,
}

impl NodeConnection {
    pub(super) fn new(front_end: String, ticket: String, credit: MoveCredit) -> Self {
        Self {
            front_end,
            ticket,
            attempts: Cell::new(0),
            credit: Cell::new(credit),
            credited: Cell::new(Instant::now()),
            has_moved: Cell::new(false),
        }
    }

    /// How often it may move now.
    pub(super) fn credit(&self) -> MoveCredit {
        let elapsed = self.credited.get().elapsed().as_millis();
        let elapsed_ms = u64::try_from(elapsed).unwrap_or(u64::MAX);
        self.credit.get().after(elapsed_ms)
    }

    /// Begins an attempt to move it, after which `credit` is left: its number.
    pub(super) fn begin_attempt(&self, credit: MoveCredit) -> u32 {
        self.credit.set(credit);
        self.credited.set(Instant::now());
        let attempt = self.attempts.get().saturating_add(1);
        self.attempts.set(attempt);
        attempt
    }

    /// Another node has it, or none: its end is not this node's to tell.
    pub(super) fn note_moved(&self) {
        self.has_moved.set(true);
    }

    pub(super) fn has_moved(&self) -> bool {
        self.has_moved.get()
    }
}
