//! The kinds of modules that this program has.

use super::process::LaunchThisProgram;
use std::sync::Arc;
use weir_adaptation::process::OwnProcess;
use weir_extend::ModuleKind;
use weir_proxy::ModuleKinds;

/// Those that a `[[module]]` table may name. Modules of each may run in processes of their own.
pub(crate) fn kinds() -> ModuleKinds {
    let mut kinds = weir_modules::kinds();
    kinds.push(Arc::new(weir_adaptation::Icap));
    kinds.push(wasm::kind());
    let around = |kind| Arc::new(OwnProcess::around(kind, Arc::new(LaunchThisProgram)));
    let kinds = kinds.into_iter();
    kinds
        .map(|kind| -> Arc<dyn ModuleKind> { around(kind) })
        .collect()
}

#[cfg(feature = "wasm")]
use weir_filters as wasm;

/// A program without the compiler of WebAssembly knows the kind, and says what to do.
#[cfg(not(feature = "wasm"))]
mod wasm {
    use std::sync::Arc;
    use weir_extend::{LoadError, Module, ModuleKind, Options};

    struct Absent;

    pub(super) fn kind() -> Arc<dyn ModuleKind> {
        Arc::new(Absent)
    }

    impl ModuleKind for Absent {
        fn name(&self) -> &'static str {
            "wasm"
        }

        fn load(&self, _: Options) -> Result<Arc<dyn Module>, LoadError> {
            Err(LoadError::new(
                "",
                "this program is built without filters in WebAssembly",
                "build it with its feature `wasm`: `make run FEATURES=wasm`, or `cargo build \
                 --release -p weir-cli --features wasm`",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_extend::Options;

    #[test]
    fn kind_wasm_is_there_and_says_what_it_lacks() {
        let kinds = kinds();
        let wasm = kinds.iter().find(|kind| kind.name() == "wasm");
        let error = wasm.expect("a kind").load(Options::default()).err();
        let error = error.expect("no file is given").to_string();
        let expected = match cfg!(feature = "wasm") {
            true => "file: there is no filter",
            false => "make run FEATURES=wasm",
        };
        assert!(error.contains(expected), "{error}");
    }
}
