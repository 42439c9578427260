//! One run of h2load: one thread, a fixed number of connections and of requests under way on each.

use crate::process::guarded;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::Duration;
use xtask::failure::{During, Failure};

pub(super) const CONNECTIONS: u32 = 8;

/// Requests under way on a connection of HTTP/2; on one of HTTP/1.1 there is one.
pub(super) const STREAMS: u32 = 10;

/// What is spoken under TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

impl Protocol {
    /// Its name in ALPN.
    pub(super) const fn alpn(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "h2",
        }
    }
}

/// What h2load says at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Report {
    /// Whole responses of status 2xx or 3xx; those under way at the end do not count.
    pub(super) responses: u64,
    /// Responses of a status that is not 2xx, and requests that failed.
    pub(super) errors: u64,
    /// Bytes of content.
    pub(super) bytes: u64,
}

/// Runs it on one core for so many seconds.
pub(super) fn run(
    (to, protocol): (SocketAddr, Protocol),
    path: &str,
    seconds: u32,
    core: usize,
) -> Result<Report, Failure> {
    let streams = match protocol {
        Protocol::Http1 => 1,
        Protocol::Http2 => STREAMS,
    };
    let words = format!(
        "h2load -t 1 -c {CONNECTIONS} -m {streams} -D {seconds} --npn-list={} https://{to}{path}",
        protocol.alpn()
    );
    let arguments: Vec<String> = words.split(' ').map(str::to_owned).collect();
    let life = Duration::from_secs(u64::from(seconds) + 20);
    let (text, _) = guarded::output(core, &arguments, life)?;
    let report = parse(&text).ok_or_else(|| format!("it said: {text}"));
    report.during("read the report of h2load")
}

/// Some requests are under way at the end of a run by time. Their status counts for h2load, and
/// their content as far as it has come.
fn parse(text: &str) -> Option<Report> {
    let line = |front: &str| text.lines().find_map(|line| line.strip_prefix(front));
    let number = |words: &str, name: &str| -> Option<u64> {
        let part = words.split(',').find(|part| part.ends_with(name))?;
        part.split_whitespace().next()?.parse().ok()
    };
    let statuses = line("status codes: ")?;
    let requests = line("requests: ")?;
    let others = ["3xx", "4xx", "5xx"].map(|name| number(statuses, name));
    let others: u64 = others.into_iter().sum::<Option<u64>>()?;
    let traffic = line("traffic: ")?;
    let content = traffic.split(", ").find(|part| part.ends_with(" data"))?;
    let (_, content) = content.split_once('(')?;
    Some(Report {
        responses: number(requests, "succeeded")?,
        errors: others + number(requests, "errored")? + number(requests, "timeout")?,
        bytes: content.split(')').next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Application protocol: h2\n\
finished in 2.00s, 41219.50 req/s, 44.71MB/s\n\
requests: 82439 total, 82519 started, 82439 done, 82437 succeeded, 2 failed, 1 errored, 1 timeout\n\
status codes: 82430 2xx, 3 3xx, 2 4xx, 2 5xx\n\
traffic: 89.41MB (93758091) total, 8.65MB (9068290) headers (space savings 38.2%), 80.51MB (84417536) data\n";

    #[test]
    fn numbers_of_its_report_are_found() {
        let expected = Report {
            responses: 82_437,
            errors: 9,
            bytes: 84_417_536,
        };
        assert_eq!(parse(TEXT), Some(expected));
        assert_eq!(parse("no connection could be made\n"), None);
    }
}
