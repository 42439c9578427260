//! A module that is linked with the calls of a host: instances are made from it.

use super::env;
use super::instance::Instance;
use super::module::{LoadError, Module, UnimplementedImport};
use super::settings::InstanceSettings;
use super::state::State;
use super::{end::StartError, wasi};
use crate::host::Host;
use std::fmt;
use std::sync::Arc;
use wasmtime::{InstancePre, Linker, Val};

/// A module that is linked with the calls of a host. Its clones are the same.
pub struct Template<H: Host> {
    linked: InstancePre<State<H>>,
}

impl<H: Host> Clone for Template<H> {
    fn clone(&self) -> Self {
        Self {
            linked: self.linked.clone(),
        }
    }
}

impl<H: Host> fmt::Debug for Template<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template").finish_non_exhaustive()
    }
}

impl<H: Host> Template<H> {
    /// Links a module. Every import links.
    ///
    /// # Errors
    /// The module imports one name with several types.
    pub fn new(module: &Module) -> Result<Self, LoadError> {
        let linked = link(module);
        let linked = linked.map_err(|error| LoadError::Compile(format!("{error:#}")))?;
        Ok(Self { linked })
    }

    /// Starts an instance: initialises it, creates its plugin context and configures it. It takes
    /// less than a millisecond of a small filter, and what the module does itself.
    ///
    /// # Errors
    /// The instance does not fit into its limits, ended or refused its configuration.
    pub fn start(&self, host: H, settings: InstanceSettings) -> Result<Instance<H>, StartError> {
        Instance::start(&self.linked, host, settings)
    }
}

fn link<H: Host>(module: &Module) -> wasmtime::Result<InstancePre<State<H>>> {
    let mut linker = Linker::new(module.compiled.engine());
    env::link(&mut linker)?;
    wasi::link(&mut linker)?;
    for import in module.unimplemented_imports() {
        link_unimplemented(&mut linker, Arc::clone(import))?;
    }
    linker.instantiate_pre(&module.compiled)
}

/// Defines a function that counts its calls and answers, or traps if its type has no room for an
/// answer.
fn link_unimplemented<H: Host>(
    linker: &mut Linker<State<H>>,
    import: Arc<UnimplementedImport>,
) -> wasmtime::Result<()> {
    let (module, name) = (import.module().to_owned(), import.name().to_owned());
    let kind = import.kind.clone();
    linker.func_new(&module, &name, kind, move |_, _, results| {
        import.count();
        match (import.result, results) {
            (Some(answer), [result]) => {
                *result = Val::I32(answer.cast_signed());
                Ok(())
            }
            _ => Err(wasmtime::Error::msg(format!(
                "it called `{import}`, which is not implemented"
            ))),
        }
    })?;
    Ok(())
}
