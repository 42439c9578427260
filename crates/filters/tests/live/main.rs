//! Filters in a live proxy: written in text form, in Rust and in Go.

mod bed;
mod functions;
mod go;
mod hostile;
mod http;
mod load;
mod rust;
mod text;
