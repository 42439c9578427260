//! What chores and the test bed share: failures and their exit codes, the repository's directory,
//! programs that are built from it, and programs that must be installed.

#![forbid(unsafe_code)]

pub mod failure;
pub mod need;
pub mod program;
pub mod root;
