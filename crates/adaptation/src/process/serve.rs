//! The process of a module, from within.

use super::announcement::Announcement;
use crate::client::served::Abilities;
use crate::server::{IcapServer, ListenAddress, ServerSettings};
use std::io::{self, Write as _};
use std::path::Path;
use weir_extend::{LoadError, Module};

/// By how much the priority of the process is lower than that of the proxy: requests come first.
const NICE: i32 = 10;

/// Is the process of a module for the proxy that started it: has the module made by `load`, says
/// how that went on the standard output, and serves it until the standard input ends.
///
/// # Errors
///
/// The module is not loaded, or the address cannot be had; the proxy was told.
pub fn run(
    address: &ListenAddress,
    load: impl FnOnce() -> Result<ServerSettings, LoadError>,
) -> Result<(), LoadError> {
    // without it, the system shares the processor evenly
    let _ = rustix::process::nice(NICE);
    match start(address, load) {
        Ok((server, abilities)) => {
            announce(&Announcement::Ready(abilities));
            wait_for_end(io::stdin());
            drop(server);
            remove_directory(address);
            Ok(())
        }
        Err(error) => {
            announce(&Announcement::Refused(error.clone()));
            Err(error)
        }
    }
}

fn start(
    address: &ListenAddress,
    load: impl FnOnce() -> Result<ServerSettings, LoadError>,
) -> Result<(IcapServer, Abilities), LoadError> {
    let settings = load()?;
    let [module] = settings.modules.as_slice() else {
        let count = settings.modules.len();
        return Err(LoadError::new(
            "",
            format!("a process has one module, not {count}"),
            "give it one",
        ));
    };
    let abilities = abilities(&*module.module);
    let server = IcapServer::start(address, settings).map_err(|error| {
        LoadError::new(
            "",
            format!("the process of the module cannot listen on {address}: {error}"),
            "let the variable TMPDIR name a directory with a short path, for one",
        )
    })?;
    Ok((server, abilities))
}

fn abilities(module: &dyn Module) -> Abilities {
    Abilities {
        hooks: module.hooks(),
        may_transform: module.may_transform(),
        may_transform_sent: module.may_transform_sent(),
        changes_stored: module.changes_stored(),
    }
}

fn announce(announcement: &Announcement) {
    let mut out = io::stdout().lock();
    // without a reader, the input has ended, too
    let _ = out
        .write_all(announcement.line().as_bytes())
        .and_then(|()| out.flush());
}

/// Reads until the proxy has closed its side, or has ended.
fn wait_for_end(mut input: impl io::Read) {
    let mut buffer = [0; 64];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// A proxy that was killed cannot do this.
fn remove_directory(address: &ListenAddress) {
    if let ListenAddress::Unix(socket) = address
        && let Some(directory) = socket.parent().filter(|it| *it != Path::new("/"))
    {
        // it is kept if there is anything in it
        let _ = std::fs::remove_dir(directory);
    }
}
