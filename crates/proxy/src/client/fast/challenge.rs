//! The answer to an authority that looks whether a name is served here (RFC 8555 §8.3).
//!
//! It is asked for in clear, by a token that is pending: whatever rules, routes and clients are
//! permitted, it is answered from here, and neither stored nor forwarded. A request for any other
//! token is one as any.

use super::{Front, InputResult, Receiver, own_content};
use crate::log::served::ServedRequest;
use weir_semantics::{Authority, Method, lines_named};
use weir_wire::RequestHead;

/// What the path of such a request begins with.
const WELL_KNOWN: &str = "/.well-known/acme-challenge/";

/// What the authority is to be sent, if this is its request.
#[inline(never)]
pub(super) fn answer(receiver: &Receiver<'_>, head: &RequestHead<'_, '_>) -> Option<Box<str>> {
    let token = head.target.strip_prefix(WELL_KNOWN)?;
    if receiver.client.listener.is_tls() {
        return None;
    }
    let mut hosts = lines_named(head.fields, "host");
    let (host, other) = (hosts.next()?, hosts.next());
    let authority = Authority::parse(str::from_utf8(host).ok()?).ok()?;
    let host = authority.host.as_str();
    let challenges = &receiver.worker.shared.challenges;
    challenges.answer(token, host).filter(|_| other.is_none())
}

/// Sends it.
pub(super) fn take(
    receiver: &Receiver<'_>,
    front: Front<'_, '_, '_>,
    answer: &str,
    out: &mut Vec<u8>,
    served: &mut Vec<ServedRequest>,
) -> InputResult {
    let is_read = matches!(Method::parse(front.head.method), Method::Get | Method::Head);
    if !is_read || own_content::has_content(front.head) {
        let reason = "what proves that a name is served here is read alone";
        return own_content::refuse(receiver, front, reason, out, served);
    }
    let content = ("application/octet-stream", answer.as_bytes());
    own_content::serve(receiver, front, content, out, served)
}
