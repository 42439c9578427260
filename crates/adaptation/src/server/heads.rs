//! Heads of ICAP messages as modules see them, and back.

use weir_extend::{Fields, LocalResponse, RequestHead, ResponseHead};
use weir_icap::EncapsulatedHeads;
use weir_semantics::{FieldLine, Known, identify};
use weir_wire::{LineBuffer, Version, write};

fn received(lines: &[FieldLine<'_>]) -> Fields {
    Fields::received(lines.iter().map(|line| (line.name, line.value)))
}

/// The head of a request; `None` if its target cannot be understood.
pub(super) fn request_head(
    heads: &EncapsulatedHeads,
    has_content: bool,
) -> Option<RequestHead<'static>> {
    let mut lines = LineBuffer::new();
    let head = heads.request(&mut lines)?;
    let is_host = |line: &&FieldLine<'_>| identify(line.name) == Some(Known::Host);
    let host = head.fields.iter().find(is_host);
    let host = host.and_then(|line| std::str::from_utf8(line.value).ok());
    let (authority, path) = match (head.method, head.target) {
        ("CONNECT", target) => (target.to_owned(), String::new()),
        (_, target) => match split_uri(target) {
            Some((authority, path)) => (authority.to_owned(), path),
            None if target.starts_with('/') || target == "*" => {
                (host?.to_owned(), target.to_owned())
            }
            None => return None,
        },
    };
    let request = RequestHead::new(head.method, &authority, &path, received(head.fields));
    // `into_owned` notes the directives that were received
    Some(request.with_content(has_content).into_owned())
}

/// The head of a response to `request`.
pub(super) fn response_head(
    heads: &EncapsulatedHeads,
    request: &RequestHead<'_>,
) -> Option<ResponseHead<'static>> {
    let mut lines = LineBuffer::new();
    let head = heads.response(&mut lines)?;
    let response = ResponseHead::new(head.status, received(head.fields));
    let keeps_content = request.keeps_content() || response.keeps_content();
    Some(response.keeping_content(keeps_content))
}

/// Authority and path of an absolute target.
fn split_uri(target: &str) -> Option<(&str, String)> {
    let (scheme, rest) = target.split_once("://")?;
    if !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let slash = if path.starts_with('/') { "" } else { "/" };
    Some((authority, format!("{slash}{path}")))
}

/// A changed request as it is sent back: its target in the form that it came in.
pub(super) fn request_bytes(head: &RequestHead<'_>, heads: &EncapsulatedHeads) -> Vec<u8> {
    let mut lines = LineBuffer::new();
    let was = heads.request(&mut lines);
    let (target, has_host) = was.map_or(("/", false), |was| {
        let is_host = |line: &FieldLine<'_>| identify(line.name) == Some(Known::Host);
        (was.target, was.fields.iter().any(is_host))
    });
    let target = match target.split_once("://") {
        _ if !head.target_is_changed() => target.to_owned(),
        Some((scheme, _)) => format!("{scheme}://{}{}", head.authority(), head.path_and_query()),
        None if head.path_and_query().is_empty() => head.authority().to_owned(),
        None => head.path_and_query().to_owned(),
    };
    let mut out = Vec::with_capacity(512);
    write::request_line(&mut out, head.method(), &target, Version::Http11);
    if !has_host {
        write::field(&mut out, "Host", head.authority().as_bytes());
    }
    for (name, value) in head.fields.iter() {
        let is_host = identify(name) == Some(Known::Host) && head.target_is_changed();
        let value = if is_host {
            head.authority().as_bytes()
        } else {
            value
        };
        write::field(&mut out, name, value);
    }
    write::end_of_head(&mut out);
    out
}

/// A changed response as it is sent back.
pub(super) fn response_bytes(head: &ResponseHead<'_>, heads: &EncapsulatedHeads) -> Vec<u8> {
    let mut lines = LineBuffer::new();
    let was = heads.response(&mut lines);
    let reason = was
        .filter(|was| was.status == head.status())
        .map_or("", |was| was.reason);
    let mut out = Vec::with_capacity(512);
    write::status_line(&mut out, Version::Http11, head.status(), reason);
    for (name, value) in head.fields.iter() {
        write::field(&mut out, name, value);
    }
    write::end_of_head(&mut out);
    out
}

/// A response that a module makes.
pub(super) fn local_bytes(response: &LocalResponse) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    write::status_line(&mut out, Version::Http11, response.status(), "Adapted");
    for (name, value) in response.fields.iter() {
        write::field(&mut out, name, value);
    }
    write::number_field(&mut out, "Content-Length", response.content().len() as u64);
    write::end_of_head(&mut out);
    out
}
