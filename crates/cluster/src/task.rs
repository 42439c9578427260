//! The thread that follows a source.

use crate::file;
use crate::output::{MemberSink, Output, SourceReport, Status};
use crate::own::OwnNode;
use crate::source::Source;
use std::io;
use std::sync::Arc;
use std::thread;
use tokio::sync::watch;
use weir_net::resolver::Resolver;

/// A thread that follows a source. It ends soon after this is dropped.
#[derive(Debug)]
pub struct MembersTask {
    status: Arc<Status>,
    /// Closed when this is dropped.
    _running: watch::Sender<()>,
}

impl MembersTask {
    /// Follows `source` for this node.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub fn start(
        source: Source,
        own: OwnNode,
        resolver: Resolver,
        sink: Arc<dyn MemberSink>,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let status = Arc::new(Status::default());
        let (running, mut stopped) = watch::channel(());
        let mut output = Output::new(sink, &status, own, resolver);
        let run = async move {
            tokio::select! {
                // it is never sent to: it ends when the sender is dropped
                _closed = stopped.changed() => {}
                () = follow(source, &mut output) => {}
            }
        };
        thread::Builder::new()
            .name("weir-members".into())
            .spawn(move || runtime.block_on(run))?;
        Ok(Self {
            status,
            _running: running,
        })
    }

    /// How the source is.
    #[must_use]
    pub fn report(&self) -> SourceReport {
        self.status.report()
    }
}

/// Follows a source for ever.
async fn follow(source: Source, output: &mut Output) {
    match source {
        Source::File(path) => file::follow(&path, output).await,
    }
}
