//! `weir modules`: which modules a running proxy has, and whether it calls them.

use super::client::Method;
use super::find::{self, AdminFlags};
use super::{ask, post};
use crate::messages::{Failure, give};
use weir_proxy::config::Module;

/// The flags of `weir modules`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ModulesFlags {
    #[command(subcommand)]
    action: Option<ModuleAction>,

    /// List them as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    admin: AdminFlags,
}

/// What is done to modules.
#[derive(Debug, clap::Subcommand)]
enum ModuleAction {
    /// Stop calling modules for new requests, also after a reload
    ///
    /// A module that blocks requests does not block them while it is disabled. `weir modules
    /// enable` and a restart enable modules again.
    Disable(ModuleNames),
    /// Call modules again that were disabled
    Enable(ModuleNames),
}

#[derive(Debug, clap::Args)]
struct ModuleNames {
    /// Names of modules, as the config file has them
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,

    #[command(flatten)]
    admin: AdminFlags,
}

/// Lists the modules of a running proxy, or disables or enables some.
///
/// # Errors
///
/// A name that no module has or a token that is wrong (exit 2); no proxy (exit 3). Modules before
/// it in the list are changed, and were said.
pub(crate) fn modules(flags: &ModulesFlags) -> Result<(), Failure> {
    match &flags.action {
        None => list(flags),
        Some(ModuleAction::Disable(names)) => change(names, "disable"),
        Some(ModuleAction::Enable(names)) => change(names, "enable"),
    }
}

fn list(flags: &ModulesFlags) -> Result<(), Failure> {
    let endpoint = find::endpoint(&flags.admin)?;
    let path = if flags.json {
        "/modules?format=json"
    } else {
        "/modules"
    };
    let what = "cannot list the modules";
    give(&ask(&endpoint, (Method::Get, path), "", what)?.body)
}

fn change(names: &ModuleNames, action: &str) -> Result<(), Failure> {
    let endpoint = find::endpoint(&names.admin)?;
    for name in &names.names {
        let what = format!("cannot {action} `{name}`");
        // it becomes a part of a path
        if let Err(invalid) = Module::check_name("NAME", name) {
            return Err(Failure::usage(what, invalid).hint("`weir modules` lists the names"));
        }
        let path = format!("/modules/{name}/{action}");
        give(&post(&endpoint, &path, "", &what)?.body)?;
    }
    Ok(())
}
