//! The modules that come with Weir. They use `weir_extend` and no other crate of Weir, as a module
//! of another author would.

mod block;
mod compress;
mod feed;
mod headers;
mod inject;
mod options;
mod probe;
mod rewrite;
mod transcode;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use weir_extend::ModuleKind;

/// The kinds of modules that a configuration of `weir` may name.
#[must_use]
pub fn kinds() -> Vec<Arc<dyn ModuleKind>> {
    vec![
        Arc::new(block::Block),
        Arc::new(compress::Compress),
        Arc::new(feed::Feed),
        Arc::new(headers::Headers),
        Arc::new(inject::Inject),
        Arc::new(probe::Probe),
        Arc::new(rewrite::Rewrite),
        Arc::new(transcode::Transcode::new()),
    ]
}

/// What this program does if a module has started it as a process of its own: that process's work,
/// until the module ends it. `None` if it was started in another way.
///
/// `run_when_idle` has the process yield to all others. Where it fails, the process has a low
/// priority (`nice`), which it also has without.
#[must_use]
pub fn run_helper(run_when_idle: impl FnOnce() -> io::Result<()>) -> Option<ExitCode> {
    let argument = std::env::args_os().nth(1)?;
    (argument == transcode::HELPER).then(|| {
        let _refused = run_when_idle();
        match transcode::serve() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        }
    })
}
