//! Reading stored content in parts, from memory or from disk.

use super::calls::CallContext;
use super::lookup::{find, info, lacks_rule};
use super::target;
use crate::host::own_task;
use crate::send::disk_read::DiskRead;
use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use weir_extend::{
    Pending, STORED_PIECE_BYTES_MAX, StoredError, StoredInfo, StoredReader, StoredTarget,
};
use weir_policy::Digest;
use weir_store::{PieceRef, StoredResponse};

/// A whole stored response that is being read. It is held until it was read, whatever the store
/// does with it.
pub(super) struct Reading {
    context: CallContext,
    key: Digest,
    response: Arc<StoredResponse>,
    length: u64,
    at: Cell<u64>,
    failed: Cell<Option<StoredError>>,
}

/// What becomes of a response that answers no request any more, since a rule is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LackingRule {
    /// It is not read: to a module it is not there.
    Refused,
    /// It is read.
    Read,
}

/// Begins to read what is stored for `target`, and says what that is.
pub(super) async fn begin(
    context: CallContext,
    target: &StoredTarget,
    lacking: LackingRule,
) -> Result<(Reading, StoredInfo), StoredError> {
    let mut exchange = target::selecting_variant(&context, target).await?;
    let found = find(&mut exchange).await?;
    let (response, _) = found.ok_or(StoredError::NotStored)?;
    if lacking == LackingRule::Refused && lacks_rule(&exchange, &response) {
        return Err(match context.is_operator {
            true => StoredError::LacksRule,
            false => StoredError::NotStored,
        });
    }
    let length = response.complete_length().filter(|_| !response.is_part());
    let length = length.ok_or(StoredError::NotStored)?;
    let info = info(&response, context.worker.now());
    let reading = Reading {
        context,
        key: exchange.key,
        response,
        length,
        at: Cell::new(0),
        failed: Cell::new(None),
    };
    Ok((reading, info))
}

impl Reading {
    /// Bytes of the content.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Room for so many bytes that are read at once; whether there is.
    pub(super) fn hold(&mut self, bytes: usize) -> bool {
        self.context.place.hold(bytes)
    }

    /// The next part; empty at the end.
    pub(super) async fn part(&self) -> Result<Vec<u8>, StoredError> {
        if let Some(error) = self.failed.get() {
            return Err(error);
        }
        let at = self.at.get();
        if at >= self.length {
            return Ok(Vec::new());
        }
        let left = usize::try_from(self.length - at).unwrap_or(usize::MAX);
        let most = left.min(STORED_PIECE_BYTES_MAX);
        let body = &self.response.body;
        let read: Result<Vec<u8>, ()> = match body.piece_ref_at(at) {
            Some(PieceRef::Memory(_)) => {
                let bytes = body.at(at);
                Ok(bytes[..bytes.len().min(most)].to_vec())
            }
            Some(PieceRef::Disk(extent)) => {
                let mut reading = DiskRead::new(extent, at);
                let block = poll_fn(|cx| reading.poll(cx)).await;
                let part = |bytes: &[u8]| bytes[..bytes.len().min(most)].to_vec();
                block.map(|block| part(&block)).map_err(|_| ())
            }
            None => Err(()),
        };
        match read {
            Ok(part) if !part.is_empty() => {
                self.at.set(at + part.len() as u64);
                Ok(part)
            }
            _ => {
                // as a hit that cannot be read
                let store = &self.context.worker.shared.store;
                store.drop_one(self.key, &self.response);
                self.failed.set(Some(StoredError::Corrupt));
                Err(StoredError::Corrupt)
            }
        }
    }
}

/// Parts of what is read, one at a time.
pub(super) struct Parts {
    reading: Rc<Reading>,
    info: StoredInfo,
}

impl Parts {
    /// Of what was begun.
    pub(super) fn new((reading, info): (Reading, StoredInfo)) -> Self {
        Self {
            reading: Rc::new(reading),
            info,
        }
    }
}

impl StoredReader for Parts {
    fn info(&self) -> &StoredInfo {
        &self.info
    }

    fn part(&mut self) -> Pending<Result<Vec<u8>, StoredError>> {
        let reading = Rc::clone(&self.reading);
        own_task::run(async move { reading.part().await }, || {
            Err(StoredError::Unavailable)
        })
    }
}
