//! What a module waits for.

use alloc::boxed::Box;
use core::future::Future;
use core::pin::Pin;

/// What a module waits for: ready once, on the thread that it was asked for on. Dropping it gives
/// it up.
pub type Pending<T> = Pin<Box<dyn Future<Output = T>>>;
