//! The bytes of one file: what the process sees, and what is on the device.

use super::fault::Random;

/// What a device writes whole or not at all, in bytes.
pub const SECTOR_BYTES: usize = 512;

#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Truncate(usize),
}

#[derive(Debug, Default)]
pub(super) struct Content {
    current: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

/// What a power failure does to what was not synced.
#[derive(Clone, Copy, Debug)]
pub(super) enum Loss {
    All,
    None,
    /// Each write stays or goes.
    Writes,
    /// Each sector of each write stays or goes.
    Sectors,
}

impl Content {
    pub(super) fn current(&self) -> &[u8] {
        &self.current
    }

    pub(super) fn read(&self, bytes: &mut [u8], offset: u64) -> usize {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.current.get(offset..).unwrap_or_default();
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        count
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        apply(&mut self.current, offset, bytes);
        let bytes = bytes.to_vec();
        self.unsynced.push(Change::Write { offset, bytes });
    }

    pub(super) fn truncate(&mut self, len: u64) {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.current.truncate(len);
        self.unsynced.push(Change::Truncate(len));
    }

    pub(super) fn sync(&mut self) {
        for change in std::mem::take(&mut self.unsynced) {
            match change {
                Change::Write { offset, bytes } => apply(&mut self.durable, offset, &bytes),
                Change::Truncate(len) => self.durable.truncate(len),
            }
        }
    }

    pub(super) fn lose_unsynced(&mut self) {
        self.unsynced.clear();
    }

    pub(super) fn crash(&mut self, loss: Loss, random: &mut Random) {
        for change in std::mem::take(&mut self.unsynced) {
            let mut stays = || match loss {
                Loss::All => false,
                Loss::None => true,
                Loss::Writes | Loss::Sectors => random.below(2) == 0,
            };
            match change {
                Change::Write { offset, bytes } if matches!(loss, Loss::Sectors) => {
                    let mut at = offset;
                    while at < offset + bytes.len() {
                        let end =
                            ((at / SECTOR_BYTES + 1) * SECTOR_BYTES).min(offset + bytes.len());
                        if stays() {
                            apply(&mut self.durable, at, &bytes[at - offset..end - offset]);
                        }
                        at = end;
                    }
                }
                Change::Write { offset, bytes } if stays() => {
                    apply(&mut self.durable, offset, &bytes);
                }
                Change::Truncate(len) if stays() => self.durable.truncate(len),
                Change::Write { .. } | Change::Truncate(_) => {}
            }
        }
        self.current.clone_from(&self.durable);
    }

    pub(super) fn damage(&mut self, change: impl FnOnce(&mut Vec<u8>)) {
        change(&mut self.current);
        self.durable.clone_from(&self.current);
        self.unsynced.clear();
    }
}

fn apply(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[offset..end].copy_from_slice(bytes);
}
