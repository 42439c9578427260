//! Compiled modules: what is checked before one can be started.

use super::wasi::unimplemented_errno;
use crate::abi::{AbiVersion, Status};
use crate::calls::{ENV, Support, WASI, callbacks, host_call};
use crate::limits::{IMPORTS_MAX, MODULE_BYTES_MAX, STACK_BYTES_MAX};
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wasmtime::{ExternType, FuncType, ValType};

/// Bytes that a message shows of a file that is no module.
const START_SHOWN_BYTES: usize = 8;

/// Calls that are not implemented of which a message has the names: all of the ABI, and few others.
const NAMES_SHOWN_MAX: usize = 48;

/// The compiler, and the clock of all instances that are made by it. Its clones are the same
/// engine.
#[derive(Clone)]
pub struct Engine(pub(crate) wasmtime::Engine);

impl Engine {
    /// An engine for the machine it runs on.
    ///
    /// # Errors
    /// The machine is not supported.
    pub fn new() -> Result<Self, LoadError> {
        let mut config = wasmtime::Config::new();
        config
            .epoch_interruption(true)
            .max_wasm_stack(STACK_BYTES_MAX)
            .wasm_memory64(false)
            .wasm_multi_memory(false);
        let engine = wasmtime::Engine::new(&config);
        engine
            .map(Self)
            .map_err(|it| LoadError::Compile(chain(&it)))
    }

    /// One tick of the clock that deadlines are counted in. Call it at a constant rate, from any
    /// thread, while instances are called. It costs one atomic addition.
    pub fn tick(&self) {
        self.0.increment_epoch();
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

/// How a module is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModuleOptions {
    /// Refuse a module that imports a call that is not implemented, used or not.
    pub strict: bool,
}

/// A compiled module. Its clones are the same module.
#[derive(Clone)]
pub struct Module {
    pub(crate) compiled: wasmtime::Module,
    abi_version: AbiVersion,
    unimplemented: Arc<[Arc<UnimplementedImport>]>,
}

/// An import that the host does not implement, and how often it was called.
#[derive(Debug)]
pub struct UnimplementedImport {
    module: String,
    name: String,
    calls: AtomicU64,
    pub(crate) kind: FuncType,
    /// The result of a call; without one it traps.
    pub(crate) result: Option<u32>,
}

impl UnimplementedImport {
    /// The module that it is imported from.
    #[must_use]
    pub fn module(&self) -> &str {
        &self.module
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How often the instances of the module called it.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }
}

impl fmt::Display for UnimplementedImport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.module, self.name)
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module")
            .field("abi_version", &self.abi_version)
            .field("unimplemented", &self.unimplemented)
            .finish_non_exhaustive()
    }
}

impl Module {
    /// Compiles a module and checks what it exports and imports. This takes from milliseconds to
    /// many seconds of the calling thread.
    ///
    /// # Errors
    /// The bytes are not a module, or not one that this host can run.
    pub fn compile(
        engine: &Engine,
        bytes: &[u8],
        options: ModuleOptions,
    ) -> Result<Self, LoadError> {
        if bytes.len() > MODULE_BYTES_MAX {
            return Err(LoadError::TooLarge { bytes: bytes.len() });
        }
        check_magic(bytes)?;
        let compiled = wasmtime::Module::from_binary(&engine.0, bytes);
        let compiled = compiled.map_err(|error| LoadError::Compile(chain(&error)))?;
        let abi_version = abi_version(&compiled)?;
        check_exports(&compiled)?;
        let unimplemented = check_imports(&compiled)?;
        if options.strict && !unimplemented.is_empty() {
            let names = unimplemented.iter().map(ToString::to_string);
            return Err(LoadError::Unimplemented(names.collect()));
        }
        Ok(Self {
            compiled,
            abi_version,
            unimplemented: unimplemented.into_iter().map(Arc::new).collect(),
        })
    }

    /// Whether the module exports a function of this name, such as `proxy_on_request_body`.
    #[must_use]
    pub fn has_callback(&self, name: &str) -> bool {
        matches!(self.compiled.get_export(name), Some(ExternType::Func(_)))
    }

    /// The version of the ABI that the module is written for.
    #[must_use]
    pub fn abi_version(&self) -> AbiVersion {
        self.abi_version
    }

    /// The imports that the host does not implement. SDKs import all calls, used or not; `calls`
    /// tells which are used. A call answers `Unimplemented` (12) or an error number of WASI, or
    /// traps if its type has no room for an answer.
    #[must_use]
    pub fn unimplemented_imports(&self) -> &[Arc<UnimplementedImport>] {
        &self.unimplemented
    }
}

/// What a module begins with: the magic number and the version of the binary format.
const MAGIC: [u8; 8] = *b"\0asm\x01\0\0\0";

/// What a component begins with: the same magic number, and another version and layer.
const COMPONENT_MAGIC: [u8; 8] = *b"\0asm\x0d\0\x01\0";

/// The compiler would say of other files which byte it does not understand, and nothing of what
/// they are.
fn check_magic(bytes: &[u8]) -> Result<(), LoadError> {
    match bytes.get(..MAGIC.len()) {
        Some(start) if start == MAGIC => Ok(()),
        Some(start) if start == COMPONENT_MAGIC => Err(LoadError::Component),
        _ => {
            let shown = &bytes[..bytes.len().min(START_SHOWN_BYTES)];
            Err(LoadError::NotWasm {
                start: shown.escape_ascii().to_string(),
            })
        }
    }
}

fn chain(error: &wasmtime::Error) -> String {
    format!("{error:#}")
}

fn abi_version(compiled: &wasmtime::Module) -> Result<AbiVersion, LoadError> {
    let names = compiled.exports().map(|export| export.name().to_owned());
    let markers: Vec<String> = names
        .filter(|name| name.starts_with(AbiVersion::MARKER_PREFIX))
        .collect();
    let known = markers.iter().filter_map(|it| AbiVersion::from_marker(it));
    known.max().ok_or(LoadError::AbiVersion { markers })
}

fn check_exports(compiled: &wasmtime::Module) -> Result<(), LoadError> {
    match compiled.get_export("memory") {
        Some(ExternType::Memory(memory)) if !memory.is_shared() => {}
        _ => return Err(LoadError::NoMemory),
    }
    for call in callbacks() {
        let Some(found) = compiled.get_export(call.name) else {
            continue;
        };
        let fits = matches!(&found, ExternType::Func(kind)
            if has_types(kind, call.parameters, call.result));
        if !fits {
            return Err(LoadError::Type {
                what: format!("export `{}`", call.name),
                expected: describe(call.parameters, call.result),
                found: describe_found(&found),
            });
        }
    }
    Ok(())
}

fn check_imports(compiled: &wasmtime::Module) -> Result<Vec<UnimplementedImport>, LoadError> {
    let mut unimplemented: Vec<UnimplementedImport> = Vec::new();
    for (number, import) in compiled.imports().enumerate() {
        if number == IMPORTS_MAX {
            return Err(LoadError::TooManyImports);
        }
        let (module, name) = (import.module(), import.name());
        let ExternType::Func(kind) = import.ty() else {
            return Err(LoadError::Import(format!("{module}.{name}")));
        };
        match host_call(module, name) {
            Some(call) if call.support == Support::Full => {
                if !has_types(&kind, call.parameters, call.result) {
                    return Err(LoadError::Type {
                        what: format!("import `{module}.{name}`"),
                        expected: describe(call.parameters, call.result),
                        found: kind.to_string(),
                    });
                }
            }
            _ => {
                let is_known = |it: &UnimplementedImport| it.module == module && it.name == name;
                if !unimplemented.iter().any(is_known) {
                    unimplemented.push(unimplemented_import(module, name, kind));
                }
            }
        }
    }
    Ok(unimplemented)
}

fn unimplemented_import(module: &str, name: &str, kind: FuncType) -> UnimplementedImport {
    let mut results = kind.results();
    let answers = matches!((results.next(), results.next()), (Some(ValType::I32), None));
    drop(results);
    let result = match module {
        ENV if answers => Some(Status::Unimplemented.number()),
        WASI if answers => Some(unimplemented_errno(name)),
        _ => None,
    };
    UnimplementedImport {
        module: module.to_owned(),
        name: name.to_owned(),
        calls: AtomicU64::new(0),
        kind,
        result,
    }
}

/// Whether a type is the one that the letters of the table give.
fn has_types(kind: &FuncType, parameters: &str, result: &str) -> bool {
    let letters = |types: &mut dyn Iterator<Item = ValType>| -> String {
        let letter = |kind: ValType| match kind {
            ValType::I32 => 'i',
            ValType::I64 => 'I',
            _ => '?',
        };
        types.map(letter).collect()
    };
    letters(&mut kind.params()) == parameters && letters(&mut kind.results()) == result
}

/// A type of the table, in the form in which wasmtime writes types.
fn describe(parameters: &str, result: &str) -> String {
    let words = |letters: &str| -> String {
        let word = |letter| match letter {
            'I' => " i64",
            _ => " i32",
        };
        letters.chars().map(word).collect()
    };
    let mut text = String::from("(type (func");
    for (keyword, letters) in [("param", parameters), ("result", result)] {
        if !letters.is_empty() {
            text += &format!(" ({keyword}{})", words(letters));
        }
    }
    text + "))"
}

fn describe_found(found: &ExternType) -> String {
    match found {
        ExternType::Func(kind) => kind.to_string(),
        ExternType::Global(_) => "a global".to_owned(),
        ExternType::Table(_) => "a table".to_owned(),
        ExternType::Memory(_) => "a memory".to_owned(),
        ExternType::Tag(_) => "a tag".to_owned(),
    }
}

/// Why a module cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The file has more than [`MODULE_BYTES_MAX`].
    TooLarge {
        /// Its size, bytes.
        bytes: usize,
    },
    /// It does not begin as a module of WebAssembly does.
    NotWasm {
        /// The first bytes, in visible ASCII; empty if there are none.
        start: String,
    },
    /// It is a component, which has another interface than a module.
    Component,
    /// It is not a valid module; the text says why.
    Compile(String),
    /// It is written for no version of the ABI that the host has.
    AbiVersion {
        /// The marker exports that it has.
        markers: Vec<String>,
    },
    /// It exports no memory.
    NoMemory,
    /// A function has another type than the ABI gives it.
    Type {
        /// Which export or import.
        what: String,
        /// The type in the ABI.
        expected: String,
        /// The type in the module.
        found: String,
    },
    /// It imports something that is not a function.
    Import(String),
    /// It has more than [`IMPORTS_MAX`] imports.
    TooManyImports,
    /// It imports calls that are not implemented, and `strict` is set.
    Unimplemented(Vec<String>),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes } => {
                write!(
                    f,
                    "the module has {bytes} bytes, at most {MODULE_BYTES_MAX}"
                )
            }
            Self::NotWasm { start } if start.is_empty() => {
                f.write_str("it is not a WebAssembly module: it is empty")
            }
            Self::NotWasm { start } => write!(
                f,
                "it is not a WebAssembly module: it begins with \"{start}\", and not with \"\\0asm\""
            ),
            Self::Component => f.write_str("it is a WebAssembly component, and not a module"),
            Self::Compile(why) => write!(f, "cannot compile the module: {why}"),
            Self::AbiVersion { markers } if markers.is_empty() => f.write_str(
                "the module exports no `proxy_abi_version_…`: it is not a proxy-wasm filter, or \
                 was not linked as one",
            ),
            Self::AbiVersion { markers } => write!(
                f,
                "the module is written for another ABI (`{}`); this host has 0.2.0 and 0.2.1",
                markers.join("`, `")
            ),
            Self::NoMemory => f.write_str("the module exports no memory of the name `memory`"),
            Self::Type {
                what,
                expected,
                found,
            } => write!(f, "{what} has the type {found}, expected {expected}"),
            Self::Import(name) => write!(f, "import `{name}` is not a function"),
            Self::TooManyImports => write!(f, "the module has more than {IMPORTS_MAX} imports"),
            Self::Unimplemented(names) => {
                let shown = &names[..names.len().min(NAMES_SHOWN_MAX)];
                let shown = shown.join(", ");
                write!(
                    f,
                    "the module imports calls that are not implemented: {shown}"
                )?;
                match names.len().saturating_sub(NAMES_SHOWN_MAX) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
        }
    }
}

impl Error for LoadError {}
