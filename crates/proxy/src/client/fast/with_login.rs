//! A request on a listener whose clients have to log in (RFC 9110 §11.7).
//!
//! The credentials are read before anything else of the request is looked at, and taken out of its
//! head: no module, no next hop, no key and no log has them. What is stored stays shared among
//! users: `Proxy-Authorization` is for this proxy, and no origin has answered by it (RFC 9111 §3.5
//! is about `Authorization`).

use super::{Front, InputResult, Receiver, refuse, take_believed, take_head};
use crate::log::client::ClientFacts;
use crate::log::served::ServedRequest;
use crate::request::answer::{Answer, AnswerReason};
use crate::settings::logins::Login;
use weir_measure::{LoginOutcome, Metric};
use weir_semantics::{FieldLine, Known, ProxyError, identify};
use weir_wire::{BodyLength, RequestHead, request_body};

/// Takes the request if its client has logged in.
#[inline(never)]
pub(super) fn take(
    receiver: &Receiver<'_>,
    front: Front<'_, '_, '_>,
    out: &mut Vec<u8>,
    served: &mut Vec<ServedRequest>,
) -> InputResult {
    let (settings, head) = (receiver.settings, front.head);
    let Some(logins) = &settings.logins else {
        return take_head(receiver, front, out, served);
    };
    if super::is_denied(receiver) {
        // it is denied whatever it shows
        return take_head(receiver, front, out, served);
    }
    let is_login = |line: &&FieldLine<'_>| identify(line.name) == Some(Known::ProxyAuthorization);
    let shown = head.fields.iter().filter(is_login).map(|line| line.value);
    let counters = receiver.worker.counters();
    let ClientFacts { listener, peer, .. } = receiver.client;
    let rules = settings.forwarded(listener.mode);
    let client = rules.counted_client(peer.ip(), head.fields);
    let (answer, outcome) = match logins.check(client, shown) {
        Login::Of(user) => {
            counters.inc(Metric::Logins(LoginOutcome::Right));
            let others = head.fields.iter().filter(|line| !is_login(line));
            let lines: Vec<FieldLine<'_>> = others.copied().collect();
            let head = RequestHead {
                fields: &lines,
                ..*head
            };
            let receiver = Receiver {
                user: Some(&user),
                ..*receiver
            };
            return take_believed(&receiver, front.with_head(&head), out, served);
        }
        Login::Pending(waiting) => return InputResult::Login(Box::new(waiting)),
        Login::Busy => {
            let text = "too many logins are being verified; try again in a moment";
            let reason = AnswerReason::new(ProxyError::ConnectionLimitReached, text);
            (Answer::closing(503, reason), LoginOutcome::Busy)
        }
        Login::Missing => {
            let text =
                "this proxy asks for a login: give your client its name and password, or a token";
            (
                Answer::login_required(text, closes(head)),
                LoginOutcome::Missing,
            )
        }
        Login::Wrong => {
            let text = "this proxy does not know this name with this password, or this token";
            (
                Answer::login_required(text, closes(head)),
                LoginOutcome::Wrong,
            )
        }
    };
    counters.inc(Metric::Logins(outcome));
    let (at, consumed) = (front.input.at, front.consumed);
    let log = receiver.log(front.started, consumed);
    let asked = Some((head, at..at + consumed));
    served.push(refuse(receiver, asked, &answer, log, out));
    InputResult::Answered { consumed }
}

/// Whether the connection ends with a refusal: what comes behind the head is not read.
fn closes(head: &RequestHead<'_, '_>) -> bool {
    let body = request_body(head.version, head.fields);
    !matches!(body, Ok(BodyLength::None | BodyLength::Exact(0))) || !is_persistent(head)
}

fn is_persistent(head: &RequestHead<'_, '_>) -> bool {
    let options = weir_semantics::ConnectionOptions::gather(head.fields);
    !options.close && (head.version == weir_wire::Version::Http11 || options.keep_alive)
}
