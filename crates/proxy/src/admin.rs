//! The admin interface: health, metrics, config, modules, cluster, purge and reload over HTTP/1.1
//! on an address of its own.
//!
//! It runs on a thread and runtime of its own, so that neither a slow scraper nor a long purge
//! takes time from a worker. An operator always gets a connection: when all places are taken, the
//! one that has waited longest for its head is closed (module `places`). A request that changes the
//! state of the proxy (every method but GET and HEAD) needs a bearer token if the configuration
//! names one; it must name one where other machines reach the address. Against a browser that a web
//! page makes connect to it, `Host` must be an address or `localhost`, which a page that rebinds a
//! name cannot send, and a `POST` from another origin is refused. And the proxy itself never
//! connects to it for a client ([`weir_policy::destination::OwnAddresses`]).

mod cluster;
mod connections;
mod dashboard;
mod explain;
mod exposition;
mod guard;
mod listening;
mod modules;
mod purge;
mod stored;
mod table;
#[cfg(test)]
mod tests;
mod token;
mod top;
mod version;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use tokio::sync::oneshot;
use weir_disk::Disk;
use weir_extend::{ListenerMode, StoredError};
use weir_measure::Snapshot;
use weir_measure::live::{
    LinkRow, ListenerCertificate, NextHopRow, RecentMisses, TopBy, TopOf, TopTable,
};
use weir_semantics::{Authority, HostName};

use crate::cluster::report::{ClusterReport, RouteReport};
use crate::config::AdminAddress;
use crate::modules::report::ModuleReport;
use crate::request::pac::{self, PAC_PATH, PAC_TYPE};
use crate::server::control::certificates::CertificateRow;
use crate::server::control::reload_failure::ReloadFailure;
use crate::settings::hierarchy::ParentReport;
use crate::settings::rule_counts::RuleReport;
use dashboard::Dashboard;
use guard::Guard;
use listening::listener::BoundedListener;
use listening::places::{self, Limits, Place};
use listening::socket::SocketFile;
use modules::ModuleAction;

pub use crate::host::stored::explain::ExplainCall;
pub use crate::host::stored::explain::report::{
    EXPLAIN_VERSION, Explanation, FieldReport, InputReport, Mark, OutcomeReport, RequestReport,
    RuleUse, StoredReport, StoringForecast,
};
pub use crate::host::stored::listing::{StoredVariantInfo, StoredVariants};
pub(crate) use dashboard::history_file::{FILE_NAME as HISTORY_FILE_NAME, HistoryFile};
pub(crate) use explain::check_scheme;
pub use listening::socket::AdminSocket;
pub use purge::{MORE_ON_DISK, MemberPurge, PurgeCall, PurgeFailure, PurgeReach, PurgeReport};
pub use stored::disk::NOT_STORED;
pub use stored::{BOTH_MODES, StoredCall, StoredReply};
pub(crate) use token::{TOKEN_LINE_BYTES_MAX, read_private};
pub use token::{Token, TokenError};
pub use top::MISSES_NOTE;
pub use version::{INTERFACE_VERSION, LIST_TITLE, NO_ENDPOINT, NO_METHOD, VERSION_FIELD};

/// Bytes of a request body: a URL and a little JSON around it.
const BODY_BYTES_MAX: usize = 16 << 10;

/// How long stopping waits for a purge or reload that is under way.
const STOP_LIMIT: Duration = Duration::from_secs(1);

const ENDPOINTS: &str = "\
GET  /healthz              200 `ok`, or 503 `draining`
GET  /proxy.pac            the file by which browsers find the forward proxy
GET  /metrics              numbers, for Prometheus or as OpenMetrics, by `Accept`
GET  /connections          how connections are used: a table, or JSON with ?format=json or Accept: application/json
GET  /config               the effective configuration, TOML
GET  /modules              the modules in force: a table, or JSON with ?format=json or Accept: application/json
GET  /cluster              the nodes of the cluster as this one knows them: a table, or JSON in the same ways
GET  /                     the page, for a browser
GET  /live                 what the last second was: JSON
GET  /history?step=1s      the last hour, or the last week with step=1min; from= seconds since 1970, series= names: JSON
GET  /events               what each second was, as server-sent events for at most 16 watchers
GET  /top?of=urls&by=bytes the heaviest urls, hosts, clients or next-hops, by requests, to-clients (bytes), from-next-hops, wasted, misses or errors; n= rows; a table, or JSON in the same ways
GET  /misses               the last misses and refusals, and why: a table, or JSON in the same ways
GET  /next-hops            how the next hops of the configuration are: a table, or JSON in the same ways
GET  /links                what is moved over links to next hops, and what of their quotas is spent: a table, or JSON in the same ways
GET  /certificates         those of listeners with TLS: when each ends, when it is ordered, and what the last order said: a table, or JSON in the same ways
GET  /route?url=URL        where a request for a URL is sent, and why; before url= may come mode=forward&, mode=gateway& and format=json&
GET  /explain?url=URL      what would become of a request, why, and what is stored for its URL; before url= may come method=, client=ADDRESS, listener=, mode=, format=json and field=Name:%20value&
POST /modules/NAME/disable do not call this module for new requests
POST /modules/NAME/enable  call it again
POST /purge?url=URL        forget the stored responses of a URL at all nodes of the cluster; the URL may also be the body; at this node alone with this-node& before url=, or ?this-node
POST /purge-all            forget all stored responses at all nodes of the cluster; at this node alone with ?this-node
POST /stored/query?url=URL    what is stored for a URL; before url= comes field=Name:%20value& for each field of the request, and mode=forward& or mode=gateway& where listeners have both
POST /stored/list?url=URL     all variants of it that are in memory
POST /stored/fetch?url=URL    have it stored, without a client
POST /stored/validate?url=URL have its origin say whether it is valid
POST /stored/expire?fresh_for=60s&url=URL  it is fresh for so long from now
POST /stored/delete?url=URL   forget it
POST /stored/inject?url=URL   store the response message in the body
POST /stored/read?url=URL     its content
POST /store/ls             what is on disk, record by record: JSON, in pages; a page begins with from= where the one before ended; all has dead records, too
POST /store/stats          how much is on disk, and in what state: JSON, in pages
POST /store/verify?run=N   every byte on disk is verified: JSON, in pages of one run; one run at a time
POST /store/find?url=URL   the record of a URL, or with key= of a key: JSON
POST /store/read?key=KEY&at=AT  its head and content behind skip= bytes, as find names it
POST /drain                have the other nodes of the cluster ask this one for no new targets; it answers on
POST /drain/end            take targets again
POST /reload               read the configuration file again
";

/// What the admin interface needs of the proxy. Called on the thread of the admin interface
/// ([`Control::purge`] and [`Control::reload`] on threads of their own), never on a worker's.
pub trait Control: Send + Sync {
    /// All numbers, now.
    fn metrics(&self) -> Snapshot;

    /// The effective configuration as TOML.
    fn config_text(&self) -> String;

    /// Purges `what`, at all nodes of the cluster or at this one alone. At this node it survives a
    /// crash when this returns.
    ///
    /// # Errors
    ///
    /// Why it cannot be purged, for the operator: answered with 400, or with 500 if the disk
    /// failed.
    fn purge(&self, what: &PurgeCall, reach: PurgeReach) -> Result<PurgeReport, PurgeFailure>;

    /// Reads the configuration again and puts it in force whole; what was done, in words.
    ///
    /// # Errors
    ///
    /// Why the new one was refused, with line and column, or cannot be used; the old one stays. Or
    /// there is no file to read.
    fn reload(&self) -> Result<String, ReloadFailure>;

    /// Begins a call about a stored response, of the listeners of `mode`; its reply comes later.
    ///
    /// # Errors
    ///
    /// Why it is not clear what is meant: answered with 400.
    fn stored(
        &self,
        mode: Option<ListenerMode>,
        call: StoredCall,
    ) -> Result<oneshot::Receiver<Result<StoredReply, StoredError>>, String>;

    /// The store on disk, if there is one.
    fn disk(&self) -> Option<Arc<Disk>>;

    /// Begins to find out what would become of a request; its reply comes later. Nothing changes by
    /// it.
    ///
    /// # Errors
    ///
    /// Why it is not clear what is meant: answered with 400.
    fn explain(
        &self,
        mode: Option<ListenerMode>,
        call: ExplainCall,
    ) -> Result<oneshot::Receiver<Result<Explanation, StoredError>>, String>;

    /// The modules of the configuration in force, in their order.
    fn modules(&self) -> Vec<ModuleReport>;

    /// What was counted of parents and siblings, each URL and kind once.
    fn parents(&self) -> Vec<ParentReport>;

    /// How the next hops of the configuration are.
    fn next_hops(&self) -> Vec<NextHopRow>;

    /// The certificates of listeners, by their names.
    fn certificates(&self) -> Vec<CertificateRow>;

    /// The certificates of listeners with TLS, in the order of the configuration.
    fn listener_certificates(&self) -> Vec<ListenerCertificate>;

    /// Those that clients may get which request `host` of a gateway, best first: at the listener
    /// with this name or address if it has TLS, else at all that have.
    fn certificates_for(&self, listener: Option<&str>, host: &str) -> Vec<ListenerCertificate>;

    /// What was counted of rules of the operator, in their order.
    fn rules(&self) -> Vec<RuleReport>;

    /// What is moved over links to next hops, in the order of the configuration.
    fn links(&self) -> Vec<LinkRow>;

    /// The cluster as this node knows it; `None` without one: answered with 404.
    fn cluster(&self) -> Option<ClusterReport>;

    /// Where a request for `url` would be sent that a listener of `mode` receives. Nothing changes
    /// by it.
    ///
    /// # Errors
    ///
    /// Why that cannot be said: answered with 400.
    fn route(&self, mode: Option<ListenerMode>, url: &str) -> Result<RouteReport, String>;

    /// The heaviest `rows_max` by a measure; `None` if nothing is counted: answered with 404.
    fn top(&self, of: TopOf, by: TopBy, rows_max: usize) -> Option<TopTable>;

    /// The last misses and refusals; `None` if none is remembered: answered with 404.
    fn misses(&self) -> Option<RecentMisses>;

    /// Enables or disables a module for new requests; `false` if there is none of this name:
    /// answered with 404.
    fn set_module_enabled(&self, name: &str, enabled: bool) -> bool;

    /// The process takes no new work and is about to end.
    fn is_draining(&self) -> bool;

    /// Where the first forward listener without TLS is bound, or where there is none the first with
    /// TLS; and whether it is by TLS.
    fn forward_address(&self) -> Option<(SocketAddr, bool)>;

    /// Has this node of a cluster take no new targets, or take them again; `false` if it is in no
    /// cluster: answered with 404.
    fn set_draining(&self, drains: bool) -> bool;

    /// The token that a request must carry to change anything; `None` if none is needed.
    fn token(&self) -> Option<Arc<Token>>;
}

/// A running admin; it stops when dropped, which must not be in a method of [`Control`].
#[derive(Debug)]
pub struct AdminHandle {
    address: AdminAddress,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Dropped after the thread has ended.
    _file: Option<SocketFile>,
}

impl AdminHandle {
    /// The address it listens on.
    #[must_use]
    pub const fn address(&self) -> &AdminAddress {
        &self.address
    }
}

impl Drop for AdminHandle {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

/// Serves `control` on `socket` until the handle is dropped. The history of its numbers outlives
/// the process in a file, if there is one.
///
/// # Errors
///
/// When the listener or the thread cannot be set up.
pub(crate) fn serve(
    socket: AdminSocket,
    control: Arc<dyn Control>,
    history: Option<HistoryFile>,
) -> io::Result<AdminHandle> {
    serve_within(Limits::DEFAULT, socket, control, history)
}

fn serve_within(
    limits: Limits,
    socket: AdminSocket,
    control: Arc<dyn Control>,
    history: Option<HistoryFile>,
) -> io::Result<AdminHandle> {
    let address = socket.address().clone();
    let is_public = address.is_public();
    let file = SocketFile::of(&address);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let listener = {
        let _entered = runtime.enter();
        BoundedListener::new(socket.listening, limits)?
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let run = move || {
        runtime.block_on(async {
            let links = control.links().into_iter().map(|link| link.name);
            let dashboard = Arc::new(Dashboard::new(history, links.collect()));
            let sampling = dashboard::sample(Arc::clone(&control), Arc::clone(&dashboard));
            let service = router(control, &dashboard, is_public);
            let service = service.into_make_service_with_connect_info::<Place>();
            tokio::select! {
                _ended = axum::serve(listener, service).into_future() => {}
                () = sampling => {}
                _dropped = stopped => {}
            }
            dashboard.save();
        });
        runtime.shutdown_timeout(STOP_LIMIT);
    };
    let thread = thread::Builder::new()
        .name("weir-admin".into())
        .spawn(run)?;
    Ok(AdminHandle {
        address,
        stop: Some(stop),
        thread: Some(thread),
        _file: file,
    })
}

/// The endpoints; `is_public` if other machines reach them.
fn router(control: Arc<dyn Control>, dashboard: &Arc<Dashboard>, is_public: bool) -> Router {
    let guard = Guard {
        control: Arc::clone(&control),
        is_public,
    };
    Router::new()
        .route("/", get(dashboard::front))
        .route("/live", get(dashboard::live))
        .route("/history", get(dashboard::history))
        .route("/events", get(dashboard::events))
        .route("/healthz", get(healthz))
        .route(PAC_PATH, get(proxy_pac))
        .route("/metrics", get(metrics))
        .route("/connections", get(connections_report))
        .route("/config", get(config))
        .route("/cluster", get(cluster::cluster))
        .route("/route", get(cluster::route))
        .route("/explain", get(explain::explain))
        .route("/modules", get(modules_report))
        .route("/top", get(top::top))
        .route("/misses", get(top::misses))
        .route("/next-hops", get(dashboard::next_hops))
        .route("/links", get(dashboard::links))
        .route("/certificates", get(dashboard::certificates))
        .route("/modules/{name}/{action}", post(switch_module))
        .route("/purge", post(purge::purge_url))
        .route("/purge-all", post(purge::purge_all))
        .route("/stored/{word}", post(stored::call))
        .route("/store/{word}", post(stored::disk::call))
        .route("/reload", post(reload))
        .route("/drain", post(cluster::drain))
        .route("/drain/end", post(cluster::end_drain))
        .fallback(async || {
            text(
                StatusCode::NOT_FOUND,
                format!("{NO_ENDPOINT}\n\n{ENDPOINTS}"),
            )
        })
        .method_not_allowed_fallback(async || {
            text(
                StatusCode::METHOD_NOT_ALLOWED,
                format!("{NO_METHOD}\n\n{ENDPOINTS}"),
            )
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(Extension(Arc::clone(dashboard)))
        .layer(from_fn_with_state(guard, guard::check))
        .layer(from_fn(places::follow))
        .layer(map_response(version::say))
        .with_state(control)
}

type Proxy = State<Arc<dyn Control>>;

async fn healthz(State(control): Proxy) -> Response {
    if control.is_draining() {
        text(StatusCode::SERVICE_UNAVAILABLE, "draining\n".into())
    } else {
        text(StatusCode::OK, "ok\n".into())
    }
}

/// The proxy is at the address of its listener; if that is all addresses, at the host by which the
/// admin interface was asked, and so is one by TLS that was asked by a name: its certificate is
/// more likely for that than for an address.
async fn proxy_pac(State(control): Proxy, headers: HeaderMap) -> Response {
    let Some((address, is_tls)) = control.forward_address() else {
        let why = "there is no forward listener".to_owned();
        return text(StatusCode::NOT_FOUND, why + "\n");
    };
    let own = Authority::parse(&address.to_string()).ok();
    let asked = headers.get(header::HOST).map(HeaderValue::as_bytes);
    let host = own.and_then(|own| {
        let asked = pac::authority_of(asked, &own, false).map(|(host, _)| host);
        let is_name = |host: &HostName| host.ip().is_none() && host.as_str() != "localhost";
        match address.ip().is_unspecified() {
            true => asked,
            false => asked
                .filter(|host| is_tls && is_name(host))
                .or(Some(own.host)),
        }
    });
    match host.and_then(|host| pac::script(&host, address.port(), is_tls)) {
        Some(script) => of_type(StatusCode::OK, PAC_TYPE, script),
        None => text(
            StatusCode::BAD_REQUEST,
            "the Host of the request does not name this machine\n".into(),
        ),
    }
}

async fn metrics(State(control): Proxy, headers: HeaderMap) -> Response {
    let format = exposition::Format::accepted(&headers);
    let reports = exposition::Reports {
        modules: control.modules(),
        parents: control.parents(),
        rules: control.rules(),
        certificates: control.certificates(),
        links: control.links(),
        cluster: control.cluster(),
    };
    match exposition::write(format, control.metrics(), reports) {
        Ok(body) => of_type(StatusCode::OK, format.content_type(), body),
        Err(error) => text(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("cannot write the metrics: {error}\n"),
        ),
    }
}

async fn connections_report(
    State(control): Proxy,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let report = connections::Report::new(&control.metrics());
    if wants_json(query.as_deref(), &headers) {
        json(report.json())
    } else {
        text(StatusCode::OK, report.to_string())
    }
}

/// Named in the query, or in `Accept`.
fn wants_json(query: Option<&str>, headers: &HeaderMap) -> bool {
    asks_for_json(query.unwrap_or_default().split('&'), headers)
}

/// The same, by the parameters of a query.
fn asks_for_json<'q>(parameters: impl IntoIterator<Item = &'q str>, headers: &HeaderMap) -> bool {
    let asked = parameters.into_iter().any(|part| part == "format=json");
    let mut accepted = headers.get_all(header::ACCEPT).iter();
    asked
        || accepted.any(|value| {
            let value = value.to_str().unwrap_or_default();
            value
                .split([',', ';'])
                .any(|range| range.trim() == "application/json")
        })
}

async fn modules_report(
    State(control): Proxy,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let modules = control.modules();
    if wants_json(query.as_deref(), &headers) {
        json(modules::json(&modules))
    } else {
        text(StatusCode::OK, modules::table(&modules))
    }
}

async fn switch_module(
    State(control): Proxy,
    Path((name, action)): Path<(String, String)>,
) -> Response {
    let Some(action) = ModuleAction::parse(&action) else {
        return text(
            StatusCode::NOT_FOUND,
            "no such endpoint; a module is changed by /modules/NAME/disable and /modules/NAME/enable\n"
                .into(),
        );
    };
    if control.set_module_enabled(&name, action == ModuleAction::Enable) {
        return text(StatusCode::OK, format!("{} {name}\n", action.done()));
    }
    let names: Vec<String> = control.modules().into_iter().map(|it| it.name).collect();
    let there_are = match names.as_slice() {
        [] => "the configuration has none".to_owned(),
        names => format!("there are: {}", names.join(", ")),
    };
    text(
        StatusCode::NOT_FOUND,
        format!("no module `{name}`; {there_are}\n"),
    )
}

async fn config(State(control): Proxy) -> Response {
    of_type(
        StatusCode::OK,
        "application/toml; charset=utf-8",
        control.config_text(),
    )
}

async fn reload(State(control): Proxy, ConnectInfo(place): ConnectInfo<Place>) -> Response {
    let drains = control.is_draining();
    let (status, said) = match aside(&place, move || control.reload()).await {
        Ok(Ok(said)) if drains => (
            StatusCode::OK,
            format!("{}\nnote: it drains", said.trim_end()),
        ),
        Ok(Ok(said)) => (StatusCode::OK, said),
        Ok(Err(failure)) => {
            let status = match failure {
                ReloadFailure::Config(_) => StatusCode::UNPROCESSABLE_ENTITY,
                ReloadFailure::Outside(_) => StatusCode::INTERNAL_SERVER_ERROR,
                ReloadFailure::NoFile(_) => StatusCode::CONFLICT,
            };
            (status, failure.to_string())
        }
        Err(why) => (StatusCode::INTERNAL_SERVER_ERROR, why),
    };
    text(status, format!("{}\n", said.trim_end()))
}

/// Runs what may take long on a thread of its own: `/healthz` must not wait for it.
async fn aside<T: Send + 'static>(
    place: &Place,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let _working = place.works();
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| error.to_string())
}

fn json(written: serde_json::Result<String>) -> Response {
    match written {
        Ok(body) => of_type(StatusCode::OK, "application/json", body),
        Err(error) => text(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("cannot write the report: {error}\n"),
        ),
    }
}

/// What the admin interface has, for `GET /`.
fn list_of_endpoints() -> Response {
    text(StatusCode::OK, format!("{LIST_TITLE}\n\n{ENDPOINTS}"))
}

fn text(status: StatusCode, body: String) -> Response {
    of_type(status, "text/plain; charset=utf-8", body)
}

fn of_type(status: StatusCode, media_type: &'static str, body: impl Into<Body>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
    ];
    (status, headers, body.into()).into_response()
}
