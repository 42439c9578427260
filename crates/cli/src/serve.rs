//! `weir serve`: start, say where, wait.

mod clients;
mod fitted;
pub(crate) mod flags;
pub(crate) mod icap;
pub(crate) mod kinds;
mod process;
mod record;
mod trial_command;

pub(crate) use record::RecordFlags;

use crate::allocator;
use crate::check::describe_cache;
use crate::effective;
use crate::messages::{Failure, give, tell};
use crate::operate::{RunFile, Running, reachable};
use crate::serve::flags::ServeFlags;
use record::Recording;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use weir_disk::DirectoryConfig;
use weir_disk::files::SystemFiles;
use weir_measure::live::{LinkRow, ListenerCertificate};
use weir_proxy::clock::Clock;
use weir_proxy::config::{AdminAddress, ByteSize, Config, Listener};
use weir_proxy::{DiskTier, Hooks, Options, Proxy, Stopped};

/// Starts the proxy and returns when it has drained; or prints the effective config.
///
/// # Errors
///
/// A bad config (exit 2), or an address that cannot be had (exit 3).
pub(crate) fn serve(flags: ServeFlags) -> Result<(), Failure> {
    if flags.print_config {
        return give(&config_text(&effective::load(&flags)?));
    }
    // before sizes are judged: the limit is raised as far as it may be
    let open_files_max = weir_proxy::raise_descriptor_limit();
    // before a file is written
    weir_proxy::ignore_file_size_signal().map_err(|error| {
        Failure::outside("cannot ignore the signal of the limit of file sizes", error)
    })?;
    let config = effective::load_for_this_machine(&flags)?;
    let recording = flags.record.open()?;
    let path = flags.config.clone();
    let files = Arc::new(RuntimeFile::default());
    let noted = Arc::clone(&files);
    let given = flags.clone();
    let reload = move || {
        let config =
            effective::load_for_this_machine(&flags).map_err(|failure| failure.to_string())?;
        noted.reloaded(&config);
        tell_of_next_hops(&config, &flags);
        Ok(config)
    };
    let run_file = config.clone();
    let reload: (Reload, bool) = (Box::new(reload), path.is_some());
    let ended = run_until_signalled(config, reload, recording, &|started| {
        // first: after the line to try, a purge may come at once
        files.started(&run_file, started, path.as_deref());
        let text = announcement(&run_file, started);
        tell(&fitted::to_terminal(text.trim_end()));
        tell_of_next_hops(&run_file, &given);
    });
    ended.map_err(|failure| with_limit(failure, open_files_max))
}

/// Warns of next hops whose names do not resolve, on a thread of its own: neither a start nor a
/// reload waits for name servers.
fn tell_of_next_hops(config: &Config, flags: &ServeFlags) {
    let (config, flags) = (config.clone(), flags.clone());
    let warn = move || {
        let warnings = effective::next_hop_warnings(&config, &flags);
        warnings.iter().for_each(tell);
    };
    // without a thread there is no warning, and requests get 502 with the reason
    let thread = thread::Builder::new().name("weir-names".into());
    let _unwarned = thread.spawn(warn);
}

/// Out of open files at the start: says how many there may be, and what to do.
fn with_limit(mut failure: Failure, open_files_max: Option<u64>) -> Failure {
    let most = open_files_max.map_or_else(|| "few".to_owned(), |most| most.to_string());
    if failure.cause.contains("Too many open files") {
        failure.hint = Some(format!(
            "this process may have {most} open files: raise `ulimit -n`, or use fewer `--workers`"
        ));
    }
    failure
}

/// The file by which `weir purge` and `weir reload` find this process, while it runs.
#[derive(Default)]
struct RuntimeFile {
    written: Mutex<Option<(RunFile, Running)>>,
}

impl RuntimeFile {
    /// Without it they need the address as a flag: no reason not to serve.
    fn started(&self, config: &Config, started: &BoundAddresses, path: Option<&Path>) {
        if started.admin == AdminAddress::Off {
            return;
        }
        let running = Running {
            pid: std::process::id(),
            admin: started.admin.clone(),
            token_file: token_path(config),
            config: path.and_then(|path| std::fs::canonicalize(path).ok()),
            store: started.disk.directories.iter().map(whole_path).collect(),
        };
        match RunFile::write(&running) {
            Ok(run_file) => *self.lock() = Some((run_file, running)),
            Err(error) => tell(&format!(
                "note: `weir purge` and `weir reload` will need `--admin {}`: nothing tells them where this proxy is ({error})",
                started.admin
            )),
        }
    }

    /// The token may be in another file now.
    fn reloaded(&self, config: &Config) {
        if let Some((run_file, running)) = &mut *self.lock() {
            running.token_file = token_path(config);
            // what cannot be written stays as it was, and `--token-file` says better
            let _ = run_file.rewrite(running);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(RunFile, Running)>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a directory of the store is, for a reader in another folder.
fn whole_path(directory: &DirectoryConfig) -> PathBuf {
    let path = std::fs::canonicalize(&directory.path);
    path.unwrap_or_else(|_| directory.path.clone())
}

/// Whole, for a reader in another folder.
fn token_path(config: &Config) -> Option<PathBuf> {
    let path = config.admin.token_file.path()?;
    std::path::absolute(path).ok()
}

/// What is known once the sockets are bound: port 0 has become a number.
#[derive(Clone, Debug)]
pub(crate) struct BoundAddresses {
    /// In the order of the config.
    pub(crate) listeners: Vec<Listener>,
    /// As bound.
    pub(crate) admin: AdminAddress,
    /// Where stored responses are on disk.
    pub(crate) disk: DiskTier,
    /// Where requests are recorded, and how.
    pub(crate) recorded: Option<String>,
    /// The links, as they are now.
    pub(crate) links: Vec<LinkRow>,
    /// The certificates of listeners, as they are now.
    pub(crate) certificates: Vec<ListenerCertificate>,
}

type Reload = Box<dyn Fn() -> Result<Config, String> + Send + Sync>;

/// The one function that touches the proxy's entry points.
fn run_until_signalled(
    config: Config,
    (reload, has_config_file): (Reload, bool),
    recording: Option<Recording>,
    announce: &dyn Fn(&BoundAddresses),
) -> Result<(), Failure> {
    let options = Options {
        reload,
        has_config_file,
        describe: Box::new(config_text),
        clock: Clock::system(),
        files: Arc::new(SystemFiles),
        say: Arc::new(|line| {
            let kind = if line.starts_with("warning: ") {
                ""
            } else {
                "note: "
            };
            tell(&format!("{kind}{line}"));
        }),
        give_back_memory: allocator::give_back,
        moves_content: true,
        hooks: Hooks::default(),
        module_kinds: kinds::kinds(),
    };
    let (recorder, recorded) = recording.map(|it| (it.recorder, it.said)).unzip();
    let proxy = match recorder {
        Some(recorder) => Proxy::start_recorded(config, options, recorder),
        None => Proxy::start(config, options),
    };
    let proxy = proxy.map_err(|error| {
        Failure::outside(format!("cannot {}", error.what), &error.cause).hint_if(error.hint)
    })?;
    let ready = |proxy: &Proxy| {
        announce(&BoundAddresses {
            listeners: proxy.listeners(),
            admin: proxy.admin().clone(),
            disk: proxy.disk().clone(),
            recorded: recorded.clone(),
            links: proxy.control().links(),
            certificates: proxy.control().listener_certificates(),
        });
        if let Some(problem) = proxy.resolver_problem() {
            tell(&format!(
                "note: names cannot be resolved ({problem}); addresses and /etc/hosts still work, and [dns] servers can name a resolver"
            ));
        }
    };
    match weir_proxy::run_until_signalled(proxy, &ready, &|line| tell(&line.trim_end())) {
        Ok(Stopped::Drained) => Ok(()),
        Ok(Stopped::Cut) => {
            tell(
                &"note: the drain limit passed, or a second signal came: what was still under way was cut",
            );
            Ok(())
        }
        Err(error) => Err(Failure::outside("cannot take signals", &error)),
    }
}

/// The config in its normal form: TOML with every setting.
fn config_text(config: &Config) -> String {
    toml::to_string(config).expect("a config is tables of strings, integers and lists")
}

/// Where everything is, and one line to try.
fn announcement(config: &Config, started: &BoundAddresses) -> String {
    let mut lines = format!("weir {} is ready\n", env!("CARGO_PKG_VERSION"));
    for listener in &started.listeners {
        let (mode, scheme) = (listener.mode, scheme_of(listener));
        let balancers: Vec<String> = listener
            .proxy_protocol
            .iter()
            .map(ToString::to_string)
            .collect();
        let behind = match balancers.is_empty() {
            true => String::new(),
            false => format!(" (PROXY from {})", balancers.join(", ")),
        };
        let address = listener.address;
        lines.push_str(&format!("  {mode:8} {scheme}://{address}{behind}\n"));
    }
    if let Some(clients) = clients::description(&config.access, &started.listeners) {
        lines.push_str(&format!("  clients  {clients}\n"));
    }
    match &started.admin {
        AdminAddress::Off => {}
        AdminAddress::At(address) => {
            let address = reachable(*address);
            lines.push_str(&format!(
                "  admin    http://{address} (a page to open in a browser)\n"
            ));
        }
        AdminAddress::Unix(_) => lines.push_str(&format!("  admin    {}\n", started.admin)),
    }
    let cache = describe_cache(config, !started.disk.directories.is_empty());
    lines.push_str(&format!("  cache    {cache}\n"));
    for directory in &started.disk.directories {
        let (size, path) = (ByteSize::from_bytes(directory.bytes), &directory.path);
        lines.push_str(&format!("  disk     {size} in {}\n", path.display()));
    }
    if started.disk.directories.is_empty() && started.disk.problem.is_none() {
        lines.push_str("  disk     off\n");
    }
    for link in &started.links {
        lines.push_str(&format!("  link     {}\n", weir_proxy::link_line(link)));
    }
    if !config.rules.is_empty() {
        lines.push_str(&format!("  rules    {}\n", config.rules.len()));
    }
    if let Some(recorded) = &started.recorded {
        lines.push_str(&format!("  record   {recorded}\n"));
    }
    lines.push_str(&trial_command::lines(config, started));
    if let Some(advice) = clients::advice(&config.access, &started.listeners) {
        lines.push_str(&format!("note: {advice}\n"));
    }
    if let Some(problem) = &started.disk.problem {
        lines.push_str(&format!(
            "note: nothing is kept on disk: {problem}; `--disk-dir PATH` says where it can be\n"
        ));
    }
    for crowded in weir_proxy::crowded_disks(config) {
        lines.push_str(&format!("note: {crowded}: it keeps less\n"));
    }
    if started.admin.is_public() {
        lines.push_str(&format!(
            "note: the admin interface on {} can be reached from other machines: they can read metrics and config, and \
             with the token purge, reload, and read what clients request (/top and /misses)\n",
            started.admin
        ));
    }
    lines
}

/// The scheme of URLs of a listener.
fn scheme_of(listener: &Listener) -> &'static str {
    match listener.tls {
        None => "http",
        Some(_) => "https",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(toml_text: &str, expected: &str) {
        let config: Config = toml::from_str(toml_text).unwrap();
        let started = BoundAddresses {
            listeners: config.listeners.clone(),
            admin: config.admin.address.clone(),
            disk: DiskTier {
                directories: vec![DirectoryConfig {
                    path: "/home/a/.cache/weir".into(),
                    bytes: 10 << 30,
                }],
                problem: None,
            },
            recorded: None,
            links: Vec::new(),
            certificates: Vec::new(),
        };
        let found = announcement(&config, &started);
        let rest = found.split_once('\n').unwrap().1;
        assert_eq!(rest, expected);
    }

    #[test]
    fn default_announcement_lists_addresses_cache_disk_and_a_trial_command() {
        check(
            "",
            "  forward  http://127.0.0.1:3128
  clients  127.0.0.0/8, ::1 (this machine alone)
  admin    http://127.0.0.1:3129 (a page to open in a browser)
  cache    256MiB in memory, s3-fifo, rfc9111, responses up to 25MiB, larger ones only on disk
  disk     10GiB in /home/a/.cache/weir
  try      curl -sD- -o /dev/null -x http://127.0.0.1:3128 http://example.com/
",
        );
    }

    #[test]
    fn listener_on_the_network_for_this_machine_alone_is_announced_with_what_to_do() {
        check(
            r#"
            [[listener]]
            address = "0.0.0.0:3128"
            "#,
            "  forward  http://0.0.0.0:3128
  clients  127.0.0.0/8, ::1 (this machine alone)
  admin    http://127.0.0.1:3129 (a page to open in a browser)
  cache    256MiB in memory, s3-fifo, rfc9111, responses up to 25MiB, larger ones only on disk
  disk     10GiB in /home/a/.cache/weir
  try      curl -sD- -o /dev/null -x http://127.0.0.1:3128 http://example.com/
note: 0.0.0.0:3128 can be reached from the network, but only this machine may use it; `--allow-client 192.168.1.0/24` serves that network, too (access.clients)
",
        );
    }

    #[test]
    fn gateway_trial_command_matches_a_route_and_a_public_admin_is_reported() {
        check(
            r#"
            admin.address = "0.0.0.0:3129"
            admin.token_file = "/etc/weir/token"
            cache.memory = "64MiB"
            [[listener]]
            address = "0.0.0.0:8080"
            mode = "gateway"
            [[route]]
            host = "*.example.com"
            path = "/static"
            next_hops = ["http://10.0.0.1"]
            "#,
            "  gateway  http://0.0.0.0:8080
  clients  all that reach the gateway
  admin    http://127.0.0.1:3129 (a page to open in a browser)
  cache    64MiB in memory, s3-fifo, rfc9111, responses up to 6553KiB, larger ones only on disk
  disk     10GiB in /home/a/.cache/weir
  try      curl -sD- -o /dev/null -H 'Host: www.example.com' http://127.0.0.1:8080/static
note: the admin interface on 0.0.0.0:3129 can be reached from other machines: they can read metrics and config, and with the token purge, reload, and read what clients request (/top and /misses)
",
        );
    }
}
