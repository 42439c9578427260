//! Where a feed comes from.

use super::entries::{FEED_BYTES_MAX, FeedError};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use weir_extend::{Host, OwnRequest};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Url(String),
    File(PathBuf),
}

impl Source {
    /// The feed as it is now.
    pub(super) async fn read(&self, host: &Rc<dyn Host>) -> Result<Vec<u8>, FeedError> {
        match self {
            Self::Url(url) => {
                let mut request = OwnRequest::get(url);
                request.content_bytes_max = FEED_BYTES_MAX;
                let response = host.fetch(request).await;
                let response = response.map_err(|error| FeedError(error.to_string()))?;
                match response.status {
                    200 => Ok(response.content),
                    status => Err(FeedError(format!("its status is {status}"))),
                }
            }
            Self::File(path) => {
                let read = read_file(path.clone()).await;
                read.map_err(|error| FeedError(format!("cannot read it: {error}")))
            }
        }
    }
}

/// What a thread has read, and the task that waits for it.
#[derive(Default)]
struct Slot {
    read: Option<io::Result<Vec<u8>>>,
    waker: Option<Waker>,
}

/// Reads a file on a thread of its own: a file system may block.
async fn read_file(path: PathBuf) -> io::Result<Vec<u8>> {
    let slot = Arc::new(Mutex::new(Slot::default()));
    let theirs = Arc::clone(&slot);
    std::thread::Builder::new()
        .name("feed".to_owned())
        .spawn(move || {
            let mut content = Vec::new();
            let read = File::open(path).and_then(|file| {
                let most = FEED_BYTES_MAX as u64 + 1;
                file.take(most).read_to_end(&mut content)
            });
            let mut slot = theirs.lock().unwrap_or_else(PoisonError::into_inner);
            slot.read = Some(read.map(|_| content));
            if let Some(waker) = slot.waker.take() {
                waker.wake();
            }
        })?;
    std::future::poll_fn(|cx| {
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        match slot.read.take() {
            Some(read) => Poll::Ready(read),
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    })
    .await
}
