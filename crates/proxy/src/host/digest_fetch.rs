//! Fetches what the other nodes of the cluster hold: the whole digest of each once, then what was
//! added, at intervals. On the first worker, from one node at a time. A message is read as it
//! comes: what is in memory beside the digests is what one adds, at most 1 MiB.

use super::own_request::begin_head;
use super::worker_task;
use crate::cluster::digests::TARGET;
use crate::cluster::{Cluster, DIGESTS, node_health};
use crate::settings::Settings;
use crate::worker::core::Worker;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};
use weir_measure::Metric;
use weir_net::http::{ConnectionNeed, ContentEnd, NextHopStream, RequestSender, ResponseReceiver};
use weir_net::next_hops::Destination;
use weir_net::workers::Stage;
use weir_policy::route::{DigestVersion, IncomingDigest, NodeState, Place};
use weir_semantics::{Method, ProxyError};
use weir_wire::{BodyLength, LineBuffer, ResponseHead};

/// Time for one message: 64 MiB at 1 MiB/s.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(64);

/// Fetches digests from now on until a shutdown begins; on the first worker. To be called once on
/// each.
pub(crate) fn spawn(worker: &Rc<Worker>) {
    worker_task::spawn_on_first(worker, Stage::Draining, run);
}

async fn run(worker: &Rc<Worker>) {
    let mut reloads = worker.shared.reloaded.subscribe();
    loop {
        reloads.mark_unchanged();
        let settings = worker.settings();
        let began = Instant::now();
        let interval = settings.config.cluster.digest_interval.as_duration();
        match settings.cluster() {
            Some(cluster) if settings.config.cluster.digest_memory.as_usize() > 0 => {
                round(worker, &settings, &cluster).await;
            }
            _ => forget(worker, |_| true),
        }
        drop(settings);
        tokio::select! {
            () = sleep_until(began + interval) => {}
            reloaded = reloads.changed() => if reloaded.is_err() {
                std::future::pending::<()>().await;
            },
        }
    }
}

/// Asks each of the other nodes once.
async fn round(worker: &Rc<Worker>, settings: &Arc<Settings>, cluster: &Arc<Cluster>) {
    let digests = &worker.shared.digests;
    forget(worker, |name| cluster.place_of(name).is_none());
    for place in cluster.other_places() {
        // it is asked how it is: see `state_exchange`
        if cluster.state().state_of(worker.now(), place) == NodeState::Gone {
            continue;
        }
        let known = digests.version(cluster.name(place));
        let asked = timeout(
            MESSAGE_TIMEOUT,
            ask(worker, settings, cluster, place, known),
        );
        let outcome = match asked.await {
            Ok(Ok(message)) => apply(worker, cluster, place, message).await,
            Ok(Err(why)) => why,
            Err(_) => Metric::DigestsFailed,
        };
        worker.counters().inc(outcome);
    }
}

/// Takes what a message says, on a thread that nothing else waits for; what became of it.
async fn apply(
    worker: &Rc<Worker>,
    cluster: &Arc<Cluster>,
    place: Place,
    message: IncomingDigest,
) -> Metric {
    let (digests, cluster) = (Arc::clone(&worker.shared.digests), Arc::clone(cluster));
    let taken = tokio::task::spawn_blocking(move || {
        let name = cluster.name(place);
        let update = message.finish(|epoch, key| cluster.open_digest(name, epoch, key));
        let taken = update.and_then(|update| digests.apply(name, update));
        if taken.is_err() {
            // the whole is asked for next
            drop(digests.retain(|other| other != name));
        }
        taken
    });
    match taken.await {
        Ok(Ok(())) => Metric::DigestsTaken,
        Ok(Err(_)) | Err(_) => Metric::DigestsRefused,
    }
}

/// Forgets the digests of nodes. Another thread gives back their memory.
fn forget(worker: &Worker, is_gone: impl Fn(&str) -> bool) {
    let gone = worker.shared.digests.retain(|name| !is_gone(name));
    if !gone.is_empty() {
        tokio::task::spawn_blocking(move || drop(gone));
    }
}

/// Asks the node at `place` for what is not `known` of its digest.
async fn ask(
    worker: &Rc<Worker>,
    settings: &Arc<Settings>,
    cluster: &Cluster,
    place: Place,
    known: Option<DigestVersion>,
) -> Result<IncomingDigest, Metric> {
    let digests = &worker.shared.digests;
    let name = cluster.name(place);
    let memory = settings.config.cluster.digest_memory.as_usize();
    let free = memory.saturating_sub(digests.bytes_without(name));
    let make_room = |bytes: usize| {
        if digests.bytes() + bytes > memory {
            forget(worker, |other| other == name);
        }
    };
    let destination = Destination::configured(cluster.hop(place).clone());
    let rules = &settings.peer_connections;
    let opened = NextHopStream::open(worker.net(), rules, &destination, ConnectionNeed::Any).await;
    let mut hop = opened.map_err(|failure| {
        if failure.error != ProxyError::ConnectionLimitReached {
            let (log, node) = (&worker.shared.module_log, (cluster, place));
            node_health::failed(log, worker.now(), node, ("it cannot be reached", None));
        }
        Metric::DigestsFailed
    })?;
    let nonce = cluster.nonce();
    let (mut to_hop, from_hop) = hop.split();
    to_hop.begin(head(cluster, place, &nonce, known), BodyLength::None, false);
    let mut talk = Talk {
        worker,
        settings,
        from_hop,
        is_proved: &|head| {
            let report = cluster.report_in(place, &nonce, (head.status, head.fields));
            if let Some(report) = &report {
                let (log, node) = (&worker.shared.module_log, (cluster, place));
                node_health::heard_of(log, worker.now(), node, report);
            }
            report.is_some_and(|report| !report.is_own)
        },
        content: Content {
            message: IncomingDigest::new(free),
            make_room: &make_room,
        },
        is_head_received: false,
    };
    poll_fn(|cx| talk.poll(&mut to_hop, cx)).await?;
    let message = talk.content.message;
    hop.release(worker.net(), 0);
    Ok(message)
}

fn head(cluster: &Cluster, place: Place, nonce: &str, known: Option<DigestVersion>) -> Vec<u8> {
    let target = match known {
        None => TARGET.to_owned(),
        Some(DigestVersion { epoch, additions }) => format!("{TARGET}?{epoch}-{additions}"),
    };
    let mut head = begin_head("GET", &target, cluster.name(place).as_bytes());
    cluster.seal_request(place, DIGESTS, nonce, &mut head);
    head
}

/// A response under way.
struct Talk<'t> {
    worker: &'t Worker,
    settings: &'t Settings,
    from_hop: ResponseReceiver<'t>,
    /// Whether a head is of that node, and of what an origin or its store has.
    is_proved: &'t dyn Fn(&ResponseHead<'_, '_>) -> bool,
    content: Content<'t>,
    is_head_received: bool,
}

/// The content of a response under way.
struct Content<'t> {
    message: IncomingDigest,
    /// Called with the bytes of a whole digest before its blocks come: the one from before is
    /// forgotten if there is no room for both.
    make_room: &'t dyn Fn(usize),
}

impl Talk<'_> {
    /// Ready with the whole content, or with how the failure is counted.
    fn poll(
        &mut self,
        to_hop: &mut RequestSender<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Metric>> {
        if !to_hop.is_complete() {
            let sent = ready!(to_hop.poll_send(cx, &[], Some(&[])));
            sent.map_err(|_| Metric::DigestsFailed)?;
        }
        loop {
            let content = &mut self.content;
            let is_whole = if self.is_head_received {
                let mut scratch = self.worker.scratch();
                let take = |_: &mut Context<'_>, data: &[u8]| content.take(data);
                let read = ready!(self.from_hop.poll_content(cx, &mut scratch, take));
                is_whole(read.map_err(|_| Metric::DigestsFailed)?.end)?
            } else {
                ready!(self.poll_head(cx))?;
                let content = &mut self.content;
                let read = self.from_hop.take_buffered(|data| content.take(data));
                is_whole(read.end)?
            };
            if is_whole {
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Metric>> {
        while !self.is_head_received {
            let limits = self.settings.response_heads;
            if self.from_hop.is_worth_reading(&limits) && self.try_head()? {
                break;
            }
            let mut scratch = self.worker.scratch();
            match ready!(self.from_hop.poll_receive_head(cx, &mut scratch)) {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Poll::Ready(Err(Metric::DigestsFailed)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Takes the final head from the front of what was received; whether there was a whole one. A
    /// member sends no interim ones.
    fn try_head(&mut self) -> Result<bool, Metric> {
        let received = self.from_hop.take_received();
        let mut lines = LineBuffer::new();
        let parsed = received.head(Method::Get, &self.settings.response_heads, &mut lines);
        let Some(found) = parsed.map_err(|_| Metric::DigestsFailed)? else {
            self.from_hop.return_received(received, None);
            return Ok(false);
        };
        if found.head.status != 200 || !(self.is_proved)(&found.head) {
            return Err(Metric::DigestsFailed);
        }
        let bytes_max = self.content.message.bytes_max() as u64;
        if matches!(found.length, Ok(BodyLength::Exact(bytes)) if bytes > bytes_max) {
            return Err(Metric::DigestsRefused);
        }
        self.is_head_received = true;
        let accepted = found.acceptance();
        self.from_hop.return_received(received, Some(accepted));
        Ok(true)
    }
}

impl Content<'_> {
    fn take(&mut self, data: &[u8]) -> ControlFlow<()> {
        let is_known = self.message.blocks_bytes().is_some();
        if self.message.push(data).is_err() {
            return ControlFlow::Break(());
        }
        if let Some(bytes) = self.message.blocks_bytes().filter(|_| !is_known) {
            (self.make_room)(bytes);
        }
        ControlFlow::Continue(())
    }
}

fn is_whole(end: ContentEnd) -> Result<bool, Metric> {
    match end {
        ContentEnd::More => Ok(false),
        ContentEnd::Whole => Ok(true),
        ContentEnd::Stopped => Err(Metric::DigestsRefused),
        ContentEnd::BrokenFraming => Err(Metric::DigestsFailed),
    }
}

#[cfg(test)]
mod tests {
    use crate::cluster::digests::Digests;
    use crate::cluster::{Cluster, ClusterSecret, Membership};
    use crate::config::{Config, Member, Mode};
    use crate::request::judge::key_of;
    use std::fmt::Write as _;
    use std::process::Command;
    use std::sync::Arc;
    use weir_policy::Secret;
    use weir_policy::route::{
        DIGEST_BYTES_MAX, DigestError, DigestWriter, HoldsIt, IncomingDigest,
    };
    use weir_semantics::{Authority, Scheme, Target};
    use weir_store::MemoryStore;

    const PAGE: &str = include_str!("../../../../docs/cache-digest.md");
    const SECRET: &str = "an-agreed-secret-of-nodes";

    /// Node b with this secret.
    fn node_b(secret: &ClusterSecret) -> Arc<Cluster> {
        let mut config = Config::default();
        config.cluster.node = Some("b".into());
        config.cluster.members = vec![Member {
            name: "b".into(),
            url: "http://127.0.0.1:4001".parse().expect("a URL"),
            weight: 100,
            front_end: false,
        }];
        let membership = Membership::default();
        membership.configure(&config, secret);
        membership.current().expect("a cluster")
    }

    /// The message of the example in the page.
    fn example() -> Vec<u8> {
        message_of(&ClusterSecret::new(Some(SECRET)))
    }

    /// The same of a node with this secret.
    fn message_of(secret: &ClusterSecret) -> Vec<u8> {
        let cluster = node_b(secret);
        let secret = Secret([5; 16]);
        let mut writer = DigestWriter::new(7, cluster.seal_digest(7, secret), 1);
        for path in ["/1", "/2"] {
            let target = Target {
                scheme: Scheme::Http,
                host: &Authority::parse("a.example").expect("a host").host,
                port: 80,
                path_and_query: path,
            };
            let tag = key_of(Mode::Gateway, &target, &secret).0;
            writer.add(cluster.digest_key_of(tag));
        }
        writer.message_for(None)
    }

    /// What a node with the secret `reads` knows of `/1` and `/3` by a digest that was made with
    /// the secret `made`.
    fn known(made: &ClusterSecret, reads: &ClusterSecret) -> Result<[HoldsIt; 2], DigestError> {
        let cluster = node_b(reads);
        let mut incoming = IncomingDigest::new(DIGEST_BYTES_MAX);
        incoming.push(&message_of(made))?;
        let update = incoming.finish(|epoch, key| cluster.open_digest("b", epoch, key))?;
        let digests = Digests::default();
        digests.apply("b", update)?;
        let holds = |path: &str| {
            digests.holds("b", |secret| {
                let target = Target {
                    scheme: Scheme::Http,
                    host: &Authority::parse("a.example").expect("a host").host,
                    port: 80,
                    path_and_query: path,
                };
                key_of(Mode::Gateway, &target, secret)
            })
        };
        Ok([holds("/1"), holds("/3")])
    }

    #[test]
    fn digest_is_read_with_either_secret_while_nodes_change_it() {
        let (old, new) = ("an-old-secret-of-nodes", "a-new-secret-of-nodes");
        let of_old = ClusterSecret::new(Some(old));
        let of_new = ClusterSecret::new(Some(new));
        let first_old = ClusterSecret::changing(old, new);
        let first_new = ClusterSecret::changing(new, old);
        let right = Ok([HoldsIt::Yes, HoldsIt::No]);
        for (made, reads) in [
            (&of_old, &first_old),
            (&first_old, &of_old),
            (&first_old, &first_new),
            (&first_new, &first_old),
            (&of_new, &first_new),
            (&first_new, &of_new),
        ] {
            assert_eq!(known(made, reads), right);
        }
        let sealed = Err(DigestError::Key);
        assert_eq!(known(&of_old, &of_new), sealed);
        assert_eq!(known(&first_new, &of_old), sealed);
        assert_eq!(known(&ClusterSecret::new(None), &first_new), sealed);
    }

    #[test]
    fn node_whose_secret_changes_begins_a_new_digest() {
        let (old, new) = ("an-old-secret-of-nodes", "a-new-secret-of-nodes");
        let eviction = Config::default().cache.eviction;
        let store = MemoryStore::new(1 << 20, eviction, 1, 1 << 20, Secret([5; 16]));
        let digests = Digests::default();
        let epoch = |secret: ClusterSecret| {
            let message = digests.message_for(&node_b(&secret), &store, None);
            message[10..18].to_vec()
        };
        let first = epoch(ClusterSecret::new(Some(old)));
        assert_eq!(epoch(ClusterSecret::changing(old, new)), first);
        let second = epoch(ClusterSecret::changing(new, old));
        assert_ne!(second, first);
        assert_eq!(epoch(ClusterSecret::new(Some(new))), second);
    }

    /// What is between the fences of the last block of `kind` in the page.
    fn block(kind: &str) -> &'static str {
        let (_, block) = PAGE.rsplit_once(&format!("```{kind}\n")).expect("a block");
        block.split_once("```").expect("its end").0
    }

    #[test]
    fn page_has_the_message_of_its_example() {
        let mut text = String::new();
        for (number, byte) in (1..).zip(example()) {
            let end = if number % 32 == 0 { "\n" } else { "" };
            write!(text, "{byte:02x}{end}").expect("memory");
        }
        assert_eq!(block("text").trim(), text.trim());
    }

    #[test]
    fn reader_of_the_page_reads_the_example() {
        let folder = tempfile::tempdir().expect("a folder");
        let (reader, message) = (
            folder.path().join("reader.py"),
            folder.path().join("message"),
        );
        std::fs::write(&reader, block("python")).expect("a file");
        std::fs::write(&message, example()).expect("a file");
        let ask = |node: &str| {
            Command::new("python3")
                .arg(&reader)
                .arg(&message)
                .args([SECRET, node])
                .args((1..=3).map(|number| format!("http://a.example/{number}")))
                .output()
        };
        let read = ask("b").expect("python3, which `cargo xtask need python3` installs");
        let said = String::from_utf8_lossy(&read.stdout).into_owned();
        let wanted =
            "perhaps http://a.example/1\nperhaps http://a.example/2\nno http://a.example/3\n";
        assert_eq!(said, wanted, "{}", String::from_utf8_lossy(&read.stderr));
        let other = ask("c").expect("python3");
        assert!(!other.status.success(), "it is sealed for node b");
    }
}
