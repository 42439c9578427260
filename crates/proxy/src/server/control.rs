//! What an operator does to a running proxy: reload, purge, look, stop.

pub(crate) mod certificates;
mod listeners;
mod purging;
pub(crate) mod reload_failure;
mod reports;

use crate::admin::{
    self, BOTH_MODES, ExplainCall, Explanation, PurgeCall, PurgeFailure, PurgeReach, PurgeReport,
    StoredCall, StoredReply, Token, check_scheme,
};
use crate::cluster::purges::valid_since_file::ValidSinceFile;
use crate::cluster::report::{ClusterReport, RouteReport};
use crate::config::{self, AdminAddress, Config, ListenerKind, Mode};
use crate::host::operator;
use crate::modules::loaded::LoadedModules;
use crate::modules::report::ModuleReport;
use crate::server::descriptors::clients_max;
use crate::server::purge_log::FollowedLog;
use crate::server::run::{
    Describe, Reload, StartError, read_client_logins, read_cluster_secret, read_logins, read_token,
};
use crate::server::until_restart;
use crate::settings::hierarchy::ParentReport;
use crate::settings::rule_counts::RuleReport;
use crate::settings::tls::TlsServers;
use crate::settings::{Settings, acme, next_hop_tls};
use crate::worker::core::Worker;
use crate::worker::shared::Shared;
use arc_swap::ArcSwapOption;
use certificates::{CertificateRow, open_storage};
use reload_failure::ReloadFailure;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tokio::time::timeout;
use weir_acme::Issuer;
use weir_disk::Disk;
use weir_disk::files::Files;
use weir_extend::{ListenerMode, StoredError};
use weir_measure::live::{
    LinkRow, ListenerCertificate, NextHopRow, RecentMisses, TopBy, TopOf, TopTable,
};
use weir_measure::{Metric, ReloadOutcome, Snapshot};
use weir_net::workers::Stage;
use weir_net::workers::{OpenListener, WorkerPool};

/// What a reload says where there is nothing to read.
const NO_CONFIG_FILE: &str =
    "there is no config file to read: this proxy was started by flags alone, which stay in force\n";

/// What a reload that the admin interface was asked for has in the log: of a refused one, without
/// the lines of the file.
fn reload_line(result: &Result<String, ReloadFailure>) -> String {
    let joined = |text: &str, lines_max: usize| {
        let lines = text.lines().map(str::trim).take(lines_max);
        lines.collect::<Vec<_>>().join("; ")
    };
    match result {
        Ok(said) => joined(said, usize::MAX),
        Err(failure) => {
            let why = failure.to_string();
            let why = why.strip_prefix("error: ").unwrap_or(&why);
            let why = joined(why, 2);
            format!("reload refused: {why}; the config in force stays as it was")
        }
    }
}

/// Where it is kept what is to be validated, in the first directory of the store on disk.
const VALID_SINCE_FILE: &str = "valid-since";

/// Handle on a running proxy, for the admin interface and for signals.
pub struct Control {
    shared: Arc<Shared>,
    workers: WorkerPool<Worker>,
    state: Mutex<State>,
    reload: Reload,
    /// Whether that reads a file.
    has_config_file: bool,
    describe: Describe,
    runtime: tokio::runtime::Runtime,
    /// The admin interface as bound; a restart alone changes it.
    admin: AdminAddress,
    /// The token that it requires.
    token: ArcSwapOption<Token>,
    /// The thread that orders certificates, if some are ordered.
    issuer: Mutex<Option<Issuer>>,
    /// The log of purges that it follows, if the cluster has one.
    purge_log: ArcSwapOption<FollowedLog>,
    /// The first directory of the store on disk.
    directory: Option<PathBuf>,
}

struct State {
    config: Config,
    open: Vec<ListenerEntry>,
}

/// One listening address, on every worker.
struct ListenerEntry {
    /// As configured: the port may be 0.
    configured: config::Listener,
    /// Tells its connections that it is closed.
    closed: Arc<AtomicBool>,
    /// As bound; closed when dropped.
    bound: OpenListener,
}

impl Drop for ListenerEntry {
    fn drop(&mut self) {
        // before the workers close it, and wake its connections
        self.closed.store(true, Ordering::Relaxed);
    }
}

impl State {
    /// Where those of the open listeners are bound that `config` has too.
    fn bound_for(&self, config: &Config) -> Vec<SocketAddr> {
        let stays = self
            .open
            .iter()
            .filter(|open| config.listeners.contains(&open.configured));
        stays.map(|open| open.bound.address()).collect()
    }
}

impl Control {
    pub(crate) fn new(
        shared: Arc<Shared>,
        workers: WorkerPool<Worker>,
        config: Config,
        reload: Reload,
        describe: Describe,
    ) -> std::io::Result<Self> {
        Ok(Self {
            shared,
            workers,
            state: Mutex::new(State {
                config,
                open: Vec::new(),
            }),
            reload,
            has_config_file: true,
            describe,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()?,
            admin: AdminAddress::Off,
            token: ArcSwapOption::empty(),
            issuer: Mutex::default(),
            purge_log: ArcSwapOption::empty(),
            directory: None,
        })
    }

    /// With a configuration file that a reload reads, or without one.
    pub(crate) const fn with_config_file(mut self, has_config_file: bool) -> Self {
        self.has_config_file = has_config_file;
        self
    }

    /// With a store on disk whose first directory this is. What an earlier process was to validate
    /// is validated. To be called before what is stored on disk is served.
    pub(crate) fn with_directory(
        mut self,
        directory: Option<PathBuf>,
        files: &Arc<dyn Files>,
    ) -> Self {
        if let (Some(directory), Some(disk)) = (&directory, self.shared.store.disk()) {
            let path = directory.join(VALID_SINCE_FILE);
            let say = Arc::clone(&self.shared.say);
            let last = disk.last_ticket().number();
            let now = self.shared.clock().now().wall;
            let (file, found) = ValidSinceFile::open(path, Arc::clone(files), say, (last, now));
            disk.skip_tickets(found.ticket);
            self.shared
                .store
                .validate_stored_by(found.ticket, found.then);
            let membership = &self.shared.settings.load().membership;
            // a process has one store
            let _set_once = membership.valid_since.file.set(file);
        }
        self.directory = directory;
        self
    }

    /// With an admin interface at `address`, as bound, that requires `token`.
    pub(crate) fn with_admin(mut self, address: AdminAddress, token: Option<Token>) -> Self {
        self.admin = address;
        self.token.store(token.map(Arc::new));
        self
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn join(&self) {
        self.workers.join();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The listeners as bound.
    #[must_use]
    pub fn listeners(&self) -> Vec<config::Listener> {
        self.state()
            .open
            .iter()
            .map(|open| config::Listener {
                address: open.bound.address(),
                ..open.configured.clone()
            })
            .collect()
    }

    /// Reads the configuration again and puts it in force. A bad one is refused as a whole, and the
    /// old one stays.
    ///
    /// # Errors
    ///
    /// The whole text of what is wrong.
    pub fn reload(&self) -> Result<String, ReloadFailure> {
        let config = (self.reload)().map_err(ReloadFailure::Config);
        let result = config.and_then(|config| self.put_in_force(config));
        let outcome = if result.is_ok() {
            ReloadOutcome::Ok
        } else {
            ReloadOutcome::Refused
        };
        self.shared
            .common_counters()
            .add_shared(Metric::Reloads(outcome), 1);
        result
    }

    fn put_in_force(&self, config: Config) -> Result<String, ReloadFailure> {
        let token = self.next_token(&config)?;
        let (config, notes) = until_restart::keep(&self.state().config, config);
        let cluster_secret = read_cluster_secret(&config)?;
        let logins = read_logins(&config)?;
        let client_logins = read_client_logins(&config)?;
        let before_tls = &self.shared.settings.load().tls;
        let validations = self.shared.challenges.validations();
        let tls = TlsServers::read(&config, validations, Some(before_tls))?;
        let acme = acme::compile(&config)?;
        open_storage(acme.as_ref())?;
        let before_tls = self.shared.settings.load().connections.tls.clone();
        let next_hop_tls = next_hop_tls::read(&config, Some(&before_tls))?;
        let modules = LoadedModules::load(&config, &self.shared.module_kinds)?;
        let links = self.shared.links.prepare(&config);
        let links = links.map_err(StartError::from)?;
        self.open_listeners(&config)?;
        let before = self.shared.settings.load_full();
        let modules = modules.continuing(&before.modules);
        let settings = Settings::new(config.clone(), &before.instance);
        let now = self.shared.clock().now();
        let settings = settings
            .with_hooks(before.hooks.clone())
            .with_modules(modules.logging_to(&self.shared.module_log))
            .with_membership(&before.membership)
            .with_logins(logins, Some((now, &before)))
            .with_client_logins(client_logins)
            .with_tls(tls)
            .with_next_hop_tls(next_hop_tls)
            .continuing_rule_counts(&before)
            .with_cluster_secret(&cluster_secret);
        settings.keep_health(now, &before);
        before.membership.configure(&config, &cluster_secret);
        self.follow_members(&config)
            .and_then(|()| self.follow_purges(&config))?;
        let outside = |error: std::io::Error| ReloadFailure::Outside(error.to_string());
        let links = self.shared.links.put_in_force(links);
        let settings = settings.with_links(links.map_err(outside)?);
        for line in next_hop_tls::unverified_lines(&config) {
            self.shared.module_log.write(line);
        }
        self.shared.settings.store(Arc::new(settings));
        self.shared.reloaded.send_replace(());
        self.order_certificates(acme)?;
        let rate = config.fetch.background_rate.bytes();
        self.shared.background.set_rate(rate);
        self.shared.network.set_clients_max(clients_max(&config));
        self.shared.store.set_budget(config.cache.memory.bytes());
        self.token.store(token);
        let log = self.shared.access_log.reopen();
        let mut state = self.state();
        let mut said = match self.has_config_file {
            true => {
                let changed = until_restart::changed_keys(&state.config, &config);
                format!("config reloaded\n{changed}{notes}")
            }
            false => NO_CONFIG_FILE.to_owned(),
        };
        state.config = config;
        drop(state);
        if let Err(error) = log {
            said.push_str(&format!(
                "note: the access log could not be opened again and stays as it was: {error}\n"
            ));
        }
        Ok(said)
    }

    /// Follows the log of purges of the cluster, if it has one. To be called before what is stored
    /// on disk is served.
    pub(crate) fn follow_purges(&self, config: &Config) -> Result<(), StartError> {
        let before = self.purge_log.load_full();
        let directory = self.directory.as_deref();
        let followed = FollowedLog::follow(config, &self.shared, directory, before);
        let followed = followed.map_err(|cause| StartError {
            hint: None,
            what: "start the thread that follows the log of purges".into(),
            cause,
        })?;
        self.purge_log.store(followed);
        Ok(())
    }

    /// Follows the members of the cluster where `config` says, once the listeners are open.
    pub(crate) fn follow_members(&self, config: &Config) -> Result<(), StartError> {
        let listeners = self.listeners();
        let listeners = listeners.iter().map(|it| (it.mode, it.address));
        let listeners: Vec<(ListenerKind, SocketAddr)> = listeners.collect();
        let shared = &self.shared;
        let membership = &shared.settings.load().membership;
        let told = (shared.common_counters(), &shared.say);
        let resolver = shared.network.resolver();
        let followed = membership.follow(config, &listeners, resolver, told);
        followed.map_err(|cause| StartError {
            hint: None,
            what: "start the thread that follows the members of the cluster".into(),
            cause,
        })
    }

    /// The token of `config`. The address does not change until a restart: it must not lose its
    /// token.
    fn next_token(&self, config: &Config) -> Result<Option<Arc<Token>>, ReloadFailure> {
        let token = read_token(&config.admin.token_file)?;
        if token.is_none() && self.admin.is_public() {
            return Err(ReloadFailure::Config(format!(
                "cannot do without `admin.token_file`: other machines can reach the admin interface on {}, which changes only with a restart",
                self.admin
            )));
        }
        Ok(token.map(Arc::new))
    }

    /// Begins a call about a stored response, of the listeners of `mode`: without it, of the one
    /// mode that all listeners have.
    ///
    /// # Errors
    ///
    /// There are listeners of both modes.
    pub fn stored(
        &self,
        mode: Option<ListenerMode>,
        mut call: StoredCall,
    ) -> Result<oneshot::Receiver<Result<StoredReply, StoredError>>, String> {
        call.target_mut().mode = match mode {
            Some(mode) => mode,
            None => self.only_mode()?,
        };
        let (reply, replied) = oneshot::channel();
        let begin = Box::new(move |worker: &_| operator::begin(worker, call, reply));
        // if it is not handed over, the reply is that there is none
        self.shared.jobs.hand_over(begin);
        Ok(replied)
    }

    /// Begins to find out what would become of a request, with what is stored for its target: at
    /// listeners of `mode`, or where it is not given of the one mode that all have. Nothing changes
    /// by it.
    ///
    /// # Errors
    ///
    /// There are listeners of both modes, or none of this one.
    pub fn explain(
        &self,
        mode: Option<ListenerMode>,
        mut call: ExplainCall,
    ) -> Result<oneshot::Receiver<Result<Explanation, StoredError>>, String> {
        let mode = self.mode_of_a_listener(mode)?;
        if mode == ListenerMode::Forward {
            check_scheme(&call.target.url)?;
        }
        call.target.mode = mode;
        let is_https = check_scheme(&call.target.url).is_err();
        call.listener = self.listener_for(mode, is_https, call.listener.as_deref())?;
        let (reply, replied) = oneshot::channel();
        let begin = Box::new(move |worker: &_| operator::explain(worker, call, reply));
        // if it is not handed over, the reply is that there is none
        self.shared.jobs.hand_over(begin);
        Ok(replied)
    }

    /// The listener of `mode` with this name, or this address as it is configured, or the first one
    /// that answers for URLs of this scheme: what rules call it. A gateway answers for `https` by
    /// TLS, and for `http` in clear.
    fn listener_for(
        &self,
        mode: ListenerMode,
        is_https: bool,
        named: Option<&str>,
    ) -> Result<Option<String>, String> {
        let state = self.state();
        let open = state.open.iter().map(|open| &open.configured);
        let mut of_mode =
            open.filter(|listener| listener.mode.mode().map(Into::into) == Some(mode));
        let answers = |listener: &config::Listener| {
            mode == ListenerMode::Forward || listener.tls.is_some() == is_https
        };
        let refused = |listener: &str| match is_https {
            true => {
                format!("{listener} has no TLS: a gateway answers for https:// URLs by TLS alone")
            }
            false => {
                format!("{listener} has TLS: a gateway answers for http:// URLs in clear alone")
            }
        };
        let Some(named) = named else {
            let listeners: Vec<&config::Listener> = of_mode.collect();
            let found = listeners.iter().find(|listener| answers(listener));
            return match (found, listeners.first()) {
                (None, Some(_)) => Err(refused("each gateway listener")),
                (found, _) => Ok(found.map(|listener| listener.name_or_address())),
            };
        };
        let is_it = |listener: &&config::Listener| {
            listener.name.as_deref() == Some(named) || listener.address.to_string() == named
        };
        match of_mode.find(is_it) {
            Some(found) if answers(found) => Ok(Some(found.name_or_address())),
            Some(_) => Err(refused(&format!("the listener `{}`", named.escape_debug()))),
            None => Err(format!(
                "there is no listener `{}` of this mode; name it as `listener[].name` or `listener[].address` has it",
                named.escape_debug()
            )),
        }
    }

    /// This mode, or without one that of all listeners.
    ///
    /// # Errors
    ///
    /// There are listeners of both, or none has it. Where nodes ask, they ask for either.
    fn mode_of_a_listener(&self, asked: Option<ListenerMode>) -> Result<ListenerMode, String> {
        let Some(asked) = asked else {
            return self.only_mode();
        };
        let state = self.state();
        let mut open = state.open.iter();
        let is_answered = |kind: ListenerKind| match kind.mode() {
            Some(mode) => ListenerMode::from(mode) == asked,
            None => true,
        };
        if open.any(|open| is_answered(open.configured.mode)) {
            return Ok(asked);
        }
        let mode = match asked {
            ListenerMode::Forward => Mode::Forward,
            ListenerMode::Gateway => Mode::Gateway,
        };
        Err(format!("no listener has mode {mode}"))
    }

    /// The mode of all listeners.
    fn only_mode(&self) -> Result<ListenerMode, String> {
        let state = self.state();
        let mut modes = state
            .open
            .iter()
            .filter_map(|open| open.configured.mode.mode());
        let first = modes.next().unwrap_or(Mode::Forward);
        if modes.any(|mode| mode != first) {
            return Err(format!(
                "{BOTH_MODES}: put mode=forward& or mode=gateway& before url="
            ));
        }
        Ok(match first {
            Mode::Forward => ListenerMode::Forward,
            Mode::Gateway => ListenerMode::Gateway,
        })
    }

    /// Disables the module `name` for new requests, or enables it again; also under later
    /// configurations, until the proxy ends. `false` if there is no such module.
    #[must_use]
    pub fn set_module_enabled(&self, name: &str, enabled: bool) -> bool {
        let settings = self.shared.settings.load();
        settings.modules.set_enabled(name, enabled)
    }

    /// Stops accepting, waits within the limit for requests under way, and for members that answer
    /// to be told all purges, cuts the others; returns whether nothing was cut.
    pub(crate) fn drain(&self) -> bool {
        let membership = Arc::clone(&self.shared.settings.load().membership);
        membership.set_draining(true);
        self.shared.network.advance(Stage::Draining);
        let limit = self
            .shared
            .settings
            .load()
            .config
            .limits
            .drain
            .as_duration();
        let finished = self.runtime.block_on(async {
            let drained = self.shared.network.drained();
            timeout(limit, drained).await.unwrap_or(false)
        });
        self.say_untold();
        self.runtime.block_on(membership.leave());
        self.shared.network.advance(Stage::Cut);
        self.workers.join();
        self.close_disk();
        self.shared.access_log.flush(LOG_FLUSH);
        self.close_record();
        self.shared.links.close();
        finished
    }

    /// Names the members that this node leaves with purges untold.
    fn say_untold(&self) {
        let untold = self.shared.cluster_purges.outboxes.untold();
        if !untold.is_empty() {
            let line = format!(
                "stopping without an answer of {} to all purges and invalidations: what is there may be outdated",
                untold.join(", ")
            );
            self.shared.module_log.write(line);
        }
    }

    /// Waits for the recorder to finish, once no request is served any more.
    pub(crate) fn close_record(&self) {
        if let Some(record) = &self.shared.record {
            record.close();
        }
    }

    /// Writes the waiting log lines, once no request is served any more.
    pub(crate) fn close_disk(&self) {
        if let Some(disk) = self.shared.store.disk() {
            disk.close();
        }
    }
}

/// How long the last lines of the access log may take to leave.
const LOG_FLUSH: std::time::Duration = std::time::Duration::from_secs(2);

impl admin::Control for Control {
    fn metrics(&self) -> Snapshot {
        self.snapshot()
    }

    fn config_text(&self) -> String {
        (self.describe)(&self.state().config)
    }

    fn purge(&self, what: &PurgeCall, reach: PurgeReach) -> Result<PurgeReport, PurgeFailure> {
        self.purge(what, reach)
    }

    fn stored(
        &self,
        mode: Option<ListenerMode>,
        call: StoredCall,
    ) -> Result<oneshot::Receiver<Result<StoredReply, StoredError>>, String> {
        self.stored(mode, call)
    }

    fn disk(&self) -> Option<Arc<Disk>> {
        self.shared.store.disk().cloned()
    }

    fn explain(
        &self,
        mode: Option<ListenerMode>,
        call: ExplainCall,
    ) -> Result<oneshot::Receiver<Result<Explanation, StoredError>>, String> {
        self.explain(mode, call)
    }

    fn reload(&self) -> Result<String, ReloadFailure> {
        let result = self.reload();
        // that of a signal is said by what receives signals
        (self.shared.say)(&reload_line(&result));
        match self.has_config_file {
            true => result,
            // a command to reload has a mistake; a signal may be for the log alone
            false => result.and_then(|said| Err(ReloadFailure::NoFile(said))),
        }
    }

    fn modules(&self) -> Vec<ModuleReport> {
        self.modules()
    }

    fn parents(&self) -> Vec<ParentReport> {
        self.shared.settings.load().hierarchy.report()
    }

    fn next_hops(&self) -> Vec<NextHopRow> {
        let now = self.shared.clock().now();
        self.shared.settings.load().next_hops(now)
    }

    fn certificates(&self) -> Vec<CertificateRow> {
        self.certificates()
    }

    fn listener_certificates(&self) -> Vec<ListenerCertificate> {
        self.listener_certificates()
    }

    fn certificates_for(&self, listener: Option<&str>, host: &str) -> Vec<ListenerCertificate> {
        self.certificates_for(listener, host)
    }

    fn rules(&self) -> Vec<RuleReport> {
        self.shared.settings.load().rule_counts.report()
    }

    fn links(&self) -> Vec<LinkRow> {
        self.links()
    }

    fn cluster(&self) -> Option<ClusterReport> {
        self.cluster()
    }

    fn route(&self, mode: Option<ListenerMode>, url: &str) -> Result<RouteReport, String> {
        self.route(mode, url)
    }

    fn top(&self, of: TopOf, by: TopBy, rows_max: usize) -> Option<TopTable> {
        self.top(of, by, rows_max)
    }

    fn misses(&self) -> Option<RecentMisses> {
        self.misses()
    }

    fn set_module_enabled(&self, name: &str, enabled: bool) -> bool {
        self.set_module_enabled(name, enabled)
    }

    fn forward_address(&self) -> Option<(SocketAddr, bool)> {
        let listeners = Self::listeners(self).into_iter();
        let forward = listeners.filter(|it| it.mode == ListenerKind::Forward);
        let forward = forward.map(|it| (it.address, it.tls.is_some()));
        // the first of those that are equal
        forward.min_by_key(|(_, is_tls)| *is_tls)
    }

    fn is_draining(&self) -> bool {
        self.shared.is_draining() || self.shared.settings.load().membership.is_draining()
    }

    fn set_draining(&self, drains: bool) -> bool {
        let membership = Arc::clone(&self.shared.settings.load().membership);
        let is_member = membership.current().is_some();
        if is_member {
            membership.set_draining(drains);
        }
        is_member
    }

    fn token(&self) -> Option<Arc<Token>> {
        self.token.load_full()
    }
}
