//! Loading the content of a stored response from disk into memory before it is sent, if it is
//! requested often.

use crate::send::disk_read::{ContentReadError, READ_WAIT};
use crate::worker::core::Worker;
use std::sync::Arc;
use tokio::time::timeout;
use weir_measure::{ContentLoadEnd, Metric};
use weir_policy::Digest;
use weir_store::{NotLoaded, StoredResponse};

/// The response with its content in memory; `None` if it is to be sent from disk.
///
/// # Errors
///
/// It cannot be read, so that it cannot be sent either.
pub(crate) async fn run(
    worker: &Worker,
    key: Digest,
    response: &Arc<StoredResponse>,
) -> Result<Option<Arc<StoredResponse>>, ContentReadError> {
    let ended = |end| worker.counters().inc(Metric::ContentLoads(end));
    let load = match worker.shared.store.load(key, response) {
        Ok(load) => load,
        Err(NotLoaded::NotWanted) => return Ok(None),
        Err(NotLoaded::NoRoom) => {
            ended(ContentLoadEnd::NoRoom);
            return Ok(None);
        }
        Err(NotLoaded::Loading) => {
            ended(ContentLoadEnd::Loading);
            return Ok(None);
        }
    };
    let loaded = timeout(READ_WAIT, load.run()).await;
    let loaded = loaded.map_err(|_| ContentReadError::TooSlow);
    match loaded.and_then(|loaded| loaded.map_err(ContentReadError::Disk)) {
        Ok(loaded) => {
            ended(match loaded.is_stored {
                true => ContentLoadEnd::Stored,
                false => ContentLoadEnd::Outdated,
            });
            Ok(Some(loaded.response))
        }
        Err(error) => {
            ended(ContentLoadEnd::Unreadable);
            Err(error)
        }
    }
}
