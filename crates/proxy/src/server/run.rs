//! Starting, changing and stopping a proxy: the one thread that is not a worker.

use crate::admin::{self, AdminHandle, AdminSocket, TOKEN_LINE_BYTES_MAX, Token, read_private};
use crate::client::hand_off;
use crate::cluster::purges::ClusterPurges;
use crate::cluster::{ClusterSecret, Membership};
use crate::config::{
    self, AdminAddress, Config, Invalid, LogClients, LogFormat, LogQueries, LogTarget, TokenFile,
};
use crate::host::stored::{deferred_stores, paused_fetches, window_refreshes};
use crate::host::{
    digest_fetch, hop_probes, member_message, module_host, own_url_check, purge_sender,
    state_exchange, timers,
};
use crate::log::access_log::{AccessLog, Destination, Format, Privacy, Say};
use crate::log::module_log::ModuleLog;
use crate::log::record::{Record, Recorder};
use crate::log::top::tops::Tops;
use crate::modules::loaded::{LoadedModules, ModuleKinds};
use crate::server::advice;
use crate::server::control::Control;
use crate::server::control::certificates::open_storage;
use crate::server::descriptors::{clients_max, shortage, worker_count};
use crate::server::disk_tier::{self, DiskTier};
use crate::server::history_place;
use crate::server::secret_file::SecretFile;
use crate::server::signals::check_descriptors;
use crate::settings::hooks::Hooks;
use crate::settings::login::Login;
use crate::settings::logins::{FILE_BYTES_MAX, Logins, Tokens, Users};
use crate::settings::tls::TlsServers;
use crate::settings::{Settings, acme, next_hop_tls};
use crate::worker::client_rate::ClientRates;
use crate::worker::core::Worker;
use crate::worker::demand::{Background, Popularity, Refreshes};
use crate::worker::heartbeats::Heartbeats;
use crate::worker::jobs::Jobs;
use crate::worker::kept_content::AllKeptContent;
use crate::worker::links::{LinkError, LinkSet};
use crate::worker::paused_fetches::PausedFetches;
use crate::worker::shared::Shared;
use arc_swap::ArcSwap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::sync::watch;
use weir_acme::PendingChallenges;
use weir_disk::Disk;
use weir_disk::files::Files;
use weir_net::clock::Clock;
use weir_net::resolver::ResolverConfig;
use weir_net::room_for_a_request;
use weir_net::workers::Stage;
use weir_net::workers::WorkerPool;
use weir_net::workers::{Network, NetworkSettings};
use weir_policy::Secret;
use weir_policy::connections::IdleLimits;
use weir_store::MemoryStore;

/// How long a failed answer of the resolver may be covered by an older one (RFC 8767 §5 recommends
/// 1 to 3 days at most): an hour bridges a resolver's restart.
const DNS_STALE_MAX: Duration = Duration::from_secs(3600);

/// Name look-ups under way at once.
const DNS_LOOKUPS_MAX: usize = 256;

/// Reads the configuration again, for `SIGHUP` and `POST /reload`: the new one, or the whole text
/// of what is wrong.
pub type Reload = Box<dyn Fn() -> Result<Config, String> + Send + Sync>;

/// Writes a configuration as text, for `/config`.
pub type Describe = Box<dyn Fn(&Config) -> String + Send + Sync>;

/// What a proxy needs beside its configuration.
pub struct Options {
    /// Reads the configuration again.
    pub reload: Reload,
    /// Whether it is of a file: without one, [`Options::reload`] gives the same again.
    pub has_config_file: bool,
    /// Writes it as text.
    pub describe: Describe,
    /// The time.
    pub clock: Clock,
    /// The file system of the disk tier.
    pub files: Arc<dyn Files>,
    /// Called with messages of the disk tier and the access log for the operator, a line each.
    pub say: Arc<dyn Fn(&str) + Send + Sync>,
    /// Has the allocator give unused memory back to the system, as far as the thread can that calls
    /// it: every few seconds on each worker. What one thread allocated and another freed stays with
    /// the first until it allocates again.
    pub give_back_memory: fn(),
    /// Whether large content in memory that is requested again moves to a file there, from where it
    /// is sent without a copy. What sockets may have of it leaves the account late, so that
    /// decisions about room then depend on the kernel, too.
    pub moves_content: bool,
    /// What is called at phases of requests.
    pub hooks: Hooks,
    /// The kinds of modules that a configuration may name.
    pub module_kinds: ModuleKinds,
}

/// Why a proxy did not start.
#[derive(Debug)]
pub struct StartError {
    /// What was tried.
    pub what: String,
    /// What the system said.
    pub cause: io::Error,
    /// What to do about it.
    pub hint: Option<String>,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.what, self.cause)
    }
}

impl From<LinkError> for StartError {
    fn from(error: LinkError) -> Self {
        let LinkError {
            what,
            cause,
            hint,
            place,
        } = error;
        let of_place = || {
            let (path, setting) = place?;
            advice::of_place(&path, &setting, &cause)
        };
        let hint = hint.or_else(of_place);
        Self { what, cause, hint }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// A running proxy. Dropping it cuts what is under way.
pub struct Proxy {
    control: Arc<Control>,
    admin: Option<AdminHandle>,
    admin_address: AdminAddress,
    disk: DiskTier,
}

impl Proxy {
    /// Starts workers, listeners and the admin interface. Ports 0 become real ones.
    ///
    /// # Errors
    ///
    /// An address that cannot be bound, a log or a store that cannot be opened, a thread that
    /// cannot be started.
    pub fn start(config: Config, options: Options) -> Result<Self, StartError> {
        Self::begin(config, options, None)
    }

    /// The same, with a recorder.
    ///
    /// # Errors
    ///
    /// As for [`Proxy::start`].
    pub fn start_recorded(
        config: Config,
        options: Options,
        recorder: Box<dyn Recorder>,
    ) -> Result<Self, StartError> {
        Self::begin(config, options, Some(recorder))
    }

    fn begin(
        config: Config,
        options: Options,
        recorder: Option<Box<dyn Recorder>>,
    ) -> Result<Self, StartError> {
        let token = read_token(&config.admin.token_file)?;
        let say = Arc::clone(&options.say);
        let listener = Arc::new(move |notice: weir_disk::Notice| say(&notice.to_string()));
        let (disk, tier) = disk_tier::open(&config, &options.files, listener)?;
        let record = recorder.map(Record::start).transpose();
        let record = record.map_err(cannot("start the recorder"))?;
        let directory = tier.directories.first().map(|first| first.path.clone());
        let store = open_store(&config, disk, options.moves_content, &options.say);
        let shared = Arc::new(share(
            &config,
            options.clock,
            (store, directory.as_deref()),
            record,
            options.say,
            options.give_back_memory,
            (options.hooks, options.module_kinds),
        )?);
        let workers = start_workers(&shared)?;
        let socket = AdminSocket::bind(&config.admin.address);
        let socket = socket.map_err(|cause| no_admin(&config, cause))?;
        let admin_address = socket
            .as_ref()
            .map_or(AdminAddress::Off, |socket| socket.address().clone());
        let (reload, describe) = (options.reload, options.describe);
        let control = Control::new(shared, workers, config.clone(), reload, describe);
        let control = control.map_err(cannot("start the control thread's runtime"))?;
        let control = control
            .with_config_file(options.has_config_file)
            .with_admin(admin_address.clone(), token)
            .with_directory(directory, &options.files);
        let control = Arc::new(control);
        begin_serving(&control, &config)?;
        let mut proxy = Self {
            control,
            admin: None,
            admin_address,
            disk: tier,
        };
        room_for_a_request().map_err(cannot("serve even one request"))?;
        if let Some(socket) = socket {
            let control: Arc<dyn admin::Control> = Arc::clone(&proxy.control) as _;
            let store = proxy.disk.directories.first();
            let store = store.map(|first| first.path.as_path());
            let history = history_place::open(&config, store, &proxy.control.shared().say)?;
            let admin = admin::serve(socket, control, history);
            proxy.admin = Some(admin.map_err(|cause| no_admin(&config, cause))?);
        }
        Ok(proxy)
    }

    /// The listeners as bound, in the order of the configuration.
    #[must_use]
    pub fn listeners(&self) -> Vec<config::Listener> {
        self.control.listeners()
    }

    /// The admin interface as bound.
    #[must_use]
    pub fn admin(&self) -> &AdminAddress {
        &self.admin_address
    }

    /// Address and port of the admin interface as bound, if it has them.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin_address.socket()
    }

    /// The disk tier.
    #[must_use]
    pub fn disk(&self) -> &DiskTier {
        &self.disk
    }

    /// Why names cannot be resolved, if they cannot.
    #[must_use]
    pub fn resolver_problem(&self) -> Option<String> {
        let problem = self.control.shared().network.resolver().problem();
        problem.map(ToOwned::to_owned)
    }

    /// Purges, reloads, reads the counters.
    #[must_use]
    pub fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// Stops: no new connections, what is under way may finish within the limit, then it is cut.
    /// Returns whether everything finished by itself.
    pub fn stop(mut self) -> bool {
        let drained = self.control.drain();
        self.admin = None;
        drained
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.control.shared().network.advance(Stage::Cut);
        self.control.join();
        self.control.close_disk();
        self.control.close_record();
        self.control.shared().links.close();
        // before `control`, so that the last handle on it is not dropped on the admin's thread,
        // inside a runtime
        self.admin = None;
    }
}

/// Starts the threads that serve.
fn start_workers(shared: &Arc<Shared>) -> Result<WorkerPool<Worker>, StartError> {
    let of_workers = Arc::clone(shared);
    let service = move |net| {
        let worker = Worker::new(net, Arc::clone(&of_workers), module_host::maker);
        begin_tasks(&worker);
        worker
    };
    WorkerPool::start(&shared.network, service).map_err(cannot("start a worker thread"))
}

/// Reads the log of purges, opens the listeners, and follows the members of the cluster.
fn begin_serving(control: &Arc<Control>, config: &Config) -> Result<(), StartError> {
    let acme = acme::compile(config).map_err(refused("order certificates"))?;
    open_storage(acme.as_ref())?;
    control.follow_purges(config)?;
    control.open_listeners(config)?;
    control.order_certificates(acme)?;
    control.follow_members(config)?;
    begin_hand_off(control, config)?;
    control.shared().settings.load().membership.tell_state();
    Ok(())
}

/// Why a proxy does not start that cannot do `what`.
fn cannot(what: &'static str) -> impl Fn(io::Error) -> StartError {
    move |cause| StartError {
        hint: None,
        what: what.into(),
        cause,
    }
}

/// The admin interface does not listen.
fn no_admin(config: &Config, cause: io::Error) -> StartError {
    let address = &config.admin.address;
    StartError {
        hint: admin_advice(address, &cause),
        what: format!("listen on {address} for the admin interface"),
        cause,
    }
}

fn open_network(config: &Config, workers: usize, clock: Clock) -> Result<Network, StartError> {
    check_descriptors().map_err(cannot("start the resolver"))?;
    Network::new(NetworkSettings {
        workers,
        clock,
        resolver: resolver_config(config),
        idle: idle_limits(config),
        clients_max: clients_max(config),
    })
    .map_err(cannot("start the resolver"))
}

/// The store, in front of `disk`. If `moves_content`, it has large content sent without a copy,
/// where the system can.
pub(super) fn open_store(
    config: &Config,
    disk: Option<Arc<Disk>>,
    moves_content: bool,
    say: &Say,
) -> MemoryStore {
    let mut store = MemoryStore::new(
        config.cache.memory.bytes(),
        config.cache.eviction,
        worker_count(config),
        config.cache.largest_response.bytes(),
        secret(),
    );
    if moves_content && let Err(cause) = store.open_file() {
        say(&format!(
            "warning: the system gives no file in memory (memfd_create): {cause}; large responses \
             are copied from memory for each client, which takes more CPU time"
        ));
    }
    if disk.is_some() {
        shortage(config).iter().for_each(|warning| say(warning));
    }
    match disk {
        Some(disk) => disk_tier::behind(store, disk, &config.disk),
        None => store,
    }
}

/// The error of a start that cannot do `what` with these settings.
fn refused(what: &'static str) -> impl FnOnce(Invalid) -> StartError {
    move |invalid| StartError {
        what: what.to_owned(),
        cause: io::Error::new(io::ErrorKind::InvalidInput, invalid.to_string()),
        hint: Some(invalid.hint),
    }
}

pub(super) fn share(
    config: &Config,
    clock: Clock,
    (store, directory): (MemoryStore, Option<&Path>),
    record: Option<Record>,
    say: Say,
    give_back_memory: fn(),
    (hooks, module_kinds): (Hooks, ModuleKinds),
) -> Result<Shared, StartError> {
    let workers = worker_count(config);
    let modules =
        LoadedModules::load(config, &module_kinds).map_err(refused("load the modules"))?;
    let challenges: Arc<PendingChallenges> = Arc::default();
    let tls = TlsServers::read(config, challenges.validations(), None)
        .map_err(refused("use the certificates"))?;
    let next_hop_tls =
        next_hop_tls::read(config, None).map_err(refused("verify next hops by TLS"))?;
    let membership = Arc::new(Membership::default());
    let cluster_secret = read_cluster_secret(config)?;
    membership.configure(config, &cluster_secret);
    let directory = history_place::automatic_directory(directory);
    let links = LinkSet::new(clock.clone(), Arc::clone(&say), directory);
    let table = links.prepare(config)?;
    let table = links
        .put_in_force(table)
        .map_err(cannot("start the thread that keeps what links have spent"))?;
    let settings = Settings::new(config.clone(), &instance()).with_links(table);
    let module_log = Arc::new(ModuleLog::new(Arc::clone(&say)));
    let modules = modules.logging_to(&module_log);
    for line in next_hop_tls::unverified_lines(config) {
        module_log.write(line);
    }
    let settings = settings
        .with_hooks(hooks)
        .with_modules(modules)
        .with_membership(&membership)
        .with_logins(read_logins(config)?, None)
        .with_client_logins(read_client_logins(config)?)
        .with_tls(tls)
        .with_next_hop_tls(next_hop_tls)
        .with_cluster_secret(&cluster_secret);
    let network = open_network(config, workers, clock)?;
    let tops = Arc::new(Tops::new(workers, network.common_counters()));
    let privacy = Privacy {
        client_keys: (config.log.clients == LogClients::Hash).then(|| tops.client_keys()),
        cuts_queries: config.log.queries == LogQueries::Cut,
    };
    Ok(Shared {
        module_kinds,
        module_log,
        say: Arc::clone(&say),
        access_log: open_log(config, say)?.with_privacy(privacy),
        own_work: Arc::default(),
        cluster_purges: ClusterPurges::default(),
        digests: Arc::default(),
        hand_offs: Arc::default(),
        jobs: Jobs::default(),
        heartbeats: Heartbeats::new(workers),
        reloaded: watch::Sender::new(()),
        record,
        tops,
        settings: Arc::new(ArcSwap::from_pointee(settings)),
        network: Arc::new(network),
        give_back_memory,
        store: Arc::new(store),
        challenges,
        refreshes: Refreshes::default(),
        abandoned_waits: Arc::default(),
        collapsed: Arc::default(),
        popularity: Popularity::default(),
        background: Background::new(config.fetch.background_rate.bytes()),
        client_rates: ClientRates::default(),
        kept_content: AllKeptContent::default(),
        links,
        paused: PausedFetches::default(),
        passing: Arc::default(),
        read_ahead_max_bytes: AtomicU64::new(0),
    })
}

/// Prepares what it takes to hand connections over, or to take them over.
fn begin_hand_off(control: &Control, config: &Config) -> Result<(), StartError> {
    let hand_offs = &control.shared().hand_offs;
    hand_off::begin(hand_offs, config, member_message::of_hand_off).map_err(|missing| StartError {
        what: "hand connections over (cluster.mechanism)".into(),
        cause: io::Error::other(missing.join("; ")),
        hint: Some("docs/hand-off.md has what it takes".to_owned()),
    })
}

/// Begins what a worker does beside the requests of clients.
fn begin_tasks(worker: &Rc<Worker>) {
    timers::spawn(worker);
    worker.shared.jobs.serve(worker);
    purge_sender::spawn(worker);
    own_url_check::spawn(worker);
    digest_fetch::spawn(worker);
    state_exchange::spawn(worker);
    hop_probes::spawn(worker);
    paused_fetches::spawn(worker);
    window_refreshes::spawn(worker);
    hand_off::begin_sessions(worker);
    deferred_stores::spawn(worker);
}

/// The admin interface's token, if the configuration names one.
pub(crate) fn read_token(file: &TokenFile) -> Result<Option<Token>, StartError> {
    let Some(path) = file.path() else {
        return Ok(None);
    };
    Token::read(path).map(Some).map_err(|error| StartError {
        hint: None,
        what: format!("use the admin token in `{}`", path.display()),
        cause: io::Error::other(error),
    })
}

/// The secret of the cluster, or that the configuration names none.
pub(crate) fn read_cluster_secret(config: &Config) -> Result<ClusterSecret, StartError> {
    let Some(path) = config.cluster.secret_file.path() else {
        return Ok(ClusterSecret::new(None));
    };
    let file = SecretFile::read(path).map_err(|error| StartError {
        hint: error.hint(),
        what: format!("use the secret of the cluster in `{}`", path.display()),
        cause: io::Error::other(error),
    })?;
    Ok(file.secret())
}

/// The logins of parents and siblings, by the places of their tables, in the files that these name.
pub(crate) fn read_logins(config: &Config) -> Result<Vec<Option<Login>>, StartError> {
    let logins = config.parents.iter().map(|parent| {
        let path = parent.login_file.path();
        let login = path.map(|path| {
            read_login(path).map_err(|cause| StartError {
                hint: None,
                what: format!("use the login in `{}`", path.display()),
                cause,
            })
        });
        login.transpose()
    });
    logins.collect()
}

/// The logins of clients, in the files of the configuration; `None` if clients need none.
pub(crate) fn read_client_logins(config: &Config) -> Result<Option<Arc<Logins>>, StartError> {
    let login = &config.login;
    if !login.is_asked() {
        return Ok(None);
    }
    let users = login.users_file.path().map(|path| {
        let text = read_login_file("users", path)?;
        Users::of_text(&text).map_err(|cause| StartError {
            hint: None,
            what: format!("use the users in `{}`", path.display()),
            cause: io::Error::other(cause),
        })
    });
    let tokens = login.tokens_file.path().map(|path| {
        let text = read_login_file("tokens", path)?;
        Tokens::of_text(&text).map_err(|cause| StartError {
            hint: None,
            what: format!("use the tokens in `{}`", path.display()),
            cause: io::Error::other(cause),
        })
    });
    let (users, tokens) = (users.transpose()?, tokens.transpose()?);
    let logins = Logins::new(
        users.unwrap_or_default(),
        tokens.unwrap_or_default(),
        &login.realm,
    );
    Ok(Some(Arc::new(logins)))
}

/// The text of a file of logins; `what` these are.
fn read_login_file(what: &str, path: &Path) -> Result<Vec<u8>, StartError> {
    read_private(path, FILE_BYTES_MAX).map_err(|error| StartError {
        hint: error.hint_of_logins(what),
        what: format!("use the {what} in `{}`", path.display()),
        cause: io::Error::other(error),
    })
}

/// The login in a file.
pub(crate) fn read_login(path: &Path) -> io::Result<Login> {
    let text = read_private(path, TOKEN_LINE_BYTES_MAX).map_err(io::Error::other)?;
    Login::of_text(&text).map_err(io::Error::other)
}

/// What may be idle in all workers together.
fn idle_limits(config: &Config) -> IdleLimits {
    let limits = &config.limits;
    IdleLimits {
        per_hop_max: limits.idle_per_next_hop_max as usize,
        total_max: limits.idle_next_hop_connections_max as usize,
        idle_timeout_ms: limits.next_hop_idle.as_millis(),
        lifetime_ms: limits.next_hop_age.as_millis(),
    }
}

pub(crate) fn resolver_config(config: &Config) -> ResolverConfig {
    let dns = &config.dns;
    ResolverConfig {
        servers: dns.servers.iter().map(|server| server.0).collect(),
        time_limit: config.limits.dns.as_duration(),
        ttl_min: dns.ttl_min.as_duration(),
        ttl_max: dns.ttl_max.as_duration(),
        negative_ttl: dns.negative_ttl.as_duration(),
        stale_max: DNS_STALE_MAX,
        cache_max_entries: dns.cache_entries_max as usize,
        lookups_max: DNS_LOOKUPS_MAX,
    }
}

fn open_log(config: &Config, say: Say) -> Result<AccessLog, StartError> {
    let destination = match &config.log.access {
        LogTarget::Off => Destination::Off,
        LogTarget::Stdout => Destination::Stdout,
        LogTarget::File(path) => Destination::Path(path.clone()),
    };
    let format = log_format(&config.log);
    let lines = config.log.queue_lines as usize;
    AccessLog::open(destination, format, lines, say).map_err(|cause| StartError {
        hint: config
            .log
            .access
            .path()
            .and_then(|path| advice::of_place(path, LOG_SETTING, &cause)),
        what: format!("open the access log {}", config.log.access),
        cause,
    })
}

fn log_format(log: &config::Log) -> Format {
    let stdout = io::stdout();
    let is_terminal = log.access == LogTarget::Stdout && stdout.is_terminal();
    let columns = || {
        let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
        is_terminal.then_some(size.ws_col)
    };
    match log.format {
        LogFormat::Auto if is_terminal => Format::readable(columns()),
        LogFormat::Readable => Format::readable(columns()),
        LogFormat::Auto | LogFormat::Json => Format::Json,
        LogFormat::Squid => Format::Squid,
        LogFormat::Combined => Format::Combined,
    }
}

/// Where another access log is named.
pub(crate) const LOG_SETTING: &str = "`--access-log` or `log.access`";

fn admin_advice(address: &AdminAddress, cause: &io::Error) -> Option<String> {
    let setting = "`--admin` or `admin.address`";
    match address {
        AdminAddress::Off => None,
        AdminAddress::At(address) => advice::of_address(Some(*address), setting, cause),
        AdminAddress::Unix(path) if cause.kind() == io::ErrorKind::AddrInUse => {
            let path = path.display();
            Some(format!(
                "another proxy listens at `{path}`: stop it, or name another path with {setting}"
            ))
        }
        AdminAddress::Unix(path) => advice::of_place(path, setting, cause),
    }
}

/// Sixteen bytes that are not known outside: the standard library seeds its hasher from the system.
fn secret() -> Secret {
    let halves = [
        RandomState::new().hash_one(1_u8),
        RandomState::new().hash_one(2_u8),
    ];
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&halves[0].to_le_bytes());
    bytes[8..].copy_from_slice(&halves[1].to_le_bytes());
    Secret(bytes)
}

/// Distinguishes this process from others of the same name, in Via.
fn instance() -> String {
    format!("{:08x}", RandomState::new().hash_one(3_u8) >> 32)
}
