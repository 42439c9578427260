//! Keys and values that the instances of a module share, with compare-and-swap.
//!
//! The specification's section *Shared Key-Value Store*. Our reading where the text is silent: a
//! compare-and-swap value that is given for a key that does not exist does not match.

use crate::abi::Status;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What shared data may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedDataLimits {
    /// Keys. Default 1024.
    pub keys_max: usize,
    /// Keys and values together, bytes. Default 1 MiB.
    pub bytes_max: usize,
}

impl Default for SharedDataLimits {
    fn default() -> Self {
        Self {
            keys_max: 1024,
            bytes_max: 1 << 20,
        }
    }
}

/// A handle to shared data: its clones are the same data.
#[derive(Clone, Debug, Default)]
pub struct SharedData {
    limits: SharedDataLimits,
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    entries: BTreeMap<Vec<u8>, Entry>,
    bytes: usize,
    last_cas: u32,
}

#[derive(Clone, Debug)]
struct Entry {
    value: Arc<[u8]>,
    cas: u32,
}

impl SharedData {
    /// Empty data with these limits.
    #[must_use]
    pub fn new(limits: SharedDataLimits) -> Self {
        Self {
            limits,
            table: Arc::default(),
        }
    }

    /// The value of a key and its compare-and-swap value, which is never zero.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<(Arc<[u8]>, u32)> {
        let entry = self.lock().entries.get(key).cloned()?;
        Some((entry.value, entry.cas))
    }

    /// Sets a key, if `cas` is zero or the key's current compare-and-swap value.
    ///
    /// # Errors
    /// `CasMismatch`; `InternalFailure` at a limit. The data is unchanged then.
    pub fn set(&self, key: &[u8], value: &[u8], cas: u32) -> Result<(), Status> {
        let mut table = self.lock();
        let current = table.entries.get(key);
        if cas != 0 && current.map(|entry| entry.cas) != Some(cas) {
            return Err(Status::CasMismatch);
        }
        let freed = current.map_or(0, |entry| key.len() + entry.value.len());
        let keys = table.entries.len() + usize::from(current.is_none());
        let bytes = table.bytes - freed + key.len() + value.len();
        if keys > self.limits.keys_max || bytes > self.limits.bytes_max {
            return Err(Status::InternalFailure);
        }
        table.bytes = bytes;
        table.last_cas = table.last_cas.checked_add(1).unwrap_or(1);
        let entry = Entry {
            value: value.into(),
            cas: table.last_cas,
        };
        table.entries.insert(key.to_vec(), entry);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // no panic leaves the table half changed
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_set_only_under_its_current_compare_and_swap_value() {
        let data = SharedData::default();
        assert_eq!(data.set(b"k", b"v", 7), Err(Status::CasMismatch));
        assert_eq!(data.get(b"k"), None);
        data.set(b"k", b"1", 0).unwrap();
        let (_, first) = data.clone().get(b"k").unwrap();
        data.set(b"k", b"2", first).unwrap();
        assert_eq!(data.set(b"k", b"3", first), Err(Status::CasMismatch));
        assert_eq!(&*data.get(b"k").unwrap().0, b"2");
    }

    #[test]
    fn keys_and_bytes_have_limits() {
        let data = SharedData::new(SharedDataLimits {
            keys_max: 2,
            bytes_max: 10,
        });
        data.set(b"a", b"1234", 0).unwrap();
        data.set(b"b", b"1234", 0).unwrap();
        assert_eq!(data.set(b"b", b"12345", 0), Err(Status::InternalFailure));
        data.set(b"b", b"", 0).unwrap();
        assert_eq!(data.set(b"c", b"", 0), Err(Status::InternalFailure));
        data.set(b"a", b"12345678", 0).unwrap();
        assert_eq!(&*data.get(b"b").unwrap().0, b"");
    }
}
