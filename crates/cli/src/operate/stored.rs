//! `weir stored`: what a running proxy has stored for a URL, and changes of it.

use super::client::{Method, Reply};
use super::find::{self, AdminFlags};
use super::send;
use crate::messages::{Failure, give, give_bytes};
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use weir_proxy::config::Span;

/// Most bytes of a response message that is injected: a head, and 16 MiB of content.
const MESSAGE_BYTES_MAX: u64 = 17 << 20;

/// The flags of `weir stored`.
#[derive(Debug, clap::Args)]
pub(crate) struct StoredFlags {
    #[command(subcommand)]
    action: StoredAction,
}

/// What is done with a stored response.
#[derive(Debug, clap::Subcommand)]
enum StoredAction {
    /// Print the status, the lengths, the age, the remaining freshness and the fields
    Query(SelectingRequest),
    /// Print a line for each variant in memory; `*` is the one that the fields select
    List(SelectingRequest),
    /// Have the response stored, as a GET of a client would; a fresh one stays
    Fetch(SelectingRequest),
    /// Request it again if it has changed: valid, replaced or dropped
    Validate(SelectingRequest),
    /// Set for how long from now it is fresh, all variants of it
    Expire {
        #[command(flatten)]
        url: StoredUrl,

        /// For how long; 0s has it validated before its next use
        #[arg(long, value_name = "TIME", default_value = "0s")]
        fresh_for: Span,
    },
    /// Purge it for listeners of one mode, all variants of it
    Delete(StoredUrl),
    /// Store the response message in a file: a head as HTTP has it, an empty line, the content
    Inject {
        #[command(flatten)]
        request: SelectingRequest,

        /// The file; `-` for stdin
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Print the content, at most 16 MiB of it
    Read {
        #[command(flatten)]
        request: SelectingRequest,

        /// Also of a response that only a rule which is gone had allowed to be stored: it answers
        /// no request, and may be for one user
        #[arg(long)]
        lacking_rule: bool,
    },
}

/// The request whose response is meant.
#[derive(Debug, clap::Args)]
struct SelectingRequest {
    #[command(flatten)]
    url: StoredUrl,

    /// A field of the request that selects the response, such as "Accept-Encoding: br"; several
    /// times for several
    #[arg(long = "field", value_name = "NAME: VALUE")]
    fields: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct StoredUrl {
    #[arg(
        value_name = "URL",
        help = "The URL that it is stored for, such as http://www.example.com/page"
    )]
    url: String,

    /// The mode of the listeners that it is stored for, where there are both
    #[arg(long, value_name = "MODE", value_parser = ["forward", "gateway"])]
    mode: Option<String>,

    #[command(flatten)]
    admin: AdminFlags,
}

/// Does one thing with what is stored for a URL, and prints what came of it.
///
/// # Errors
///
/// A URL for which nothing is stored, a response that may not be stored, a file that cannot be read
/// or a token that is wrong (exit 2); no proxy, or a next hop that gave no response (exit 3).
pub(crate) fn stored(flags: &StoredFlags) -> Result<(), Failure> {
    let reply = match &flags.action {
        StoredAction::Query(request) => request.call("query", &[])?,
        StoredAction::List(request) => request.call("list", &[])?,
        StoredAction::Fetch(request) => request.call("fetch", &[])?,
        StoredAction::Validate(request) => request.call("validate", &[])?,
        StoredAction::Expire { url, fresh_for } => {
            call("expire", url, &format!("fresh_for={fresh_for}&"), &[])?
        }
        StoredAction::Delete(url) => call("delete", url, "", &[])?,
        StoredAction::Inject { request, file } => request.call("inject", &message(file)?)?,
        StoredAction::Read {
            request,
            lacking_rule,
        } => {
            let parameters = if *lacking_rule {
                "lacking_rule=read&"
            } else {
                ""
            };
            let reply = request.call_with("read", parameters, &[])?;
            return give_bytes(&reply.content);
        }
    };
    give(&reply.body)
}

impl SelectingRequest {
    fn call(&self, word: &str, body: &[u8]) -> Result<Reply, Failure> {
        self.call_with(word, "", body)
    }

    fn call_with(&self, word: &str, parameters: &str, body: &[u8]) -> Result<Reply, Failure> {
        let mut parameters = parameters.to_owned();
        for field in &self.fields {
            parameters.push_str("field=");
            push_encoded(&mut parameters, field);
            parameters.push('&');
        }
        call(word, &self.url, &parameters, body)
    }
}

fn call(word: &str, of: &StoredUrl, parameters: &str, body: &[u8]) -> Result<Reply, Failure> {
    let mut path = format!("/stored/{word}?{parameters}");
    if let Some(mode) = &of.mode {
        let _infallible = write!(path, "mode={mode}&");
    }
    path.push_str("url=");
    push_encoded(&mut path, &of.url);
    let endpoint = find::endpoint(&of.admin)?;
    let what = format!("cannot {word} `{}`", of.url.escape_debug());
    send(&endpoint, (Method::Post, &path), body, &what)
}

/// Writes a URL as the last value of a query: what would end it there, or the request line, is
/// written in digits.
pub(crate) fn push_encoded(out: &mut String, url: &str) {
    for byte in url.bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'%' | b'&' | b'#') {
            out.push(char::from(byte));
        } else {
            let _infallible = write!(out, "%{byte:02X}");
        }
    }
}

fn message(file: &Path) -> Result<Vec<u8>, Failure> {
    let what = format!("cannot read `{}`", file.display());
    let mut message = Vec::new();
    let read = if file.as_os_str() == "-" {
        let stdin = std::io::stdin().lock();
        stdin.take(MESSAGE_BYTES_MAX + 1).read_to_end(&mut message)
    } else {
        std::fs::File::open(file)
            .and_then(|file| file.take(MESSAGE_BYTES_MAX + 1).read_to_end(&mut message))
    };
    read.map_err(|error| Failure::usage(&what, error))?;
    if message.len() as u64 > MESSAGE_BYTES_MAX {
        let why = "it has more than a head and 16 MiB of content";
        return Err(Failure::usage(what, why));
    }
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::push_encoded;

    #[test]
    fn url_is_one_value_of_the_query_whatever_is_in_it() {
        for (url, expected) in [
            ("http://a.example/b?c=d", "http://a.example/b?c=d"),
            ("http://a/?b&c#d", "http://a/?b%26c%23d"),
            ("http://a/%20b", "http://a/%2520b"),
            ("http://a/ \r\n\u{e4}", "http://a/%20%0D%0A%C3%A4"),
        ] {
            let mut out = String::new();
            push_encoded(&mut out, url);
            assert_eq!(out, expected);
        }
    }
}
