//! Waits between tries.

use std::time::Duration;
use tokio::time::sleep;

/// The first wait.
const WAIT_MIN: Duration = Duration::from_millis(250);

/// The longest wait: an etcd that is back is noticed within that.
const WAIT_MAX: Duration = Duration::from_secs(4);

/// Waits that double.
#[derive(Debug)]
pub(crate) struct Retry(Duration);

impl Default for Retry {
    fn default() -> Self {
        Self(WAIT_MIN)
    }
}

impl Retry {
    /// Waits before the next try.
    pub(crate) async fn wait(&mut self) {
        sleep(self.0).await;
        self.0 = (self.0 * 2).min(WAIT_MAX);
    }
}
