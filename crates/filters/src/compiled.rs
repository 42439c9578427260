//! Compiled files: a reload with an unchanged file does not compile it again.

use crate::clock;
use std::collections::VecDeque;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use weir_extend::LoadError;
use weir_wasm::{LoadError as WasmError, MODULE_BYTES_MAX, Module, ModuleOptions};

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
/// What is wrong with the file, or with the option `strict` for it.
pub(crate) fn load(path: &Path, options: ModuleOptions) -> Result<Compiled, LoadError> {
    let bytes = read(path).map_err(|what| {
        let hint = "give the path of a `.wasm` file that the proxy may read";
        LoadError::new("file", what, hint)
    })?;
    let digest = Digest::of(&bytes);
    if let Some(kept) = kept(digest, options) {
        return Ok(kept);
    }
    let compile =
        || -> Result<Module, WasmError> { Module::compile(&clock::engine()?, &bytes, options) };
    let module = compile().map_err(|error| refusal(path, &error))?;
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

/// Why a file is refused, with the option that has to be changed and what to do.
pub(crate) fn refusal(path: &Path, error: &WasmError) -> LoadError {
    let what = format!("cannot use `{}`: {error}", path.display());
    let (option, hint) = match error {
        WasmError::Unimplemented(_) => (
            "strict",
            "leave out `strict`: SDKs import all calls, used or not, and `weir modules` names those \
             that do nothing here and counts their use; or build the filter without these imports",
        ),
        WasmError::NotWasm { .. } => (
            "file",
            "give the `.wasm` file that the compiler of the filter has written, not its source, an \
             archive or an image of it",
        ),
        WasmError::Component => (
            "file",
            "build the filter for the target `wasm32-wasip1` with an SDK of proxy-wasm, not as a \
             component",
        ),
        _ => ("file", "use a proxy-wasm filter for ABI 0.2.0 or 0.2.1"),
    };
    LoadError::new(option, what, hint)
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
            error.what.starts_with("cannot read `/no/such/file.wasm`:"),
            "{error}"
        );
    }

    #[test]
    fn file_of_another_form_is_refused_with_what_it_begins_with() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("filter.wasm");
        for (content, expected) in [
            (
                &b"package main\nimport"[..],
                "it begins with \"package \", and not with",
            ),
            (b"\x1f\x8b\x08\0", "it begins with \"\\x1f\\x8b\\x08\\x00\""),
            (b"", "it is empty"),
            (b"\0asm\x0d\0\x01\0", "it is a WebAssembly component"),
        ] {
            std::fs::write(&path, content).expect("a file");
            let error = load(&path, ModuleOptions::default()).expect_err("it is no module");
            assert_eq!(error.option, "file");
            assert!(error.what.contains(expected), "{error}");
            assert!(error.what.contains("filter.wasm"), "{error}");
            assert!(!error.hint.is_empty());
        }
    }

    #[test]
    fn strict_option_is_blamed_for_calls_that_are_not_implemented() {
        let names: Vec<String> = (0..49).map(|at| format!("env.f{at}")).collect();
        let error = refusal(Path::new("a.wasm"), &WasmError::Unimplemented(names));
        assert_eq!(error.option, "strict");
        assert!(error.what.contains(": env.f0, env.f1, "), "{error}");
        assert!(error.what.ends_with("env.f47 and 1 more"), "{error}");
        assert!(error.hint.starts_with("leave out `strict`"), "{error}");
    }
}
