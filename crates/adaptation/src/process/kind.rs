//! A kind of module whose modules may run in processes of their own.

use super::announcement::Announcement;
use super::child::{Child, Launch};
use super::directory::PrivateDirectory;
use super::supervisor::{Plan, supervise};
use crate::client::address::Address;
use crate::client::connections::Connections;
use crate::client::served::{Abilities, ServedModule};
use crate::client::service::Service;
use std::fmt::Display;
use std::sync::Arc;
use weir_extend::{Hook, Hooks, LoadError, Module, ModuleKind, ModuleSettings, Options};
use weir_icap::ServiceUri;
use weir_net::clock::Clock;

/// Connections to one process: each request that is at the module takes one.
const CONNECTIONS_MAX: usize = 1000;

/// A kind of module, whose modules run in processes of their own where the operator wants that.
pub struct OwnProcess {
    kind: Arc<dyn ModuleKind>,
    launch: Arc<dyn Launch>,
}

impl OwnProcess {
    /// `kind`, whose processes `launch` starts.
    #[must_use]
    pub fn around(kind: Arc<dyn ModuleKind>, launch: Arc<dyn Launch>) -> Self {
        Self { kind, launch }
    }
}

impl std::fmt::Debug for OwnProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OwnProcess")
            .field(&self.kind.name())
            .finish()
    }
}

impl ModuleKind for OwnProcess {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn load(&self, options: Options) -> Result<Arc<dyn Module>, LoadError> {
        self.kind.load(options)
    }

    fn load_in_process(&self, options: Options) -> Result<Arc<dyn Module>, LoadError> {
        let plan = Plan {
            launch: Arc::clone(&self.launch),
            kind: self.kind.name(),
            options,
            directory: PrivateDirectory::create().map_err(cannot_start)?,
        };
        let mut child = plan.start().map_err(cannot_start)?;
        let abilities = abilities(&mut child)?;
        let settings = plan.options.settings();
        let service = service(settings, Address::Unix(plan.directory.socket()))?;
        let process = supervise(plan, child, abilities).map_err(cannot_start)?;
        let module = ServedModule::new(service, abilities, Box::new(process));
        Ok(Arc::new(module))
    }
}

/// What a process says of its module.
fn abilities(child: &mut Child) -> Result<Abilities, LoadError> {
    match child.announcement(None) {
        Ok(Announcement::Ready(abilities)) if has_called_hook(abilities.hooks) => Ok(abilities),
        Ok(Announcement::Ready(_)) => Err(LoadError::new(
            "",
            "a module of this kind has no hook that can be called in a process of its own",
            "leave `run` out",
        )),
        Ok(Announcement::Refused(error)) => Err(error),
        Err(reason) => Err(cannot_start(reason)),
    }
}

fn has_called_hook(hooks: Hooks) -> bool {
    let mut all = Hook::ALL.into_iter();
    all.any(|hook| hook != Hook::Done && hooks.contains(hook))
}

/// The service that the process is, once it has said what it can do.
fn service(settings: &ModuleSettings, address: Address) -> Result<Arc<Service>, LoadError> {
    let uri = ServiceUri::parse(format!("icap://localhost/{}", settings.name).as_bytes());
    let uri = uri.map_err(cannot_start)?;
    let clock = Clock::system();
    let connections = Connections::new(address, clock.clone(), CONNECTIONS_MAX, settings.wait);
    let service = Service::new(uri, connections, CONNECTIONS_MAX, clock).with_hooks();
    let service = Arc::new(service);
    let refreshed = Arc::clone(&service).refresh_blocking();
    refreshed.map_err(cannot_start)?.map_err(cannot_start)?;
    Ok(service)
}

fn cannot_start(reason: impl Display) -> LoadError {
    LoadError::new(
        "",
        format!("the process of the module does not start: {reason}"),
        "leave `run` out to call the module in the proxy",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::path::Path;
    use std::process::Command;

    struct Unloadable;

    impl ModuleKind for Unloadable {
        fn name(&self) -> &'static str {
            "test"
        }

        fn load(&self, _: Options) -> Result<Arc<dyn Module>, LoadError> {
            Err(LoadError::new("", "it is loaded in the proxy", ""))
        }
    }

    /// Runs a script in the place of the program.
    struct Script(&'static str);

    impl Launch for Script {
        fn command(&self, _: &str, _: &Options, _: &Path, _: &Path) -> io::Result<Command> {
            let mut command = Command::new("sh");
            command.args(["-c", self.0]);
            Ok(command)
        }

        fn log(&self, _: &str) {}
    }

    #[test]
    fn process_that_does_not_serve_its_module_refuses_it_with_what_is_known() {
        for (script, expected) in [
            ("echo broken >&2; exit 3", "exit status: 3): broken"),
            ("kill -9 $$", "signal: 9"),
            ("echo hello; exec sleep 60", "nothing of use"),
            ("exec head -c 100000 /dev/zero", "it ended"),
            (
                "printf 'refused\\tlists\\tno file\\tgive one\\n'; exec sleep 60",
                "lists: no file; give one",
            ),
            (
                "printf 'ready\\tdone\\tfalse\\tfalse\\tfalse\\n'; exec sleep 60",
                "no hook",
            ),
            // it says so, and does not listen
            (
                "printf 'ready\\trequest-sent\\tfalse\\tfalse\\tfalse\\n'; exec sleep 60",
                "cannot connect",
            ),
        ] {
            let kind = OwnProcess::around(Arc::new(Unloadable), Arc::new(Script(script)));
            let error = kind.load_in_process(Options::default());
            let error = error.err().expect("it is refused").to_string();
            assert!(error.contains(expected), "{script}: {error}");
        }
    }
}
