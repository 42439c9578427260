//! Values that are made in their box.
//!
//! `Box::new` gets a value that is made already: on the stack, from where all of it is copied, room
//! that is not in use yet included. A future has hundreds of bytes, of which a tenth is in use at
//! first. Where memory comes before the value, the compiler makes it there.

use std::pin::Pin;

/// The box of what `make` returns.
#[inline(always)]
pub(crate) fn boxed<T>(make: impl FnOnce() -> T) -> Box<T> {
    let room = Box::new_uninit();
    Box::write(room, make())
}

/// The same of a future.
#[inline(always)]
pub(crate) fn pinned<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::into_pin(boxed(make))
}
