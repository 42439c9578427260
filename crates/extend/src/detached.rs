//! A host without a proxy.

use crate::host::{FetchError, Host, LogLevel, OwnRequest, OwnResponse};
use crate::pending::Pending;
use alloc::boxed::Box;
use alloc::rc::Rc;

/// The host of a module that is tried without a proxy: no time passes, lines of the log are
/// dropped, no request of the module's own has a response, and there is no store.
#[derive(Clone, Copy, Debug, Default)]
pub struct Detached;

impl Detached {
    /// One to begin an exchange with.
    #[must_use]
    pub fn host() -> Rc<dyn Host> {
        Rc::new(Self)
    }
}

impl Host for Detached {
    fn worker(&self) -> usize {
        0
    }

    fn wall_ms(&self) -> u64 {
        0
    }

    fn log(&self, _: LogLevel, _: &str) {}

    fn fetch(&self, _: OwnRequest) -> Pending<Result<OwnResponse, FetchError>> {
        Box::pin(core::future::ready(Err(FetchError::Unreachable)))
    }
}
