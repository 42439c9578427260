//! Where the access log goes and how its lines look.

use super::setting::table;
use super::values::text::{BadValue, Form, choice, text_value};
use std::fmt;
use std::path::{Path, PathBuf};

table! {
    /// The `[log]` table.
    pub struct Log in "log" {
        /// Where the access log goes, a line for each request: `"-"` for stdout, a path (opened
        /// again on SIGHUP), or `"off"`. The default is stdout: a service manager collects it, and
        /// a first try shows it.
        access: LogTarget = LogTarget::Stdout;
        /// The form of a line. `readable` is a short line for people, `json` holds everything;
        /// `squid` (Squid's native form, with whole URLs) and `combined` are for tools that read
        /// those. `auto` is `readable` where lines go to stdout and that is a terminal, and `json`
        /// elsewhere: a first try is looked at, and what is collected is read by programs.
        format: LogFormat = LogFormat::Auto;
        /// How lines show clients: `full` by their addresses, `hash` by a name that is the same
        /// for all requests of a client until the proxy restarts, and from which its address
        /// cannot be computed: the one that `/top` has. Users who have logged in are named in both.
        /// The default is `full`, as tools that read logs need addresses.
        clients: LogClients = LogClients::Full;
        /// Whether lines show queries of URLs, those of `Referer` among them: `full`, or `cut`,
        /// since queries carry names, words that were searched for, and keys. The default is
        /// `full`, as tools that read logs need them.
        queries: LogQueries = LogQueries::Full;
        /// Lines that may wait for a slow disk or reader; more are dropped and counted, since the
        /// log never delays a response. 8192 lines of 500 bytes are about 4 MiB.
        queue_lines: u32 = 8192, from 16, to 1 << 20;
    }
}

choice! {
    /// The form of a line of the access log.
    pub enum LogFormat {
        /// `readable` on a terminal, `json` elsewhere.
        Auto = "auto",
        /// A short line for people.
        Readable = "readable",
        /// One JSON object a line.
        Json = "json",
        /// Squid's native access.log.
        Squid = "squid",
        /// The combined log format of Apache httpd and nginx.
        Combined = "combined",
    }
}

choice! {
    /// How lines show clients.
    pub enum LogClients {
        /// By their addresses.
        Full = "full",
        /// By a name that does not tell the address.
        Hash = "hash",
    }
}

choice! {
    /// Whether lines show queries.
    pub enum LogQueries {
        /// They do.
        Full = "full",
        /// They do not.
        Cut = "cut",
    }
}

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// Nowhere: `"off"`.
    Off,
    /// Standard output: `"-"`.
    Stdout,
    /// Appended to this file.
    File(PathBuf),
}

impl LogTarget {
    /// The path, if it is a file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Off | Self::Stdout => None,
        }
    }
}

impl fmt::Display for LogTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Stdout => f.write_str("-"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl std::str::FromStr for LogTarget {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "off" => Ok(Self::Off),
            "-" => Ok(Self::Stdout),
            "" => Err(BadValue::new(
                "`` is not a place for a log; \"-\" (stdout), a path or \"off\" is expected",
            )),
            _ => Ok(Self::File(PathBuf::from(text))),
        }
    }
}

impl Form for LogTarget {
    const FORM: &'static str = "\"-\" (stdout), a path, or \"off\"";
}

text_value!(LogTarget);
