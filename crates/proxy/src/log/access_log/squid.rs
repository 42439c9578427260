//! Squid's native format: `time.ms elapsed client code/status bytes method URL user
//! hierarchy/address type`.
//!
//! Programs that read it (calamaris, sarg, goaccess) know Squid's codes only, so our verdicts are
//! written in those.

use super::entry::{Entry, RequestLine};
use crate::log::logged_proxy::LoggedProxy;
use weir_log::{escape, put};
use weir_semantics::Scheme;

/// Bytes of the target shown.
const TARGET_BYTES_MAX: usize = 8 << 10;
/// Bytes of any other text shown.
const TEXT_BYTES_MAX: usize = 256;

pub(super) fn write(entry: &Entry<'_>, line: &mut Vec<u8>) {
    escape::number(entry.time_unix_ms / 1000, line);
    let mut fraction = *b".000 ";
    put(&mut fraction[1..4], entry.time_unix_ms % 1000);
    line.extend_from_slice(&fraction);
    padded(entry.total_us / 1000, line);
    line.push(b' ');
    entry.client.write_host(line);
    line.push(b' ');
    line.extend_from_slice(code(entry).as_bytes());
    line.push(b'/');
    let mut status = *b"000 ";
    put(&mut status[..3], entry.log.status.into());
    line.extend_from_slice(&status);
    escape::number(entry.log.response_bytes, line);
    line.push(b' ');
    escape::word(
        escape::cut(entry.request.method.as_bytes(), TEXT_BYTES_MAX),
        line,
    );
    line.push(b' ');
    write_url(&entry.request, line);
    line.push(b' ');
    // an empty one is `-`
    escape::word(escape::cut(entry.user(), TEXT_BYTES_MAX), line);
    line.push(b' ');
    match entry.log.forward().next_hop {
        Some(address) => {
            let code = entry.log.proxy.map(LoggedProxy::squid_code);
            line.extend_from_slice(code.unwrap_or("HIER_DIRECT").as_bytes());
            line.push(b'/');
            escape::ip(address.ip(), line);
        }
        None => line.extend_from_slice(b"HIER_NONE/-"),
    }
    line.push(b' ');
    let media_type = entry
        .content_type
        .split(|byte| matches!(byte, b';' | b' '))
        .next()
        .unwrap_or(b"");
    escape::word(escape::cut(media_type, TEXT_BYTES_MAX), line);
}

/// The whole URL, as Squid has it, with scheme and host where the target names none: a gateway may
/// have many hosts.
fn write_url(request: &RequestLine<'_>, line: &mut Vec<u8>) {
    if request.target.starts_with('/') && !request.host.is_empty() {
        let is_https = request.scheme == Scheme::Https.as_str();
        let scheme: &[u8] = if is_https { b"https://" } else { b"http://" };
        line.extend_from_slice(scheme);
        escape::word(escape::cut(request.host, TEXT_BYTES_MAX), line);
    }
    escape::word(
        escape::cut(request.target.as_bytes(), TARGET_BYTES_MAX),
        line,
    );
}

/// Squid's word for the verdict.
fn code(entry: &Entry<'_>) -> &'static str {
    match entry.verdict_word() {
        // our store is memory
        "hit" => "TCP_MEM_HIT",
        "stale" if entry.next_hop_status() == Some(304) => "TCP_REFRESH_UNMODIFIED",
        "stale" => "TCP_REFRESH_MODIFIED",
        "request" => "TCP_CLIENT_REFRESH_MISS",
        // "CF": the response to another client's request (Squid's wiki, *Squid result codes*)
        "collapsed" => "TCP_CF_MISS",
        "refused" => "TCP_DENIED",
        "tunnel" => "TCP_TUNNEL",
        "invalid" | "local" => "NONE_NONE",
        _ => "TCP_MISS",
    }
}

/// At least six places wide, as Squid's `%6tr`.
fn padded(number: u64, line: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(number).as_bytes();
    line.extend(std::iter::repeat_n(
        b' ',
        6_usize.saturating_sub(digits.len()),
    ));
    line.extend_from_slice(digits);
}
