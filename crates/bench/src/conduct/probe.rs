//! One request before the run: does the proxy answer, and does it forward? A run against a
//! proxy that is not there, or that refuses everything, would have nothing but errors.

use super::plan::RunPlan;
use crate::check::refusal;
use crate::failure::Failure;
use crate::mark::{self, ResponseMark};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use weir_measure::record::Mode;
use weir_wire::{HeadLimits, LineBuffer, Progress, parse_response};

/// How long the proxy may take to accept, and to send each part of its response.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// The path; no scenario has a target there.
const PATH: &str = "/weir-bench-probe";

/// What the response head may be.
const HEAD_LIMITS: HeadLimits = HeadLimits {
    bytes_max: 32 * 1024,
    fields_max: 100,
};

/// Sends a probe to the first server through the proxy.
///
/// # Errors It does not accept, does not respond, refuses, or responds without a request to the
/// origin.
pub(super) fn probe(proxy: SocketAddr, mode: Mode, servers: &[SocketAddr]) -> Result<(), Failure> {
    let request = match (mode, servers.first()) {
        // the origin is in this program's hands
        (Mode::Direct, _) | (Mode::Forward, None) => return Ok(()),
        (Mode::Gateway, _) => request(&format!("/s0{PATH}"), &proxy.to_string()),
        (Mode::Forward, Some(server)) => {
            request(&format!("http://{server}{PATH}"), &server.to_string())
        }
    };
    let head = exchange(proxy, &request).map_err(|error| {
        let cause = format!("the proxy at {proxy} does not answer: {error}");
        Failure::outside(WHAT, cause)
            .with_hint("start the proxy first, and name its address and port")
    })?;
    judge(proxy, &head)
}

/// Sends a probe through every proxy of several runs before the first of them: a missing one would
/// end them after hours. A single proxy is probed by its run.
///
/// The request is `OPTIONS *`, which needs no origin; any response will do.
///
/// # Errors
/// A proxy does not accept, does not answer, or does not speak HTTP.
pub fn ask_all<'p>(plans: impl IntoIterator<Item = &'p RunPlan>) -> Result<(), Failure> {
    let mut proxies: Vec<(SocketAddr, &str)> = Vec::new();
    for plan in plans {
        let is_known = |proxy| proxies.iter().any(|(known, _)| *known == proxy);
        match plan.proxy {
            Some(proxy) if !is_known(proxy) => proxies.push((proxy, &plan.label)),
            _ => {}
        }
    }
    if proxies.len() < 2 {
        return Ok(());
    }
    for (proxy, label) in proxies {
        let request = format!(
            "OPTIONS * HTTP/1.1\r\nHost: {proxy}\r\nMax-Forwards: 0\r\nConnection: close\r\n\r\n"
        );
        let head = exchange(proxy, &request).map_err(|error| {
            let cause = format!("`{label}` at {proxy} does not answer: {error}");
            Failure::outside("cannot start the runs", cause)
                .with_hint("start all proxies first, and name their addresses and ports")
        })?;
        let mut lines = LineBuffer::new();
        if !matches!(
            parse_response(&head, &HEAD_LIMITS, &mut lines),
            Ok(Progress::Complete { .. })
        ) {
            let cause = format!("what answers for `{label}` at {proxy} does not speak HTTP");
            return Err(Failure::outside("cannot start the runs", cause)
                .with_hint("name the address of an HTTP proxy"));
        }
    }
    Ok(())
}

const WHAT: &str = "cannot start the run";

fn request(target: &str, host: &str) -> String {
    format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{}: {}\r\n\r\n",
        mark::FIELD,
        mark::PROBE
    )
}

/// The head of the response, as far as it fits.
fn exchange(proxy: SocketAddr, request: &str) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&proxy, ANSWER_MAX)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    stream.set_write_timeout(Some(ANSWER_MAX))?;
    stream.write_all(request.as_bytes())?;
    let mut head = Vec::new();
    let mut part = [0; 4096];
    loop {
        let length = match stream.read(&mut part) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // the kernel calls a timeout that
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let cause = format!("nothing arrived for {} s", ANSWER_MAX.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, cause));
            }
            Err(error) => return Err(error),
        };
        if length == 0 {
            let cause = "it closed the connection before the response";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, cause));
        }
        head.extend_from_slice(&part[..length]);
        if is_whole(&head) || head.len() > HEAD_LIMITS.bytes_max {
            return Ok(head);
        }
    }
}

/// The head has ended, or is none.
fn is_whole(head: &[u8]) -> bool {
    let mut lines = LineBuffer::new();
    !matches!(
        parse_response(head, &HEAD_LIMITS, &mut lines),
        Ok(Progress::Partial)
    )
}

fn judge(proxy: SocketAddr, bytes: &[u8]) -> Result<(), Failure> {
    let mut lines = LineBuffer::new();
    let Ok(Progress::Complete { head, .. }) = parse_response(bytes, &HEAD_LIMITS, &mut lines)
    else {
        let cause = format!("what answers at {proxy} does not speak HTTP");
        return Err(Failure::outside(WHAT, cause).with_hint("name the address of an HTTP proxy"));
    };
    let mark = head
        .fields
        .iter()
        .find(|line| line.name.eq_ignore_ascii_case(mark::FIELD));
    let is_origins = mark.is_some_and(|line| ResponseMark::parse(line.value).is_some());
    if head.status == 200 && is_origins {
        return Ok(());
    }
    let words = refusal(bytes);
    if head.status == 200 {
        let cause = format!("the proxy at {proxy} answered the first request itself: {words}");
        return Err(Failure::outside(WHAT, cause).with_hint(
            "it must be a forward proxy, or with --gateway a gateway to the origin's address, and leave the field `Weir-Bench` alone",
        ));
    }
    let cause = format!("the proxy at {proxy} refused the first request: {words}");
    Err(Failure::outside(WHAT, cause)
        .with_hint(
        "let it take requests from here, and let it reach the origin's address; if it is a gateway, say so: `,gateway` behind its address, or --gateway",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_succeeds_only_with_a_response_of_the_origin() {
        let proxy = SocketAddr::from(([127, 0, 0, 1], 3128));
        let check = |head: &str, expected: Option<&str>| {
            let judged = judge(proxy, head.as_bytes());
            match (&judged, expected) {
                (Ok(()), None) => {}
                (Err(failure), Some(part)) => {
                    assert!(failure.cause.contains(part), "{failure}");
                }
                _ => panic!("{head:?}: {judged:?}"),
            }
        };
        check("HTTP/1.1 200 OK\r\nWeir-Bench: - 0 @17\r\n\r\n", None);
        check(
            "HTTP/1.1 200 OK\r\n\r\n",
            Some("answered the first request itself"),
        );
        check("SSH-2.0-OpenSSH_9.2\r\n", Some("does not speak HTTP"));
        check(
            "HTTP/1.1 403 Forbidden\r\nProxy-Status: p; error=http_request_denied\r\n\r\n",
            Some("403 Forbidden, Proxy-Status: p; error=http_request_denied"),
        );
        let refused = judge(proxy, b"HTTP/1.1 502 Bad Gateway\r\n\r\n").expect_err("502");
        let hint = refused.hint.expect("a hint");
        assert!(hint.contains("`,gateway`"), "{hint}");
    }
}
