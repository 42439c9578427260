//! Where content comes from while a module decides on a head by it.

use std::task::{Context, Poll};

/// The content behind a head that modules are called for.
pub(crate) trait ContentSource {
    /// Receives content once and appends it to `into`: at most a scratch buffer of it. Ready with
    /// whether it is the last; not called again then.
    ///
    /// # Errors
    ///
    /// No more comes, and the message is not whole. The source knows why.
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
    ) -> Poll<Result<bool, SourceEnded>>;

    /// So many bytes of what was received are used.
    fn consumed(&mut self, bytes: usize);
}

/// The content ended before it was whole, or no request waits for it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceEnded;

/// Content that was received while modules decided on its head, and that they did not take yet.
#[derive(Debug, Default)]
pub(crate) struct FedContent {
    pub(crate) bytes: Vec<u8>,
    /// Nothing follows it.
    pub(crate) is_last: bool,
}
