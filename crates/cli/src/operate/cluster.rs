//! `weir cluster`, `weir drain` and `weir route`: the nodes of a cluster, taking one out of it, and
//! where requests for a URL go.

use super::client::Method;
use super::find::{self, AdminFlags};
use super::stored::push_encoded;
use super::{ask, post};
use crate::messages::{Failure, give};

/// The flags of `weir cluster`.
#[derive(Debug, clap::Args)]
pub(crate) struct ClusterFlags {
    /// Print it as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    admin: AdminFlags,
}

/// The flags of `weir drain`.
#[derive(Debug, clap::Args)]
pub(crate) struct DrainFlags {
    /// Take the node back into its cluster
    #[arg(long)]
    end: bool,

    #[command(flatten)]
    admin: AdminFlags,
}

/// The flags of `weir route`.
#[derive(Debug, clap::Args)]
pub(crate) struct RouteFlags {
    #[arg(
        value_name = "URL",
        help = "The URL of the request, such as http://www.example.com/page"
    )]
    url: String,

    /// The mode of the listener that receives the request, where there are both
    #[arg(long, value_name = "MODE", value_parser = ["forward", "gateway"])]
    mode: Option<String>,

    /// Print it as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    admin: AdminFlags,
}

/// Prints the nodes of a cluster as the proxy that is asked knows them.
///
/// # Errors
///
/// A proxy without a cluster (exit 2); no proxy (exit 3).
pub(crate) fn cluster(flags: &ClusterFlags) -> Result<(), Failure> {
    let endpoint = find::endpoint(&flags.admin)?;
    let path = if flags.json {
        "/cluster?format=json"
    } else {
        "/cluster"
    };
    let what = "cannot list the nodes of the cluster";
    give(&ask(&endpoint, (Method::Get, path), "", what)?.body)
}

/// Takes a node out of its cluster, or back; prints what it is from now on.
///
/// # Errors
///
/// A proxy without a cluster or a token that is wrong (exit 2); no proxy (exit 3).
pub(crate) fn drain(flags: &DrainFlags) -> Result<(), Failure> {
    let endpoint = find::endpoint(&flags.admin)?;
    let (path, what) = if flags.end {
        ("/drain/end", "cannot end the drain")
    } else {
        ("/drain", "cannot drain")
    };
    give(&post(&endpoint, path, "", what)?.body)
}

/// Prints the nodes and next hops for a URL with their costs, and which one is chosen.
///
/// # Errors
///
/// A URL for which there is no route (exit 2); no proxy (exit 3).
pub(crate) fn route(flags: &RouteFlags) -> Result<(), Failure> {
    let mut path = String::from("/route?");
    if flags.json {
        path.push_str("format=json&");
    }
    if let Some(mode) = &flags.mode {
        path.push_str("mode=");
        path.push_str(mode);
        path.push('&');
    }
    path.push_str("url=");
    push_encoded(&mut path, &flags.url);
    let endpoint = find::endpoint(&flags.admin)?;
    let what = format!("cannot find the route of `{}`", flags.url.escape_debug());
    give(&ask(&endpoint, (Method::Get, &path), "", &what)?.body)
}
