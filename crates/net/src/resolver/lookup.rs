//! The resolver thread: the only place that talks to the library.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig as ServerConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::system_conf::read_system_conf;
use tokio::sync::mpsc;

use super::records::{Question, Records, records};
use super::{LookupResult, ResolveError, ResolverConfig, Shared};

/// Tries within the time limit: a lost datagram costs a third of it.
const TRIES: u32 = 3;

/// How long an answer for one family waits for the other. RFC 8305 §3 suggests 50 ms before
/// connecting; our answer is also cached, so we wait a little longer for both families.
const OTHER_FAMILY_GRACE: Duration = Duration::from_millis(250);

/// Name servers with the options to use on them, or why there are none.
pub(super) type Servers = Result<(ServerConfig, ResolverOpts), String>;

/// The servers to query, and how; or in words why they are unknown.
pub(super) fn servers(config: &ResolverConfig) -> Servers {
    let (servers, mut options) = if config.servers.is_empty() {
        read_system_conf()
            .map_err(|error| format!("cannot read name servers from /etc/resolv.conf: {error}"))?
    } else {
        let servers = config.servers.iter().map(|server| {
            let (mut udp, mut tcp) = (ConnectionConfig::udp(), ConnectionConfig::tcp());
            udp.port = server.port();
            tcp.port = server.port();
            NameServerConfig::new(server.ip(), true, vec![udp, tcp])
        });
        (
            ServerConfig::from_parts(None, Vec::new(), servers.collect()),
            ResolverOpts::default(),
        )
    };
    // caching, the hosts file and the limits are ours
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
    options.timeout = config.time_limit / TRIES;
    options.attempts = TRIES as usize - 1;
    options.max_active_requests = config
        .lookups_max
        .saturating_mul(2)
        .max(options.max_active_requests);
    Ok((servers, options))
}

/// Starts the thread; it ends when every sender of `queue` is dropped.
pub(super) fn start_thread(
    servers: Servers,
    queue: mpsc::Receiver<Question>,
    shared: Arc<Shared>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let run = move || runtime.block_on(serve(servers, queue, shared));
    thread::Builder::new()
        .name("weir-resolver".into())
        .spawn(run)?;
    Ok(())
}

async fn serve(servers: Servers, mut queue: mpsc::Receiver<Question>, shared: Arc<Shared>) {
    let resolver = servers.ok().and_then(|(servers, options)| {
        TokioResolver::builder_with_config(servers, TokioRuntimeProvider::default())
            .with_options(options)
            .build()
            .ok()
    });
    while let Some(question) = queue.recv().await {
        let name = match question {
            Question::Addresses(name) => name,
            Question::Records(question) => {
                // without a resolver the caller learns that the question was dropped
                if let Some(resolver) = resolver.clone() {
                    let limit = shared.config.time_limit;
                    tokio::spawn(async move { question.answer(&resolver, limit).await });
                }
                continue;
            }
        };
        let promise = Promise {
            shared: Arc::clone(&shared),
            name,
            found: Err(ResolveError::ServerFailure),
        };
        if let Some(resolver) = resolver.clone() {
            tokio::spawn(async move {
                let found = both_families(&resolver, &promise).await;
                promise.fulfil(found);
            });
        }
    }
}

/// A lookup that callers wait for: it is answered when this is dropped, be it done, by a panic or
/// at the end of the thread.
struct Promise {
    shared: Arc<Shared>,
    name: Arc<str>,
    found: LookupResult,
}

impl Promise {
    fn fulfil(mut self, found: LookupResult) {
        self.found = found;
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        let found = std::mem::replace(&mut self.found, Err(ResolveError::ServerFailure));
        self.shared.finish(&self.name, found);
    }
}

/// Queries A and AAAA at once. The first answer with addresses waits a little for the other one:
/// some servers never answer for AAAA, and such a name is still usable.
async fn both_families(resolver: &TokioResolver, promise: &Promise) -> LookupResult {
    let limit = promise.shared.config.time_limit;
    let mut v4 = pin!(one_family(resolver, &promise.name, RecordType::A, limit));
    let mut v6 = pin!(one_family(resolver, &promise.name, RecordType::AAAA, limit));
    let (first, other) = tokio::select! {
        first = &mut v4 => { let wait = grace(&first, limit); (first, tokio::time::timeout(wait, v6).await) }
        first = &mut v6 => { let wait = grace(&first, limit); (first, tokio::time::timeout(wait, v4).await) }
    };
    join(first, other.unwrap_or(Err(ResolveError::Timeout)))
}

fn grace(first: &LookupResult, limit: Duration) -> Duration {
    if first.is_ok() {
        OTHER_FAMILY_GRACE.min(limit)
    } else {
        limit
    }
}

/// Addresses of either; of two failures the one that says more about the servers, since it may
/// pass.
fn join(first: LookupResult, other: LookupResult) -> LookupResult {
    match (first, other) {
        (Ok((mut addresses, ttl)), Ok((more, other_ttl))) => {
            addresses.extend(more);
            Ok((addresses, ttl.min(other_ttl)))
        }
        (Ok(found), Err(_)) | (Err(_), Ok(found)) => Ok(found),
        (Err(ResolveError::NotFound), Err(error)) | (Err(error), Err(_)) => Err(error),
    }
}

async fn one_family(
    resolver: &TokioResolver,
    name: &str,
    family: RecordType,
    limit: Duration,
) -> LookupResult {
    let found = lookup(resolver, name, family, limit, RData::ip_addr).await?;
    Ok((found.records, found.ttl))
}

/// The records of a name that `read` takes.
pub(super) async fn lookup<T>(
    resolver: &TokioResolver,
    name: &str,
    kind: RecordType,
    limit: Duration,
    read: impl Fn(&RData) -> Option<T>,
) -> Result<Records<T>, ResolveError> {
    let name = Name::from_ascii(name).map_err(|_error| ResolveError::BadName)?;
    let lookup = match tokio::time::timeout(limit, resolver.lookup(name, kind)).await {
        Ok(result) => result.map_err(|error| classify(&error))?,
        Err(_elapsed) => return Err(ResolveError::Timeout),
    };
    let answers = lookup.answers().iter();
    records(answers.map(|record| (record.ttl, &record.data)), read)
}

fn classify(error: &NetError) -> ResolveError {
    match error {
        NetError::Timeout => ResolveError::Timeout,
        NetError::Dns(DnsError::NoRecordsFound(none))
            if matches!(
                none.response_code,
                ResponseCode::NXDomain | ResponseCode::NoError
            ) =>
        {
            ResolveError::NotFound
        }
        _ => ResolveError::ServerFailure,
    }
}
