//! Which proxy is meant, where its admin interface is, and the token for it.

use super::running::{self, Running};
use crate::effective;
use crate::messages::Failure;
use crate::serve::flags::ServeFlags;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_proxy::admin::Token;
use weir_proxy::config::{AdminAddress, Span};

/// Flags that say which proxy is meant; without them it is the one that runs.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct AdminFlags {
    /// Address of its admin interface, such as 127.0.0.1:3129 or unix:/run/weir/admin.sock
    #[arg(long, value_name = "ADDR")]
    admin: Option<AdminAddress>,

    /// Config file that it was started with
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// File that holds the token, instead of the one the proxy was configured with
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// How long to wait for its whole answer; without it 10 s for `weir top`, and for other
    /// commands 1 min since its last word
    #[arg(long, value_name = "TIME")]
    timeout: Option<Span>,
}

impl AdminFlags {
    /// The proxy at an address, or that of a config file, or the one that runs.
    pub(crate) const fn new(
        admin: Option<AdminAddress>,
        config: Option<PathBuf>,
        token_file: Option<PathBuf>,
    ) -> Self {
        Self {
            admin,
            config,
            token_file,
            timeout: None,
        }
    }
}

/// Where the admin interface of a process of this user is, as a client on this machine connects to
/// it; `None` if no proxy with such an interface is that process.
pub(crate) fn admin_of_process(process: &str) -> Option<AdminAddress> {
    let all = running::all().unwrap_or_default().into_iter();
    let mut same = all.filter(|it| it.pid.to_string() == process);
    same.next().map(|it| reachable_admin(it.admin))
}

/// The proxies of this user that were started with a config file, and have a store on disk: the
/// process of each, and its directories.
pub(crate) fn stores_of_config(config: &Path) -> Vec<(u32, Vec<PathBuf>)> {
    let config = std::fs::canonicalize(config).ok();
    let mut all = running::all().unwrap_or_default();
    all.retain(|it| it.config.is_some() && it.config == config && !it.store.is_empty());
    all.into_iter().map(|it| (it.pid, it.store)).collect()
}

/// An admin interface, and what opens it.
#[derive(Debug)]
pub(crate) struct AdminEndpoint {
    /// Where it is.
    pub(crate) address: AdminAddress,
    /// The value that it gets.
    pub(crate) token: Option<Token>,
    /// How long an answer may take in all; `None` if it may be silent for a while at a time.
    pub(crate) answer_max: Option<Duration>,
}

/// Finds the admin interface that the flags mean.
///
/// # Errors
///
/// There is none, there are several, or the token cannot be read.
pub(crate) fn endpoint(flags: &AdminFlags) -> Result<AdminEndpoint, Failure> {
    let place = match (&flags.admin, &flags.config) {
        (Some(address), config) => named(address, config.as_deref())?,
        (None, Some(config)) => configured(config)?,
        (None, None) => only_running()?,
    };
    let token_file = flags.token_file.clone().or(place.token_file);
    let token = token_file.map(|path| {
        Token::read(&path).map_err(|error| {
            Failure::usage(
                format!("cannot use the admin token in `{}`", path.display()),
                error,
            )
            .hint("run this as the user that can read it, or name another file with `--token-file`")
        })
    });
    Ok(AdminEndpoint {
        address: reachable_admin(place.address),
        token: token.transpose()?,
        answer_max: flags.timeout.map(|timeout| timeout.as_duration()),
    })
}

/// Where the interface is, and in what file its token.
struct Place {
    address: AdminAddress,
    token_file: Option<PathBuf>,
}

impl From<Running> for Place {
    fn from(running: Running) -> Self {
        Self {
            address: running.admin,
            token_file: running.token_file,
        }
    }
}

fn named(address: &AdminAddress, config: Option<&Path>) -> Result<Place, Failure> {
    if *address == AdminAddress::Off {
        return Err(off("`--admin off` names no address"));
    }
    let token_file = match config {
        Some(config) => configured(config)?.token_file,
        // what runs is looked at for its token alone: that it cannot be is no failure
        None => {
            let mut all = running::all().unwrap_or_default().into_iter();
            let same = all
                .find(|it| reachable_admin(it.admin.clone()) == reachable_admin(address.clone()));
            same.and_then(|it| it.token_file)
        }
    };
    let address = address.clone();
    Ok(Place {
        address,
        token_file,
    })
}

/// The proxy that was started with this file, where its flags and port 0 count; else what the file
/// says.
fn configured(path: &Path) -> Result<Place, Failure> {
    let started_with = std::fs::canonicalize(path).ok();
    let mut same: Vec<Running> = running::all().unwrap_or_default();
    same.retain(|it| it.config.is_some() && it.config == started_with);
    if same.len() > 1 {
        return Err(several(&same));
    }
    if let Some(one) = same.pop() {
        return Ok(one.into());
    }
    let config = effective::load(&ServeFlags {
        config: Some(path.to_owned()),
        ..ServeFlags::default()
    })?;
    let address = config.admin.address;
    if address == AdminAddress::Off {
        return Err(off("the config file says `admin.address = \"off\"`"));
    }
    if address.socket().is_some_and(|socket| socket.port() == 0) {
        return Err(Failure::outside("cannot find the admin interface", format!(
                "no proxy that was started with `{}` runs for this user, and the file leaves the port to the system",
                path.display()
            )).hint("name the address with `--admin ADDR`"));
    }
    Ok(Place {
        address,
        token_file: config.admin.token_file.path().map(Path::to_owned),
    })
}

fn only_running() -> Result<Place, Failure> {
    let mut all = running::all().map_err(|error| nothing_runs(error.to_string()))?;
    match (all.pop(), all.is_empty()) {
        (Some(one), true) => Ok(one.into()),
        (Some(last), false) => {
            all.push(last);
            Err(several(&all))
        }
        (None, _) => Err(nothing_runs(format!(
            "no proxy with an admin interface runs for this user (`{}` has none)",
            running::folder().display()
        ))),
    }
}

fn nothing_runs(cause: String) -> Failure {
    Failure::outside("cannot find a proxy", cause)
        .hint("start one with `weir serve`, or say where it is: `--admin ADDR`, `--config FILE`")
}

fn several(all: &[Running]) -> Failure {
    let each = all
        .iter()
        .map(|it| format!("{} (process {})", it.admin, it.pid));
    Failure::usage(
        "cannot tell which proxy is meant",
        format!(
            "{} run here: {}",
            all.len(),
            each.collect::<Vec<_>>().join(", ")
        ),
    )
    .hint("choose one with `--admin ADDR`")
}

fn off(cause: &str) -> Failure {
    Failure::usage("cannot reach the admin interface", cause)
        .hint("SIGHUP reloads without it; purging needs one")
}

/// The interface as a client on this machine connects to it.
fn reachable_admin(address: AdminAddress) -> AdminAddress {
    match address {
        AdminAddress::At(socket) => AdminAddress::At(reachable(socket)),
        other => other,
    }
}

/// An address that a client on this machine can use.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, address.port()).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, address.port()).into(),
        _ => address,
    }
}
