//! What chores and the test bed share: failures and their exit codes, the repository's directory,
//! files, programs that are run, built from it or installed, filters in WebAssembly; and, for tests
//! too, ports and networks.

#![forbid(unsafe_code)]

pub mod command;
pub mod failure;
pub mod files;
pub mod filters;
pub mod namespace;
pub mod need;
pub mod ports;
pub mod program;
pub mod root;
pub mod workplace;

pub use ports::closed_port;
