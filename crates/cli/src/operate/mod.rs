//! `weir purge` and `weir reload`: what an operator asks of a proxy that runs, over its admin
//! interface.
//!
//! Where that is, and what token it asks for, is found in this order: what the flags say; the
//! config file that `--config` names; the one proxy that runs for this user on this machine, which
//! wrote that down ([`running`]).

mod client;
mod find;
mod running;

use crate::messages::{Exit, Failure, give};
use client::Reply;
use find::Door;

pub(crate) use find::AdminFlags;
pub(crate) use running::{Announced, Running};

/// The flags of `weir purge`.
#[derive(Debug, clap::Args)]
pub(crate) struct PurgeFlags {
    #[allow(rustdoc::bare_urls, reason = "clap prints the text as it is")]
    /// URLs whose stored responses are to be forgotten, such as http://www.example.com/page
    #[arg(value_name = "URL")]
    urls: Vec<String>,

    /// Forget everything that is stored
    #[arg(long, conflicts_with = "urls")]
    all: bool,

    #[command(flatten)]
    admin: AdminFlags,
}

/// The flags of `weir reload`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReloadFlags {
    #[command(flatten)]
    admin: AdminFlags,
}

/// Purges one URL after the other, or everything; says how many stored responses each was.
///
/// # Errors
///
/// A URL that cannot be purged or a token that is wrong (exit 2); no proxy, or a disk that failed
/// (exit 3). What was before it in the list is purged, and was said.
pub(crate) fn purge(flags: &PurgeFlags) -> Result<(), Failure> {
    if flags.urls.is_empty() && !flags.all {
        return Err(Failure {
            exit: Exit::BadUsage,
            what: "cannot purge".to_owned(),
            cause: "no URL is named".to_owned(),
            hint: Some(
                "name URLs, such as `weir purge http://www.example.com/page`, or `--all` for everything"
                    .to_owned(),
            ),
        });
    }
    let door = find::door(&flags.admin)?;
    if flags.all {
        let what = "cannot purge everything";
        let reply = post(&door, "/purge-all", "", what)?;
        return give(&format!("{}\n", reply.body.trim_end()));
    }
    for url in &flags.urls {
        let what = format!("cannot purge `{url}`");
        let reply = post(&door, "/purge", url, &what)?;
        if url.contains('*') && reply.body.trim_end() == "purged 0" {
            return Err(Failure {
                exit: Exit::BadUsage,
                what,
                cause: "nothing is stored for a URL with that `*`, and there are no wildcards"
                    .to_owned(),
                hint: Some("name each URL, or `--all` for everything".to_owned()),
            });
        }
        give(&format!("{} {url}\n", reply.body.trim_end()))?;
    }
    Ok(())
}

/// Makes the proxy read its config again; says what that changed.
///
/// # Errors
///
/// A config that is refused or a token that is wrong (exit 2); no proxy (exit 3).
pub(crate) fn reload(flags: &ReloadFlags) -> Result<(), Failure> {
    let door = find::door(&flags.admin)?;
    let reply = post(&door, "/reload", "", "cannot reload the config")?;
    give(&reply.body)
}

fn post(door: &Door, path: &str, body: &str, what: &str) -> Result<Reply, Failure> {
    let reply = client::post(&door.address, path, body, door.token.as_ref());
    let reply = reply.map_err(|error| Failure {
        exit: Exit::OutsideFailed,
        what: format!("{what} at {}", door.address),
        cause: error.to_string(),
        hint: Some("does `weir serve` run there? `--admin` says where else".to_owned()),
    })?;
    if reply.status == 200 {
        return Ok(reply);
    }
    Err(refused(door, &reply, what))
}

/// Whose fault a refusal is: 400 and 422 are about what was asked for, 401 about the token.
fn refused(door: &Door, reply: &Reply, what: &str) -> Failure {
    let said = reply.body.trim();
    let said = said.strip_prefix("error: ").unwrap_or(said);
    let said = said.strip_prefix("cannot purge: ").unwrap_or(said);
    let failure = |exit, cause: String, hint: Option<&str>| Failure {
        exit,
        what: what.to_owned(),
        cause,
        hint: hint.map(str::to_owned),
    };
    match (reply.status, &door.token) {
        (401, None) => failure(
            Exit::BadUsage,
            format!("the proxy at {} asks for a token", door.address),
            Some(
                "name the file that holds it with `--token-file`, or the proxy's config file with `--config`",
            ),
        ),
        (401, Some(_)) => failure(
            Exit::BadUsage,
            format!("the proxy at {} has another token", door.address),
            Some(
                "is `--token-file` that of this proxy? It reads its own at start and on reload (SIGHUP)",
            ),
        ),
        (400 | 422, _) => failure(Exit::BadUsage, said.to_owned(), None),
        (status, _) => failure(
            Exit::OutsideFailed,
            format!("the proxy at {} answered {status}: {said}", door.address),
            None,
        ),
    }
}
