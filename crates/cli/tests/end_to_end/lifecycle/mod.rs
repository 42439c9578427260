//! A process from its start by its reloads to its end.

mod drain;
mod module_process;
mod reload;
mod service_manager;
mod start;
