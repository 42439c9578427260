//! A read of stored content from disk, for as long as a client can be made to wait.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;
use weir_disk::{Extent, ReadError};
use weir_store::Block;

/// How long a read of content may take. A busy rotating device answers within a second or two; one
/// that takes longer than this counts as failed.
pub(crate) const READ_WAIT: Duration = Duration::from_secs(10);

/// Why content could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentReadError {
    /// The disk tier says why.
    Disk(ReadError),
    /// It took longer than [`READ_WAIT`].
    TooSlow,
    /// It is not stored: our mistake.
    NotThere,
}

impl ContentReadError {
    /// The reason as a word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Disk(error) => error.as_str(),
            Self::TooSlow => "slow",
            Self::NotThere => "not-there",
        }
    }
}

type Reading = Pin<Box<dyn Future<Output = Result<Block, ContentReadError>> + Send>>;

/// A read under way.
pub(crate) struct DiskRead(Reading);

impl fmt::Debug for DiskRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DiskRead")
    }
}

impl DiskRead {
    /// Of the verified bytes from offset `at` on, to the end of their chunk.
    pub(crate) fn new(extent: &Arc<Extent>, at: u64) -> Self {
        Self::up_to(extent, at, at)
    }

    /// The same, and of what one read of a device brings with them up to the chunk before `to`.
    pub(crate) fn up_to(extent: &Arc<Extent>, at: u64, to: u64) -> Self {
        let extent = Arc::clone(extent);
        Self(Box::pin(async move {
            let read = timeout(READ_WAIT, extent.read_up_to(at, to)).await;
            match read.map_err(|_| ContentReadError::TooSlow)? {
                Ok(bytes) if bytes.is_empty() => Err(ContentReadError::NotThere),
                read => read.map_err(ContentReadError::Disk),
            }
        }))
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Block, ContentReadError>> {
        self.0.as_mut().poll(cx)
    }
}
