//! The modules that come with Weir. They use `weir_extend` and no other crate of Weir, as a module
//! of another author would.

mod block;
mod compress;
mod headers;
mod inject;
mod options;
mod probe;
mod rewrite;

use std::sync::Arc;
use weir_extend::ModuleKind;

/// The kinds of modules that a configuration of `weir` may name.
#[must_use]
pub fn kinds() -> Vec<Arc<dyn ModuleKind>> {
    vec![
        Arc::new(block::Block),
        Arc::new(compress::Compress),
        Arc::new(headers::Headers),
        Arc::new(inject::Inject),
        Arc::new(probe::Probe),
        Arc::new(rewrite::Rewrite),
    ]
}
