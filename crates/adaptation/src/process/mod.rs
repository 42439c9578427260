//! Modules in processes of their own: the execution model `process`.
//!
//! [`OwnProcess`] stands around a kind of module. Where the operator wants it, it starts this
//! program as the process of the module, which serves that module alone ([`run`]) on a socket in a
//! `directory` that no other user can enter. It says on its standard output whether it has
//! started (`announcement`), and ends when its standard input does: so it ends with the proxy,
//! however that ends. A `supervisor` starts it again.

mod announcement;
mod child;
mod directory;
mod kind;
mod serve;
mod supervisor;

pub use child::Launch;
pub use kind::OwnProcess;
pub use serve::run;
