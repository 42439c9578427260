//! Files that people write in TOML: where something stands in one, and what was probably meant. For
//! messages.

mod advice;
mod alike;
mod key_path;
mod place;

pub use advice::{Advice, KNOWN_KEYS, advise};
pub use alike::nearest;
pub use key_path::{Step, find, find_nearest, steps};
pub use place::{LINE_CHARS_MAX, Place};
