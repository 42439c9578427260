//! The room of a worker for wider windows of connections of HTTP/2 from clients.
//!
//! Within its window a client sends content that is held until a next hop takes it. What next hops
//! have stopped is to stop nothing else of the connection, which therefore gets a wider window; and
//! as all of it may be held, the windows of all connections have a bound.

use std::cell::Cell;
use std::rc::Rc;
use weir_policy::connections::has_share_left;

/// A window becomes wider by so many bytes.
pub(crate) const STEP_BYTES: u32 = 256 * 1024;

/// So often for all connections of a worker: 16 MiB.
const STEPS_MAX: usize = 64;

/// The steps that a worker's connections have taken.
#[derive(Default)]
pub(super) struct WindowPool(Rc<Cell<usize>>);

impl WindowPool {
    /// For a connection, which has taken none.
    pub(super) fn window(&self) -> WindowGrant {
        WindowGrant {
            taken: Rc::clone(&self.0),
            own: Cell::new(0),
        }
    }
}

/// What a connection has taken of the room. It is given back when this is dropped: what a client
/// may send already cannot be taken back before (RFC 9113 §6.9.2).
#[derive(Default)]
pub struct WindowGrant {
    taken: Rc<Cell<usize>>,
    own: Cell<usize>,
}

impl WindowGrant {
    /// Takes one more step of [`STEP_BYTES`]; whether there was room, of which a connection has as
    /// much as it leaves for others.
    pub(crate) fn widen(&self) -> bool {
        let (own, taken) = (self.own.get(), self.taken.get());
        if taken >= STEPS_MAX || !has_share_left(own, taken, STEPS_MAX) {
            return false;
        }
        self.own.set(own + 1);
        self.taken.set(taken + 1);
        true
    }
}

impl Drop for WindowGrant {
    fn drop(&mut self) {
        self.taken.set(self.taken.get() - self.own.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(window: &WindowGrant) -> usize {
        (0..=STEPS_MAX).take_while(|_| window.widen()).count()
    }

    #[test]
    fn connection_has_as_much_room_as_it_leaves_for_others() {
        let room = WindowPool::default();
        let (first, second) = (room.window(), room.window());
        assert_eq!(fill(&first), STEPS_MAX / 2);
        assert_eq!(fill(&second), STEPS_MAX / 4);
        assert_eq!(fill(&first), 0);
        drop(first);
        assert_eq!(fill(&second), STEPS_MAX / 4, "half of it all");
    }

    #[test]
    fn all_connections_have_what_the_worker_has() {
        let room = WindowPool::default();
        let windows: Vec<_> = (0..200).map(|_| room.window()).collect();
        let taken: usize = windows.iter().map(fill).sum();
        assert_eq!(taken, STEPS_MAX);
        drop(windows);
        assert_eq!(room.0.get(), 0);
    }
}
