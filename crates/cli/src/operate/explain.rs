//! `weir explain`: what a running proxy would do with a request, why, and what it has stored.

use super::client::Method;
use super::find::{self, AdminFlags};
use super::stored::push_encoded;
use super::{ask, refused, reply};
use crate::messages::{Failure, give, tell};
use std::net::IpAddr;

/// The flags of `weir explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainFlags {
    #[arg(
        value_name = "URL",
        help = "The URL of the request, such as http://www.example.com/page"
    )]
    url: String,

    /// A field of the request, such as "Cache-Control: no-cache"; several times for several
    #[arg(long = "field", value_name = "NAME: VALUE")]
    fields: Vec<String>,

    /// The method of the request
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    method: String,

    /// The address of the client that sends it
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    client: IpAddr,

    /// The mode of the listener that receives it, where there are both
    #[arg(long, value_name = "MODE", value_parser = ["forward", "gateway"])]
    mode: Option<String>,

    /// The listener, as `listener[].name` or `listener[].address` has it; the first one of the mode
    /// without it
    #[arg(long, value_name = "ADDR")]
    listener: Option<String>,

    /// Have the response stored first, as a GET of a client without fields would; if it is not
    /// stored, its status and the reason are printed (with --json to stderr)
    #[arg(long)]
    fetch: bool,

    /// Print it as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    admin: AdminFlags,
}

/// Prints what would become of a request.
///
/// # Errors
///
/// A URL or field that no request can have (exit 2); no proxy, or with `--fetch` a next hop that
/// gave no response (exit 3).
pub(crate) fn explain(flags: &ExplainFlags) -> Result<(), Failure> {
    let endpoint = find::endpoint(&flags.admin)?;
    let url = flags.url.escape_debug();
    let mut mode = String::new();
    if let Some(word) = &flags.mode {
        mode = format!("mode={word}&");
    }
    let push_url = |path: &mut String| {
        path.push_str("url=");
        push_encoded(path, &flags.url);
    };
    let mut fetched = Ok(());
    if flags.fetch {
        let mut path = format!("/stored/fetch?{mode}");
        push_url(&mut path);
        let what = format!("cannot fetch `{url}`");
        let reply = reply(&endpoint, (Method::Post, &path), b"", &what)?;
        match reply.status {
            200 => {}
            // it came, and the explanation says more
            NOT_STORED if flags.json => tell(&format!("fetched: {}", reply.body.trim_end())),
            NOT_STORED => give(&format!("fetched: {}\n\n", reply.body.trim_end()))?,
            // why it did not come may be seen of the explanation
            FORBIDDEN | UNREACHABLE | TIMED_OUT => {
                fetched = Err(refused(&endpoint, &reply, &what));
            }
            _ => return Err(refused(&endpoint, &reply, &what)),
        }
    }
    let mut path = format!("/explain?{mode}");
    if flags.json {
        path.push_str("format=json&");
    }
    let mut parameter = |name: &str, value: &str| {
        path.push_str(name);
        path.push('=');
        push_encoded(&mut path, value);
        path.push('&');
    };
    parameter("method", &flags.method);
    parameter("client", &flags.client.to_string());
    if let Some(listener) = &flags.listener {
        parameter("listener", listener);
    }
    for field in &flags.fields {
        parameter("field", field);
    }
    push_url(&mut path);
    let what = format!("cannot explain `{url}`");
    give(&ask(&endpoint, (Method::Get, &path), "", &what)?.body)?;
    fetched
}

/// What the admin interface answers for a response that came and is not stored.
const NOT_STORED: u16 = 422;
/// For a destination that rules forbid.
const FORBIDDEN: u16 = 403;
/// For a next hop that gave no whole response.
const UNREACHABLE: u16 = 502;
/// For one that gave none in time.
const TIMED_OUT: u16 = 504;
