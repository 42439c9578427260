//! Heads of modules as bytes, and adapted heads in their place.

use super::failure::Failure;
use weir_extend::{FieldError, Fields, RequestHead, ResponseHead};
use weir_icap::EncapsulatedHeads;
use weir_semantics::{FieldLine, Known, identify};
use weir_wire::{LineBuffer, Version, write};

/// The head of a request as it is sent to a service: with the absolute target, as proxies do.
pub(crate) fn request_bytes(head: &RequestHead<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    let target = target_of(head);
    write::request_line(&mut out, head.method(), &target, Version::Http11);
    write::field(&mut out, "Host", head.authority().as_bytes());
    for (name, value) in head.fields.iter() {
        if identify(name) != Some(Known::Host) {
            write::field(&mut out, name, value);
        }
    }
    write::end_of_head(&mut out);
    out
}

/// The head of a response as it is sent to a service.
pub(crate) fn response_bytes(head: &ResponseHead<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    write::status_line(
        &mut out,
        Version::Http11,
        head.status(),
        reason(head.status()),
    );
    for (name, value) in head.fields.iter() {
        write::field(&mut out, name, value);
    }
    write::end_of_head(&mut out);
    out
}

fn target_of(head: &RequestHead<'_>) -> String {
    let (authority, path) = (head.authority(), head.path_and_query());
    match (head.method(), path) {
        ("CONNECT", _) => authority.to_owned(),
        (_, "*") => "*".to_owned(),
        _ => format!("http://{authority}{path}"),
    }
}

/// Puts an adapted request in the place of `head`, which had the fields `before` when it was sent.
pub(crate) fn adapt_request(
    head: &mut RequestHead<'_>,
    before: &Fields,
    heads: &EncapsulatedHeads,
) -> Result<(), Failure> {
    let mut lines = LineBuffer::new();
    let adapted = heads.request(&mut lines);
    let adapted = adapted.ok_or(Failure::Adapted("a request without a head"))?;
    if adapted.method != head.method() {
        return Err(Failure::Adapted("a request with another method"));
    }
    if adapted.target != target_of(head) {
        let (authority, path) = read_target(adapted.target, adapted.fields).ok_or(
            Failure::Adapted("a request whose target is not an http URI"),
        )?;
        let set = head.set_authority(&authority);
        set.and_then(|()| head.set_path_and_query(&path))
            .map_err(|_| Failure::Adapted("a request whose target cannot be"))?;
    }
    adapt_fields(&mut head.fields, before, adapted.fields)
}

/// Puts an adapted response in the place of `head`, which had the fields `before` when it was sent.
pub(crate) fn adapt_response(
    head: &mut ResponseHead<'_>,
    before: &Fields,
    heads: &EncapsulatedHeads,
) -> Result<(), Failure> {
    let mut lines = LineBuffer::new();
    let adapted = heads.response(&mut lines);
    let adapted = adapted.ok_or(Failure::Adapted("a response without a head"))?;
    if adapted.status != head.status() {
        head.set_status(adapted.status).map_err(|_| {
            Failure::Adapted("a response whose status cannot take the place of the old one")
        })?;
    }
    adapt_fields(&mut head.fields, before, adapted.fields)
}

/// Authority and path of an adapted target: an absolute one, or a path and Host.
fn read_target(target: &str, fields: &[FieldLine<'_>]) -> Option<(String, String)> {
    if target.starts_with('/') {
        let is_host = |line: &&FieldLine<'_>| identify(line.name) == Some(Known::Host);
        let mut hosts = fields.iter().filter(is_host);
        let host = std::str::from_utf8(hosts.next()?.value).ok()?;
        return hosts
            .next()
            .is_none()
            .then(|| (host.to_owned(), target.to_owned()));
    }
    let scheme = target.get(..7)?;
    if !scheme.eq_ignore_ascii_case("http://") {
        return None;
    }
    let rest = &target[7..];
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let slash = if path.starts_with('/') { "" } else { "/" };
    Some((authority.to_owned(), format!("{slash}{path}")))
}

/// Gives `fields` those of the adapted head that differ from `before`. What the service left alone
/// stays as it is now: the proxy may have removed it, as digests of content that is changed.
fn adapt_fields(
    fields: &mut Fields,
    before: &Fields,
    adapted: &[FieldLine<'_>],
) -> Result<(), Failure> {
    let mut names: Vec<String> = Vec::new();
    let all = before.iter().map(|(name, _)| name);
    for name in all.chain(adapted.iter().map(|line| line.name)) {
        if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            names.push(name.to_owned());
        }
    }
    for name in names {
        let after = adapted
            .iter()
            .filter(|line| line.name.eq_ignore_ascii_case(&name));
        let after = after.map(|line| line.value);
        if before.all(&name).eq(after.clone()) {
            continue;
        }
        let replaced = fields.remove(&name).and_then(|_| {
            let mut after = after;
            after.try_for_each(|value| fields.add(&name, value))
        });
        match replaced {
            // the proxy writes it itself, whatever the service says
            Ok(()) | Err(FieldError::Reserved) => {}
            Err(_) => return Err(Failure::Adapted("a head with a field that cannot be")),
        }
    }
    Ok(())
}

/// The reason phrase of a status, for servers that expect one.
const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Status",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(fields: &Fields) -> Vec<(String, Vec<u8>)> {
        let lines = fields.iter();
        lines
            .map(|(name, value)| (name.to_owned(), value.to_vec()))
            .collect()
    }

    #[test]
    fn field_that_the_service_left_alone_stays_as_the_proxy_has_it() {
        let before = Fields::received([
            ("ETag", &b"\"x\""[..]),
            ("Content-MD5", b"m"),
            ("X-Old", b"1"),
            ("Via", b"1.1 a"),
        ]);
        let mut fields = Fields::received([
            ("ETag", &b"W/\"x\""[..]),
            ("X-Old", b"1"),
            ("Via", b"1.1 a"),
        ]);
        let adapted = [
            FieldLine::new("etag", b"\"x\""),
            FieldLine::new("Content-MD5", b"m"),
            FieldLine::new("X-New", b"2"),
            FieldLine::new("X-New", b"3"),
            FieldLine::new("Via", b"ICAP/1.0 b"),
        ];
        assert_eq!(adapt_fields(&mut fields, &before, &adapted), Ok(()));
        let expected = [
            ("ETag", "W/\"x\""),
            ("Via", "1.1 a"),
            ("X-New", "2"),
            ("X-New", "3"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
        assert_eq!(lines(&fields), expected);
    }

    #[test]
    fn target_is_read_from_a_uri_or_a_path_and_host() {
        let read = |target, hosts: &[&str]| {
            let fields: Vec<_> = hosts
                .iter()
                .map(|host| FieldLine::new("Host", host.as_bytes()))
                .collect();
            read_target(target, &fields)
        };
        let found = |authority: &str, path: &str| Some((authority.to_owned(), path.to_owned()));
        assert_eq!(
            read("HTTP://a.example:81/x?y", &[]),
            found("a.example:81", "/x?y")
        );
        assert_eq!(read("http://a.example", &[]), found("a.example", "/"));
        assert_eq!(read("http://a.example?q", &[]), found("a.example", "/?q"));
        assert_eq!(read("/x", &["b.example"]), found("b.example", "/x"));
        for (target, hosts) in [
            ("/x", &[][..]),
            ("/x", &["a", "b"][..]),
            ("https://a/", &["a"][..]),
            ("a:443", &["a"][..]),
            ("é", &["a"][..]),
        ] {
            assert_eq!(read(target, hosts), None, "{target}");
        }
    }

    #[test]
    fn request_is_sent_with_its_absolute_target() {
        let fields = Fields::received([("hOST", &b"old"[..]), ("Accept", b"*/*")]);
        let bytes = request_bytes(&RequestHead::new("GET", "a.example", "/x", fields));
        assert_eq!(
            String::from_utf8_lossy(&bytes),
            "GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\n\r\n"
        );
        let connect = RequestHead::new("CONNECT", "a.example:443", "", Fields::default());
        assert!(request_bytes(&connect).starts_with(b"CONNECT a.example:443 HTTP/1.1\r\n"));
    }
}
