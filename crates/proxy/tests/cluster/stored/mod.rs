//! What nodes have stored: copies of what others keep, and what is on disk.

mod copies;
mod on_disk;
