//! A gateway in this process with filters before an origin.

use crate::http::{Client, Message, Origin, response};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;
use weir_disk::files::SystemFiles;
use weir_measure::Metric;
use weir_proxy::clock::Clock;
use weir_proxy::config::{
    AdminAddress, Cidr, Config, Listener, LogTarget, Mode, Module as ModuleTable, ModuleOption,
    Route,
};
use weir_proxy::{Hooks, ModuleReport, Options, Proxy};

/// A proxy, and the origin behind it.
pub(crate) struct Bed {
    proxy: Option<Proxy>,
    pub(crate) origin: Origin,
    config: Arc<Mutex<Config>>,
    /// Lines for the operator.
    said: Arc<Mutex<Vec<String>>>,
}

/// What `said` is written to.
type Said = Arc<Mutex<Vec<String>>>;

impl Bed {
    /// Before an origin that answers each request with `content`, and may be stored.
    pub(crate) fn new(modules: Vec<ModuleTable>) -> Self {
        Self::before(
            Origin::new(|_| response("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", "content")),
            modules,
        )
    }

    /// Before this origin.
    pub(crate) fn before(origin: Origin, modules: Vec<ModuleTable>) -> Self {
        Self::try_before(origin, modules, 1).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same with so many workers, if it starts.
    pub(crate) fn try_before(
        origin: Origin,
        modules: Vec<ModuleTable>,
        workers: u16,
    ) -> Result<Self, String> {
        let config = Config {
            workers,
            ..Config::default()
        };
        Self::try_with(origin, modules, config)
    }

    /// The same with what else this says, if it starts.
    pub(crate) fn try_with(
        origin: Origin,
        modules: Vec<ModuleTable>,
        config: Config,
    ) -> Result<Self, String> {
        let mut config = Config {
            listeners: vec![Listener {
                address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
                mode: Mode::Gateway.into(),
                name: None,
                tls: None,
                http2: None,
                proxy_protocol: Vec::new(),
            }],
            routes: vec![Route {
                next_hops: vec![
                    format!("http://{}", origin.address())
                        .parse()
                        .expect("a URL"),
                ],
                ..Route::default()
            }],
            modules,
            ..config
        };
        config.admin.address = AdminAddress::Off;
        config.log.access = LogTarget::Off;
        config.disk.enabled = false;
        config.access.allow_destinations = vec!["127.0.0.0/8".parse::<Cidr>().expect("a network")];
        config.validate().map_err(|error| error.to_string())?;
        let current = Arc::new(Mutex::new(config.clone()));
        let reloaded = Arc::clone(&current);
        let said = Said::default();
        let lines = Arc::clone(&said);
        let options = Options {
            reload: Box::new(move || Ok(reloaded.lock().expect("no panic").clone())),
            has_config_file: true,
            describe: Box::new(|_| String::new()),
            clock: Clock::system(),
            files: Arc::new(SystemFiles),
            say: Arc::new(move |line| lines.lock().expect("no panic").push(line.to_owned())),
            give_back_memory: || {},
            moves_content: true,
            hooks: Hooks::default(),
            module_kinds: vec![weir_filters::kind()],
        };
        let proxy = Proxy::start(config, options).map_err(|error| error.to_string())?;
        Ok(Self {
            proxy: Some(proxy),
            origin,
            config: current,
            said,
        })
    }

    fn proxy(&self) -> &Proxy {
        self.proxy.as_ref().expect("it runs")
    }

    /// A new client.
    pub(crate) fn client(&self) -> Client {
        Client::connect(self.proxy().control().listeners()[0].address)
    }

    /// The response to a request of a new client.
    pub(crate) fn ask(&self, request: &str) -> Message {
        self.client().ask(request)
    }

    /// The response to a GET.
    pub(crate) fn get(&self, path: &str) -> Message {
        self.ask(&get(path, ""))
    }

    /// What an operator sees of the first module.
    pub(crate) fn report(&self) -> ModuleReport {
        let reports = self.proxy().control().modules();
        reports.into_iter().next().expect("a module")
    }

    /// What the first module counts under this name.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        self.report().metrics.get(name).copied().unwrap_or(0)
    }

    /// Waits until it has counted so far.
    pub(crate) fn wait_for_metric(&self, name: &str, expected: u64) {
        wait_for(|| self.metric(name) >= expected, name);
    }

    /// Changes the modules of the running proxy.
    pub(crate) fn reload(
        &self,
        change: impl FnOnce(&mut Vec<ModuleTable>),
    ) -> Result<String, String> {
        change(&mut self.config.lock().expect("no panic").modules);
        let reloaded = self.proxy().control().reload();
        reloaded.map_err(|failure| failure.to_string())
    }

    /// Lines for the operator so far.
    pub(crate) fn said(&self) -> String {
        self.said.lock().expect("no panic").join("\n")
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let panics = self.proxy().control().snapshot().get(Metric::Panics);
            assert_eq!(panics, 0, "something panicked: {}", self.said());
        }
        self.proxy = None;
    }
}

/// Waits until something holds.
pub(crate) fn wait_for(mut holds: impl FnMut() -> bool, what: &str) {
    let until = Instant::now() + crate::http::PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "waited too long for {what}");
        std::thread::yield_now();
    }
}

/// A GET with these field lines.
pub(crate) fn get(path: &str, fields: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n")
}

/// A POST with this content.
pub(crate) fn post(path: &str, fields: &str, content: &str) -> String {
    let length = content.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: a.example\r\nContent-Length: {length}\r\n{fields}\r\n{content}"
    )
}

/// The table of a filter with more options. A busy machine must not end it: its deadline is long.
pub(crate) fn filter(file: &Path, options: &[(&str, ModuleOption)]) -> ModuleTable {
    let options = options
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    let mut options: BTreeMap<_, _> = options.collect();
    options.insert("file".to_owned(), text(&file.display().to_string()));
    let table = "name = 'filter'\nkind = 'wasm'\ndeadline = '10s'\nwait = '30s'";
    let mut table: ModuleTable = toml::from_str(table).expect("a table");
    table.options = options;
    table
}

pub(crate) fn text(text: &str) -> ModuleOption {
    ModuleOption::Text(text.to_owned())
}

/// A filter that `cargo xtask filters` builds, if it is not up to date.
pub(crate) fn built(name: &str) -> PathBuf {
    static PRINTED: OnceLock<String> = OnceLock::new();
    let printed = PRINTED.get_or_init(|| build("rust-go"));
    let mut files = printed.lines().map(PathBuf::from);
    let file = files.find(|file| file.file_stem().is_some_and(|stem| stem == name));
    file.unwrap_or_else(|| panic!("there is no filter `{name}` in:\n{printed}"))
}

/// The paths of filters that the chore builds, one a line.
pub(crate) fn build(which: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--locked", "--package", "xtask", "--"]);
    command.args(["filters", which]).current_dir(root);
    let output = command.output().expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "the filters are not built: {errors}"
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
