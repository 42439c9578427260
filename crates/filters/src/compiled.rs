//! Compiled files: a reload with an unchanged file does not compile it again.

use crate::clock;
use std::collections::VecDeque;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use weir_wasm::{LoadError, MODULE_BYTES_MAX, Module, ModuleOptions};

/// Compiled files that are kept, the last used. A large one (a WAF with its rules) takes some 50
/// MiB.
const KEPT_MAX: usize = 4;

/// What a file contains, in 128 bits. The same in each process, as what modules have changed may be
/// stored under it. It need not withstand an author of filters: the operator chose the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digest([u64; 2]);

impl Digest {
    fn of(bytes: &[u8]) -> Self {
        Self([0, 1].map(|seed| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(seed);
            hasher.write(bytes);
            hasher.finish()
        }))
    }

    /// As text.
    pub(crate) fn to_text(self) -> String {
        format!("{:016x}{:016x}", self.0[0], self.0[1])
    }
}

/// A file that was compiled.
#[derive(Clone, Debug)]
pub(crate) struct Compiled {
    pub(crate) digest: Digest,
    pub(crate) module: Module,
    options: ModuleOptions,
}

static KEPT: Mutex<VecDeque<Compiled>> = Mutex::new(VecDeque::new());

/// Reads a file and compiles it, or finds what was compiled of the same content.
///
/// # Errors
///
/// What is wrong with the file.
pub(crate) fn load(path: &Path, options: ModuleOptions) -> Result<Compiled, String> {
    let bytes = read(path)?;
    let digest = Digest::of(&bytes);
    if let Some(kept) = kept(digest, options) {
        return Ok(kept);
    }
    let compile =
        || -> Result<Module, LoadError> { Module::compile(&clock::engine()?, &bytes, options) };
    let module = compile().map_err(|error| error.to_string())?;
    let compiled = Compiled {
        digest,
        module,
        options,
    };
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    all.truncate(KEPT_MAX - 1);
    all.push_front(compiled.clone());
    Ok(compiled)
}

fn kept(digest: Digest, options: ModuleOptions) -> Option<Compiled> {
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let is_it = |it: &Compiled| it.digest == digest && it.options == options;
    let place = all.iter().position(is_it)?;
    let compiled = all.remove(place)?;
    all.push_front(compiled.clone());
    Some(compiled)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let cannot = |error: std::io::Error| format!("cannot read `{}`: {error}", path.display());
    let file = File::open(path).map_err(cannot)?;
    let mut bytes = Vec::new();
    let limit = MODULE_BYTES_MAX as u64 + 1;
    file.take(limit).read_to_end(&mut bytes).map_err(cannot)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_differs_with_the_content_and_is_the_same_in_each_process() {
        let digest = Digest::of(b"a");
        assert_ne!(digest, Digest::of(b"b"));
        assert_eq!(digest, Digest::of(b"a"));
        assert_ne!(digest.0[0], digest.0[1]);
    }

    #[test]
    fn file_that_is_no_module_is_named_with_the_reason() {
        let error = load(Path::new("/no/such/file.wasm"), ModuleOptions::default());
        let error = error.expect_err("there is no file");
        assert!(
            error.starts_with("cannot read `/no/such/file.wasm`:"),
            "{error}"
        );
    }
}
