//! What runs a module, over wasmtime.

mod callbacks;
mod contexts;
mod end;
mod env;
mod guest;
mod instance;
mod kinds;
mod limiter;
mod memory;
mod module;
mod output;
mod settings;
mod state;
mod template;
mod wasi;

pub use end::{CallError, EndReason, StartError};
pub use instance::{Finish, Instance};
pub use module::{Engine, LoadError, Module, ModuleOptions, UnimplementedImport};
pub use settings::InstanceSettings;
pub use template::Template;
