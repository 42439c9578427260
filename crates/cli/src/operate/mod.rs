//! `weir purge`, `weir reload`, `weir modules`, `weir cluster`, `weir drain`, `weir route`, `weir
//! explain`, `weir stored` and `weir top`: commands to a proxy that runs, over its admin interface.
//!
//! Where that is, and what token it requires, is found in this order: what the flags say; the
//! config file that `--config` names; the one proxy that runs for this user on this machine, which
//! wrote that down ([`running`]).

mod client;
mod cluster;
mod explain;
mod find;
mod modules;
mod no_reply;
mod running;
mod stored;
mod top;

use crate::messages::{Exit, Failure, give, tell};
use client::{Method, Waits};
use weir_extend::LACKS_RULE;
use weir_proxy::admin::{BOTH_MODES, MORE_ON_DISK};

pub(crate) use client::Reply;
pub(crate) use cluster::{ClusterFlags, DrainFlags, RouteFlags, cluster, drain, route};
pub(crate) use explain::{ExplainFlags, explain};
pub(crate) use find::{
    AdminEndpoint, AdminFlags, admin_of_process, endpoint, reachable, stores_of_config,
};
pub(crate) use modules::{ModulesFlags, modules};
pub(crate) use running::{RunFile, Running};
pub(crate) use stored::{StoredFlags, push_encoded, stored};
pub(crate) use top::{TopFlags, top};

/// The flags of `weir purge`.
#[derive(Debug, clap::Args)]
pub(crate) struct PurgeFlags {
    #[arg(
        value_name = "URL",
        help = "URLs whose stored responses are dropped, such as http://www.example.com/page"
    )]
    urls: Vec<String>,

    /// Forget everything that is stored
    #[arg(long)]
    all: bool,

    /// At this node alone, and not at all nodes of its cluster
    #[arg(long)]
    this_node: bool,

    #[command(flatten)]
    admin: AdminFlags,
}

/// The flags of `weir reload`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReloadFlags {
    #[command(flatten)]
    admin: AdminFlags,
}

/// Purges one URL after the other, or everything; says how many stored responses each was, and in a
/// cluster what each node has done.
///
/// # Errors
///
/// A URL that cannot be purged or a token that is wrong (exit 2); no proxy, a disk that failed, or
/// a node of the cluster that is not known to have purged it (exit 3). What was before it in the
/// list is purged, and was said.
pub(crate) fn purge(flags: &PurgeFlags) -> Result<(), Failure> {
    if flags.urls.is_empty() && !flags.all {
        return Err(Failure::usage("cannot purge", "no URL is named").hint("name URLs, such as `weir purge http://www.example.com/page`, or `--all` for everything"));
    }
    if flags.all && !flags.urls.is_empty() {
        return Err(
            Failure::usage("cannot purge", "`--all` and a URL are two different purges")
                .hint("leave out `--all`, or the URLs"),
        );
    }
    let endpoint = find::endpoint(&flags.admin)?;
    if flags.all {
        let what = "cannot purge everything";
        let path = purge_path("/purge-all", flags);
        let reply = purge_reply(&endpoint, &path, "", what)?;
        give(&format!("{}\n", reply.body.trim_end()))?;
        return check_purged(&reply, what);
    }
    let mut is_one_not_stored = false;
    for url in &flags.urls {
        let what = format!("cannot purge `{url}`");
        let path = purge_path("/purge", flags);
        let reply = purge_reply(&endpoint, &path, url, &what)?;
        let (purged, nodes) = reply.body.split_once('\n').unwrap_or((&reply.body, ""));
        if url.contains('*') && purged == "purged 0" {
            return Err(Failure::usage(
                what,
                "nothing is stored for a URL with that `*`, and there are no wildcards",
            )
            .hint("name each URL, or `--all` for everything"));
        }
        give(&format!("{purged} {url}\n{nodes}"))?;
        check_purged(&reply, &what)?;
        is_one_not_stored |= purged == "purged 0" && !nodes.contains(MORE_ON_DISK);
    }
    if is_one_not_stored {
        tell(&NOT_STORED_HINT);
    }
    Ok(())
}

/// What is said of a URL for which nothing was stored.
const NOT_STORED_HINT: &str = "hint: nothing was stored for a URL with `purged 0`; scheme, host, port, path and query have to be those \
     that clients request, and `weir explain URL` shows what is stored for one";

fn purge_path(path: &str, flags: &PurgeFlags) -> String {
    let query = if flags.this_node { "?this-node" } else { "" };
    format!("{path}{query}")
}

/// The reply to a purge that was carried out, at some nodes at least.
fn purge_reply(
    endpoint: &AdminEndpoint,
    path: &str,
    body: &str,
    what: &str,
) -> Result<Reply, Failure> {
    let reply = reply(endpoint, (Method::Post, path), body.as_bytes(), what)?;
    match reply.status {
        200 | NOT_EVERYWHERE => Ok(reply),
        _ => Err(refused(endpoint, &reply, what)),
    }
}

/// The status of an answer that names nodes which are not known to have purged it.
const NOT_EVERYWHERE: u16 = 502;

fn check_purged(reply: &Reply, what: &str) -> Result<(), Failure> {
    if reply.status != NOT_EVERYWHERE {
        return Ok(());
    }
    Err(Failure::outside(
        format!("{what} at all nodes of the cluster"),
        "nodes may still have it, as is said above",
    )
    .hint("`weir cluster` shows which nodes answer; a purge may be repeated"))
}

/// Makes the proxy read its config again; says what that changed.
///
/// # Errors
///
/// A config that is refused, a proxy without a config file, or a token that is wrong (exit 2); no
/// proxy, or an address or a file that the config names and that cannot be used (exit 3).
pub(crate) fn reload(flags: &ReloadFlags) -> Result<(), Failure> {
    let endpoint = find::endpoint(&flags.admin)?;
    let what = "cannot reload the config";
    let reply = post_for_reply(&endpoint, "/reload", what)?;
    match reply.status {
        200 => give(&reply.body),
        500 => Err(Failure::outside(what, reply.body.trim())),
        _ => Err(refused(&endpoint, &reply, what)),
    }
}

fn post(endpoint: &AdminEndpoint, path: &str, body: &str, what: &str) -> Result<Reply, Failure> {
    ask(endpoint, (Method::Post, path), body, what)
}

/// The reply to a POST, whatever it says.
pub(crate) fn post_for_reply(
    endpoint: &AdminEndpoint,
    path: &str,
    what: &str,
) -> Result<Reply, Failure> {
    reply(endpoint, (Method::Post, path), b"", what)
}

fn ask(
    endpoint: &AdminEndpoint,
    request: (Method, &str),
    body: &str,
    what: &str,
) -> Result<Reply, Failure> {
    send(endpoint, request, body.as_bytes(), what)
}

fn send(
    endpoint: &AdminEndpoint,
    request: (Method, &str),
    body: &[u8],
    what: &str,
) -> Result<Reply, Failure> {
    let reply = reply(endpoint, request, body, what)?;
    if reply.status == 200 {
        return Ok(reply);
    }
    Err(refused(endpoint, &reply, what))
}

/// The reply, whatever it says.
fn reply(
    endpoint: &AdminEndpoint,
    request: (Method, &str),
    body: &[u8],
    what: &str,
) -> Result<Reply, Failure> {
    let waits = Waits::of(endpoint.answer_max);
    let reply = client::send(
        &endpoint.address,
        request,
        body,
        (endpoint.token.as_ref(), waits),
    );
    reply.map_err(|no_reply| no_reply.failure(what, &endpoint.address))
}

/// Whose fault a refusal is: 400, 403, 404, 409, 413 and 422 are about the request, 401 about the
/// token.
pub(crate) fn refused(endpoint: &AdminEndpoint, reply: &Reply, what: &str) -> Failure {
    let said = reply.body.trim();
    let said = said.strip_prefix("error: ").unwrap_or(said);
    let said = said.strip_prefix("cannot purge: ").unwrap_or(said);
    let failure = |exit, cause: String, hint: Option<&str>| Failure {
        exit,
        what: what.to_owned(),
        cause,
        hint: hint.map(str::to_owned),
    };
    match (reply.status, &endpoint.token) {
        (401, None) => failure(
            Exit::BadUsage,
            format!("the proxy at {} asks for a token", endpoint.address),
            Some(
                "name the file that holds it with `--token-file`, or the proxy's config file with `--config`",
            ),
        ),
        (401, Some(_)) => failure(
            Exit::BadUsage,
            format!("the proxy at {} has another token", endpoint.address),
            Some(
                "is `--token-file` that of this proxy? It reads its own at start and on reload (SIGHUP)",
            ),
        ),
        // what the admin interface advises is for those who write its URLs
        (400, _) if said.starts_with(BOTH_MODES) => failure(
            Exit::BadUsage,
            BOTH_MODES.to_owned(),
            Some("say which, by `--mode forward` or `--mode gateway`"),
        ),
        (403, _) if said.starts_with(LACKS_RULE) => failure(
            Exit::BadUsage,
            LACKS_RULE.to_owned(),
            Some("`--lacking-rule` reads it all the same; it may be for one user"),
        ),
        (400 | 403 | 404 | 409 | 413 | 422, _) => failure(Exit::BadUsage, said.to_owned(), None),
        (status, _) => failure(
            Exit::OutsideFailed,
            format!(
                "the proxy at {} answered {status}: {said}",
                endpoint.address
            ),
            None,
        ),
    }
}
