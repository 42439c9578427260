//! A proxy in this process.

use super::client::RawClient;
use super::{NotedPhases, PATIENCE, ScriptedOrigin};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;
use weir_disk::files::{Files, SystemFiles};
use weir_measure::{Metric, Reuse, Snapshot};
use weir_proxy::admin::{PurgeCall, PurgeReach, PurgeReport};
use weir_proxy::clock::{Clock, ManualClock};
use weir_proxy::config::{
    AdminAddress, Cidr, Config, Listener, LogTarget, Mode, PathPrefix, Route, Span,
};
use weir_proxy::record::Recorder;
use weir_proxy::{Control, Hooks, Options, Proxy, StartError};
use weir_semantics::Timestamp;

/// When the clock of every proxy starts: 2026-01-01T00:00:00Z.
const START: Timestamp = Timestamp(1_767_225_600);

/// The program runs its tests with a hook at every phase.
const IS_HOOKED: bool = matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"hooked");

/// A proxy with one worker, a clock that stands still, and no log. It fails the test if anything
/// panicked in it.
pub(crate) struct Running {
    proxy: Option<Proxy>,
    control: Arc<Control>,
    config: Arc<Mutex<Config>>,
    said: Arc<Mutex<Vec<String>>>,
    /// The phases of its requests, if they are hooked.
    pub(crate) phases: Arc<NotedPhases>,
    /// Its time.
    pub(crate) clock: Arc<ManualClock>,
}

impl Running {
    /// A gateway before `origin`.
    pub(crate) fn gateway(origin: &ScriptedOrigin) -> Self {
        Self::gateway_with(origin.address(), |_| {})
    }

    /// A gateway before an address, with changes to the configuration.
    pub(crate) fn gateway_with(origin: SocketAddr, change: impl FnOnce(&mut Config)) -> Self {
        Self::start(|config| {
            route_to(origin, config);
            change(config);
        })
    }

    /// A gateway before an address on a machine with these files, whose wall clock stands so many
    /// seconds after that of the others; if it starts.
    pub(crate) fn gateway_on(
        origin: SocketAddr,
        files: &Arc<dyn Files>,
        later_s: i64,
        change: impl FnOnce(&mut Config),
    ) -> Result<Self, StartError> {
        Self::try_start(Arc::clone(files), later_s, None, |config| {
            route_to(origin, config);
            change(config);
        })
    }

    /// A forward proxy that may go to loopback.
    pub(crate) fn forward() -> Self {
        Self::forward_with(|config| config.access.allow_destinations = vec![localhost()])
    }

    /// A forward proxy, with changes to the configuration.
    pub(crate) fn forward_with(change: impl FnOnce(&mut Config)) -> Self {
        Self::start(change)
    }

    /// A forward proxy that may go to loopback, with changes to the configuration, that tells
    /// `recorder` what happens.
    pub(crate) fn forward_recorded(
        recorder: Box<dyn Recorder>,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let proxy = Self::try_start(Arc::new(SystemFiles), 0, Some(recorder), |config| {
            config.access.allow_destinations = vec![localhost()];
            change(config);
        });
        proxy.expect("a proxy")
    }

    fn start(change: impl FnOnce(&mut Config)) -> Self {
        Self::try_start(Arc::new(SystemFiles), 0, None, change).expect("a proxy")
    }

    fn try_start(
        files: Arc<dyn Files>,
        later_s: i64,
        recorder: Option<Box<dyn Recorder>>,
        change: impl FnOnce(&mut Config),
    ) -> Result<Self, StartError> {
        let mut config = Config {
            workers: 1,
            listeners: vec![Listener {
                address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
                mode: Mode::Forward.into(),
                name: None,
                tls: None,
                http2: None,
                proxy_protocol: Vec::new(),
            }],
            ..Config::default()
        };
        config.admin.address = AdminAddress::Off;
        config.log.access = LogTarget::Off;
        config.disk.enabled = false;
        // so that no test depends on how fast the machine is
        config.fetch.follower_wait = span("1h");
        change(&mut config);
        config.validate().expect("a valid configuration");
        let clock = Arc::new(ManualClock::new(Timestamp(START.0 + later_s)));
        let current = Arc::new(Mutex::new(config.clone()));
        let reloaded = Arc::clone(&current);
        let (phases, hooks) = if IS_HOOKED {
            NotedPhases::at_all()
        } else {
            Default::default()
        };
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let saying = Arc::clone(&said);
        let options = Options {
            reload: Box::new(move || Ok(reloaded.lock().expect("no panic").clone())),
            has_config_file: true,
            describe: Box::new(|_| String::new()),
            clock: Clock::Manual(Arc::clone(&clock)),
            files,
            say: Arc::new(move |line| saying.lock().expect("no panic").push(line.to_owned())),
            give_back_memory: || {},
            moves_content: true,
            hooks,
            module_kinds: super::module_kinds(),
        };
        let proxy = match recorder {
            Some(recorder) => Proxy::start_recorded(config, options, recorder)?,
            None => Proxy::start(config, options)?,
        };
        Ok(Self {
            control: Arc::clone(proxy.control()),
            proxy: Some(proxy),
            phases,
            config: current,
            said,
            clock,
        })
    }

    /// How often it has said this line to the operator.
    pub(crate) fn said(&self, line: &str) -> usize {
        let said = self.said.lock().expect("no panic");
        said.iter().filter(|it| *it == line).count()
    }

    /// Waits until it has said this line so many times.
    pub(crate) fn wait_until_said(&self, line: &str, times: usize) {
        let until = Instant::now() + PATIENCE;
        while self.said(line) < times {
            let said = self.said.lock().expect("no panic").clone();
            assert!(Instant::now() < until, "`{line}` is not in {said:?}");
            self.turn();
        }
    }

    /// The address of the first listener.
    pub(crate) fn address(&self) -> SocketAddr {
        self.listener(0)
    }

    /// The address of a listener.
    pub(crate) fn listener(&self, at: usize) -> SocketAddr {
        self.control.listeners()[at].address
    }

    /// What an operator does to it.
    pub(crate) fn control(&self) -> &Control {
        &self.control
    }

    /// A new client of the first listener.
    pub(crate) fn client(&self) -> RawClient {
        RawClient::connect(self.address())
    }

    /// A new client of the first listener, from another address of this machine.
    pub(crate) fn client_at(&self, ip: Ipv4Addr) -> RawClient {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
            .expect("a socket");
        socket
            .bind(&SocketAddr::from((ip, 0)).into())
            .expect("an address of this machine");
        socket
            .connect(&self.address().into())
            .expect("the proxy listens");
        RawClient::from_stream(socket.into())
    }

    /// Where the admin interface listens.
    pub(crate) fn admin_address(&self) -> SocketAddr {
        let proxy = self.proxy.as_ref().expect("it runs");
        proxy.admin_address().expect("the admin interface is on")
    }

    /// What the admin interface answers to a GET.
    pub(crate) fn admin(&self, path: &str) -> String {
        let address = self.admin_address();
        let mut admin = RawClient::connect(address);
        let response = admin.ask(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"));
        assert_eq!(response.status(), 200, "{path}");
        response.text()
    }

    /// So many new clients, each of which has sent `request`.
    pub(crate) fn asking(&self, count: usize, request: &str) -> Vec<RawClient> {
        let ask = |_| {
            let mut client = self.client();
            client.send(request);
            client
        };
        (0..count).map(ask).collect()
    }

    /// Stops in a thread of its own: what is under way may finish. Yields whether it did.
    pub(crate) fn stopping(&mut self) -> JoinHandle<bool> {
        let proxy = self.proxy.take().expect("runs");
        std::thread::spawn(move || proxy.stop())
    }

    /// Changes the configuration of the running proxy.
    pub(crate) fn reload(&self, change: impl FnOnce(&mut Config)) {
        self.try_reload(change).expect("accepted");
    }

    /// The same, where it may be refused.
    pub(crate) fn try_reload(&self, change: impl FnOnce(&mut Config)) -> Result<String, String> {
        let mut config = self.config.lock().expect("no panic");
        change(&mut config);
        config.validate().expect("a valid configuration");
        drop(config);
        let reloaded = self.control.reload();
        reloaded.map_err(|failure| failure.to_string())
    }

    /// What `read` finds in its configuration.
    pub(crate) fn settings<T>(&self, read: impl FnOnce(&Config) -> T) -> T {
        read(&self.config.lock().expect("no panic"))
    }

    /// Forgets what is stored for a URL, at all nodes of its cluster; how many responses that were.
    pub(crate) fn purge(&self, url: &str) -> u64 {
        self.try_purge(url).expect("a URL")
    }

    /// The same, where it may fail.
    pub(crate) fn try_purge(&self, url: &str) -> Result<u64, String> {
        let report = self.purge_at(PurgeReach::Cluster, PurgeCall::Url(url.to_owned()))?;
        Ok(report.all_purged())
    }

    /// Purges there.
    pub(crate) fn purge_at(
        &self,
        reach: PurgeReach,
        call: PurgeCall,
    ) -> Result<PurgeReport, String> {
        let purged = self.control.purge(&call, reach);
        purged.map_err(|error| error.to_string())
    }

    /// Forgets everything, at all nodes of its cluster.
    pub(crate) fn purge_all(&self) {
        self.purge_at(PurgeReach::Cluster, PurgeCall::All)
            .expect("a disk");
    }

    /// Waits until a number is reached, or exceeded.
    pub(crate) fn wait_for_at_least(&self, metric: Metric, expected: u64) {
        let until = Instant::now() + PATIENCE;
        while self.count(metric) < expected {
            let count = self.count(metric);
            assert!(
                Instant::now() < until,
                "{metric:?} is {count} and not {expected}"
            );
            self.turn();
        }
    }

    /// All numbers.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.control.snapshot()
    }

    /// Stops it as an operator would: what is under way may finish. The thread says whether it did.
    pub(crate) fn stop(mut self) -> std::thread::JoinHandle<bool> {
        let proxy = self.proxy.take().expect("it runs");
        std::thread::spawn(move || proxy.stop())
    }

    /// A number.
    pub(crate) fn count(&self, metric: Metric) -> u64 {
        self.control.snapshot().get(metric)
    }

    /// Requests for an idle connection that found one, and that did not.
    pub(crate) fn reuse(&self) -> (u64, u64) {
        let count = |reuse| self.count(Metric::ConnectionCache(reuse));
        (count(Reuse::Hit), count(Reuse::Miss))
    }

    /// Waits until a number is reached. Between two looks the proxy answers a request, so that it
    /// has been at work.
    pub(crate) fn wait_for(&self, metric: Metric, expected: u64) {
        let until = Instant::now() + PATIENCE;
        loop {
            let count = self.count(metric);
            if count == expected {
                return;
            }
            assert!(
                Instant::now() < until,
                "{metric:?} is {count} and not {expected}"
            );
            self.turn();
        }
    }

    /// Waits until a number is not above this one.
    pub(crate) fn wait_for_at_most(&self, metric: Metric, expected: u64) {
        let until = Instant::now() + PATIENCE;
        while self.count(metric) > expected {
            let count = self.count(metric);
            assert!(
                Instant::now() < until,
                "{metric:?} is {count} and not {expected}"
            );
            self.turn();
        }
    }

    /// The proxy answers a request: it has done by then what it could do before.
    pub(crate) fn turn(&self) {
        let refused = self.client().ask("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(refused.status(), 405);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.proxy = None;
        if !std::thread::panicking() {
            assert_eq!(self.count(Metric::Panics), 0, "something panicked");
        }
    }
}

fn route_to(origin: SocketAddr, config: &mut Config) {
    config.listeners[0].mode = Mode::Gateway.into();
    config.routes = vec![Route {
        next_hops: vec![format!("http://{origin}").parse().expect("a URL")],
        ..Route::default()
    }];
}

/// The network of this machine itself.
pub(crate) fn localhost() -> Cidr {
    "127.0.0.0/8".parse().expect("a network")
}

/// A time span as it is written in a configuration.
pub(crate) fn span(text: &str) -> Span {
    text.parse().expect("a span")
}
