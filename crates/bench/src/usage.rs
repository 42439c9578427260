//! What the proxy uses while it is measured, and whether the generator had the processor it needs:
//! from `/proc`.
//!
//! The Wisconsin Proxy Benchmark's tables came from `iostat` and `vmstat` beside the proxy. Here
//! the process tree of the proxy is summed each second, and the machine's processors and disks
//! beside it.
//!
//! Linux only, as the rest of this crate. Processes start and end while they are read; one that has
//! ended counts as nothing.

mod machine;
mod own_threads;
mod proc_file;
mod processes;
mod watcher;

pub use own_threads::{OwnThreads, ThreadLoad};
pub use proc_file::{Stat, TICKS_PER_S, named_numbers};
pub use processes::{process_tree, stat_of};
pub use watcher::{ProxyProcess, UsageWatcher};
