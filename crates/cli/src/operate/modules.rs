//! `weir modules`: which modules a running proxy has, and whether requests pass them.

use super::client::Method;
use super::find::{self, AdminFlags};
use super::{ask, post};
use crate::messages::{Failure, give};

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
    /// Have requests that begin from now on do without modules, also after a reload
    ///
    /// A module that keeps something out does not keep it out while it is disabled. The modules are
    /// enabled again by `weir modules enable`, and by a restart.
    Disable(ModuleNames),
    /// Have requests that begin from now on pass modules that were disabled
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
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || !name.bytes().all(is_plain) {
            return Err(Failure::usage(
                what,
                "names of modules are made of letters, digits, `-` and `_`",
            )
            .hint("`weir modules` lists them"));
        }
        let path = format!("/modules/{name}/{action}");
        give(&post(&endpoint, &path, "", &what)?.body)?;
    }
    Ok(())
}
