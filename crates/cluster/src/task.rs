//! The thread that follows a source.

use crate::dns;
use crate::etcd::Client;
use crate::etcd::announcement::Announcement;
use crate::etcd::listing;
use crate::file;
use crate::output::{MemberSink, Output, SourceReport, Status};
use crate::own::OwnNode;
use crate::source::Source;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;
use weir_net::resolver::Resolver;
use weir_policy::route::NodeState;

/// A thread that follows a source, and announces this node where the source takes that. It ends
/// soon after this is dropped.
#[derive(Debug)]
pub struct MembersTask {
    status: Arc<Status>,
    /// The state that is announced; closed when this is dropped.
    state: watch::Sender<NodeState>,
    /// Closed by the thread when it ends.
    ended: watch::Receiver<()>,
}

impl MembersTask {
    /// Follows `source` for this node, which is in `state`.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub fn start(
        source: Source,
        own: OwnNode,
        state: NodeState,
        resolver: Resolver,
        sink: Arc<dyn MemberSink>,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let status = Arc::new(Status::default());
        let (state, announced) = watch::channel(state);
        let (ending, ended) = watch::channel(());
        let output = Output::new(sink, &status, own, resolver);
        let run = move || {
            runtime.block_on(follow(source, announced, output));
            drop(ending);
        };
        thread::Builder::new()
            .name("weir-members".into())
            .spawn(run)?;
        Ok(Self {
            status,
            state,
            ended,
        })
    }

    /// How the source is.
    #[must_use]
    pub fn report(&self) -> SourceReport {
        self.status.report()
    }

    /// This node is in `state` from now on.
    pub fn announce(&self, state: NodeState) {
        self.state.send_if_modified(|known| {
            let is_new = *known != state;
            *known = state;
            is_new
        });
    }

    /// Ends it. What it returns is ready when this node is no longer announced, or that took too
    /// long.
    pub fn stop(self) -> impl Future<Output = ()> {
        let mut ended = self.ended;
        drop(self.state);
        async move {
            // it is never sent to: it is closed
            let _closed = timeout(STOP_LIMIT, ended.changed()).await;
        }
    }
}

/// How long the last message to a source may take.
const STOP_LIMIT: Duration = Duration::from_secs(1);

/// Follows a source until the sender of `state` is dropped.
async fn follow(source: Source, state: watch::Receiver<NodeState>, mut output: Output) {
    let mut stopped = state.clone();
    let stopped = async { while stopped.changed().await.is_ok() {} };
    match source {
        Source::File(path) => tokio::select! {
            () = stopped => {}
            () = file::follow(&path, &mut output) => {}
        },
        Source::Services(name) => tokio::select! {
            () = stopped => {}
            () = dns::follow_services(&name, &mut output) => {}
        },
        Source::Addresses(hop) => tokio::select! {
            () = stopped => {}
            () = dns::follow_addresses(&hop, &mut output) => {}
        },
        Source::Etcd { endpoints, prefix } => {
            let client = Client::new(&endpoints, output.resolver.clone());
            let announcement = Announcement::new(client.clone(), &prefix, state, &output);
            tokio::select! {
                () = stopped => {}
                () = announcement.keep() => {}
                () = listing::follow(&client, &prefix, &announcement, &mut output) => {}
            }
            let _slow = timeout(STOP_LIMIT, announcement.revoke()).await;
        }
    }
}
