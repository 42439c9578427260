//! What becomes of names in a trace that is made here.

use std::path::Path;
use weir_trace::{Anonymiser, TraceError};

/// Hashes names as two flags say: hide nothing, or use the key in a file. Without either the key is
/// forgotten.
///
/// # Errors
///
/// The key file cannot be used, or there is nothing random to be had.
pub(crate) fn anonymiser(
    is_readable: bool,
    key_file: Option<&Path>,
) -> Result<Anonymiser, TraceError> {
    match key_file {
        _ if is_readable => Ok(Anonymiser::none()),
        Some(path) => Anonymiser::from_key_file(path),
        None => Anonymiser::random(),
    }
}

/// What `anonymiser` does, for people.
pub(crate) fn described(anonymiser: &Anonymiser, is_key_kept: bool) -> String {
    match anonymiser.key_id() {
        None => "readable".to_owned(),
        Some(id) if is_key_kept => format!("hashed with key {id}"),
        Some(_) => "hashed with a key that is forgotten".to_owned(),
    }
}
