//! The answer to a request for the file by which clients find the proxy.

use super::{Front, InputResult, Receiver, own_content};
use crate::log::served::ServedRequest;
use crate::request::pac::{self, PAC_PATH, PAC_TYPE};
use weir_semantics::{Method, lines_named};
use weir_wire::RequestHead;

/// Whether it is asked for: by a path, as of an origin, which no other request to a forward proxy
/// has.
#[inline]
pub(super) fn is_asked(head: &RequestHead<'_, '_>) -> bool {
    head.target.starts_with('/') && is_pac(head)
}

fn is_pac(head: &RequestHead<'_, '_>) -> bool {
    let path = head.target.split('?').next();
    path == Some(PAC_PATH) && matches!(Method::parse(head.method), Method::Get | Method::Head)
}

/// Sends it to a client that may use the proxy: it names the proxy as this client has reached it.
/// No login is needed: browsers send none for it.
#[inline(never)]
pub(super) fn take(
    receiver: &Receiver<'_>,
    front: Front<'_, '_, '_>,
    out: &mut Vec<u8>,
    served: &mut Vec<ServedRequest>,
) -> InputResult {
    let (head, client) = (front.head, receiver.client);
    let mut hosts = lines_named(head.fields, "host");
    let (host, other) = (hosts.next(), hosts.next());
    let is_tls = client.listener.is_tls();
    let found =
        pac::authority_of(host, &client.listener.default, is_tls).filter(|_| other.is_none());
    let script = found.and_then(|(host, port)| pac::script(&host, port, is_tls));
    match script.filter(|_| !own_content::has_content(head)) {
        Some(script) => {
            let content = (PAC_TYPE, script.as_bytes());
            own_content::serve(receiver, front, content, out, served)
        }
        None => {
            let reason = "the Host of the request does not name this proxy";
            own_content::refuse(receiver, front, reason, out, served)
        }
    }
}
