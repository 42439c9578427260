//! Responses of the proxy itself: short, plain, and with the reason in a field that a program can
//! read.
//!
//! `Cache-Status` (RFC 9211) and, where something went wrong, `Proxy-Status` (RFC 9209). The body
//! says in a sentence what happened and, where there is one, what to do.

use crate::log::words::{http_date, write_cache_status};
use crate::modules::module_answer::ModuleRefusal;
use crate::send::disk_read::ContentReadError;
use crate::settings::Settings;
use std::fmt::Display;
use weir_net::next_hops::{ConnectFailure, SpentLink};
use weir_policy::extension::ModuleFailure;
use weir_policy::rule::ChangeError;
use weir_policy::verdict::Marks;
use weir_policy::{Handling, RefuseReason, Verdict};
use weir_semantics::{DecidedBy, ProxyError, write_proxy_status};
use weir_wire::{Version, write};

/// Why a request is answered by us.
#[derive(Clone, Debug)]
pub(crate) struct AnswerReason {
    /// The kind, as RFC 9209 names it.
    pub(crate) error: ProxyError,
    /// A sentence for people.
    pub(crate) text: String,
    /// The reason as the verdict has it.
    pub(crate) refused: RefuseReason,
    /// The link that has spent its quota, if that is why.
    pub(crate) spent: Option<Box<SpentLink>>,
}

/// The reason phrase where a link has spent its quota.
const LINK_SPENT_PHRASE: &str = "Link quota spent, see link.quota";

/// The reason phrase where rules deny the destination.
const DESTINATION_PHRASE: &str = "Destination not allowed, see access.allow_destinations";

/// An answer of our own.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// Status code.
    pub(crate) status: u16,
    /// Why.
    pub(crate) reason: AnswerReason,
    /// The client's connection ends with it.
    pub(crate) close: bool,
    /// The reason phrase, where it is to say more than that of the status: programs print no more
    /// than it.
    phrase: Option<&'static str>,
}

impl AnswerReason {
    pub(crate) fn new(error: ProxyError, text: impl Into<String>) -> Self {
        let refused = match error {
            ProxyError::ProxyLoopDetected => RefuseReason::Loop,
            ProxyError::ConnectionLimitReached | ProxyError::ProxyInternalError => {
                RefuseReason::Overloaded
            }
            ProxyError::HttpRequestError => RefuseReason::BadRequest,
            ProxyError::HttpRequestDenied | ProxyError::DestinationIpProhibited => {
                RefuseReason::Denied
            }
            _ => RefuseReason::NextHop,
        };
        Self {
            error,
            text: text.into(),
            refused,
            spent: None,
        }
    }

    /// The client's message is wrong.
    pub(crate) fn bad(text: impl Into<String>) -> Self {
        Self::new(ProxyError::HttpRequestError, text)
    }

    /// A link has spent its quota.
    pub(crate) fn link_spent(spent: SpentLink) -> Self {
        let until = http_date(spent.now.until);
        let name = spent.link.name();
        Self {
            error: ProxyError::HttpRequestDenied,
            text: format!(
                "the link `{name}` to the next hop has spent its quota; there is another one from {until} on"
            ),
            refused: RefuseReason::LinkSpent,
            spent: Some(Box::new(spent)),
        }
    }

    /// The reason phrase of an answer for it, where that of the status does not tell its user what
    /// the operator can do.
    const fn phrase(&self) -> Option<&'static str> {
        match self.error {
            _ if self.spent.is_some() => Some(LINK_SPENT_PHRASE),
            ProxyError::DestinationIpProhibited => Some(DESTINATION_PHRASE),
            _ => None,
        }
    }

    /// A rule says no.
    pub(crate) fn denied(text: impl Into<String>) -> Self {
        Self::new(ProxyError::HttpRequestDenied, text)
    }
}

impl From<ConnectFailure> for AnswerReason {
    fn from(failure: ConnectFailure) -> Self {
        Self::new(failure.error, failure.text)
    }
}

impl Answer {
    /// A response after which the connection is used further.
    pub(crate) fn open(status: u16, reason: AnswerReason) -> Self {
        Self {
            status,
            phrase: reason.phrase(),
            reason,
            close: false,
        }
    }

    /// An answer that ends the connection.
    pub(crate) fn closing(status: u16, reason: AnswerReason) -> Self {
        Self {
            status,
            reason,
            close: true,
            phrase: None,
        }
    }

    /// The same with this reason phrase, and the sentence of its reason alone as content.
    pub(crate) fn with_phrase(self, phrase: &'static str) -> Self {
        Self {
            phrase: Some(phrase),
            ..self
        }
    }

    /// 400 and close: what follows in the connection cannot be trusted.
    pub(crate) fn bad_request(why: &dyn Display) -> Self {
        Self::closing(400, AnswerReason::bad(why.to_string()))
    }

    /// 500: what is stored was to be sent and cannot be read. A fault of the disk, not a lack of
    /// room or time.
    pub(crate) fn unreadable(why: ContentReadError) -> Self {
        Self::open(
            500,
            AnswerReason {
                error: ProxyError::ProxyInternalError,
                text: format!("what is stored cannot be read: {}", why.as_str()),
                refused: RefuseReason::Unreadable,
                spent: None,
            },
        )
    }

    /// 403: a rule of the operator denies the request, with this text. The connection `closes` if
    /// the client has asked for that, and behind a request with content, as what follows it is not
    /// read.
    pub(crate) fn denied_by_rule(text: &str, closes: bool) -> Self {
        Self {
            status: 403,
            reason: AnswerReason {
                error: ProxyError::HttpRequestDenied,
                text: text.into(),
                refused: RefuseReason::Rule,
                spent: None,
            },
            close: closes,
            phrase: None,
        }
    }

    /// 407: the client has to log in to the proxy, or has failed to. The connection `closes` as
    /// that of a denied request does.
    pub(crate) fn login_required(text: &str, closes: bool) -> Self {
        Self {
            status: 407,
            reason: AnswerReason {
                error: ProxyError::HttpRequestDenied,
                text: text.into(),
                refused: RefuseReason::Login,
                spent: None,
            },
            close: closes,
            phrase: None,
        }
    }

    /// 400: a rule of the operator cannot change the head of the request.
    pub(crate) fn unchanged_by_rule(error: ChangeError) -> Self {
        let text = format!("a rule of this proxy cannot change the head: {error}");
        Self::closing(400, AnswerReason::bad(text))
    }

    /// 504: nothing usable is stored and the client forbids to forward the request (RFC 9111
    /// §5.2.1.7).
    pub(crate) fn only_if_cached() -> Self {
        Self::open(
            504,
            AnswerReason {
                error: ProxyError::ProxyInternalResponse,
                text: "nothing usable is stored, and the request says only-if-cached".into(),
                refused: RefuseReason::OnlyIfCached,
                spent: None,
            },
        )
    }

    /// 502: a module failed without which the request may not continue.
    pub(crate) fn module_failed(refusal: &ModuleRefusal) -> Self {
        let (name, failure) = (&refusal.name, refusal.failure.as_str());
        Self::open(
            502,
            AnswerReason {
                error: ProxyError::ProxyInternalError,
                text: format!("the module `{name}` failed ({failure})"),
                refused: RefuseReason::ModuleFailed,
                spent: None,
            },
        )
    }

    /// A module has answered, and there is no memory to send that.
    pub(crate) fn no_memory_for_module() -> Self {
        let failure = ModuleFailure::NoMemory.as_str();
        Self::open(
            502,
            AnswerReason {
                error: ProxyError::ProxyInternalError,
                text: format!("the response of a module failed ({failure})"),
                refused: RefuseReason::ModuleFailed,
                spent: None,
            },
        )
    }

    /// 200 to an OPTIONS for the proxy itself: by its target, or because Max-Forwards is 0 (RFC
    /// 9110 §7.6.2, §9.3.7).
    pub(crate) fn options() -> Self {
        Self::open(
            200,
            AnswerReason {
                error: ProxyError::ProxyInternalResponse,
                text: "this proxy answers for itself".into(),
                refused: RefuseReason::AnsweredHere,
                spent: None,
            },
        )
    }

    /// The verdict of a request answered so before there was a transaction.
    pub(crate) fn verdict(&self) -> Verdict {
        Verdict {
            handling: Handling::Refused(self.reason.refused),
            fwd_status: None,
            decided_by: DecidedBy::CacheControl,
            storing: None,
            ttl: None,
            marks: Marks::NONE,
            may_be_purged: false,
        }
    }

    /// The content, as text.
    pub(crate) fn content(&self) -> String {
        let text = &self.reason.text;
        match self.phrase {
            Some(_) => format!("{text}\n"),
            None => format!("{} {}: {text}\n", self.status, reason_phrase(self.status)),
        }
    }

    /// Appends the head for content of `content_bytes`, which says this verdict: the status line
    /// and the end-to-end fields.
    pub(crate) fn write_head(
        &self,
        settings: &Settings,
        verdict: &Verdict,
        content_bytes: usize,
        date: &[u8],
        out: &mut Vec<u8>,
    ) {
        let phrase = self.phrase.unwrap_or(reason_phrase(self.status));
        write::status_line(out, Version::Http11, self.status, phrase);
        write::field(out, "Date", date);
        write::field(out, "Content-Type", b"text/plain; charset=utf-8");
        write::number_field(out, "Content-Length", content_bytes as u64);
        write::field(out, "Cache-Control", b"no-store");
        self.write_status_fields(settings, verdict, out);
        if matches!(self.status, 200 | 405) {
            write::field(
                out,
                "Allow",
                b"GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH",
            );
        }
        if let Some(logins) = settings.logins.as_ref().filter(|_| self.status == 407) {
            out.extend_from_slice(logins.challenge());
        }
        if self.status == 503 {
            write::field(out, "Retry-After", b"1");
        }
        if let Some(spent) = &self.reason.spent {
            let seconds = spent.now.retry_after.0;
            write::number_field(out, "Retry-After", u64::from(seconds));
        }
    }

    /// Appends the whole message for an HTTP/1.1 connection to `out`; `complete` appends the last
    /// lines of its head. Returns the bytes of its content.
    pub(crate) fn write(
        &self,
        settings: &Settings,
        verdict: &Verdict,
        head_only: bool,
        date: &[u8],
        complete: impl FnOnce(&mut Vec<u8>),
        out: &mut Vec<u8>,
    ) -> u64 {
        let content = self.content();
        self.write_head(settings, verdict, content.len(), date, out);
        if self.close {
            write::field(out, "Connection", b"close");
        }
        complete(out);
        write::end_of_head(out);
        if head_only {
            return 0;
        }
        out.extend_from_slice(content.as_bytes());
        content.len() as u64
    }

    fn write_status_fields(&self, settings: &Settings, verdict: &Verdict, out: &mut Vec<u8>) {
        let name = settings.name();
        write_cache_status(settings, verdict, out);
        out.extend_from_slice(b"Proxy-Status: ");
        write_proxy_status(out, name, self.reason.error, Some(&self.reason.text));
        out.extend_from_slice(b"\r\n");
    }
}

/// The head of a message that ends with so many bytes of content.
pub(crate) fn head_of(message: &[u8], content_bytes: u64) -> &[u8] {
    let content = usize::try_from(content_bytes).unwrap_or(usize::MAX);
    &message[..message.len().saturating_sub(content)]
}

/// The reason phrase of the statuses we make ourselves (RFC 9110 §15).
pub(crate) const fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        401 => "Unauthorized",
        404 => "Not Found",
        410 => "Gone",
        429 => "Too Many Requests",
        451 => "Unavailable For Legal Reasons",
        206 => "Partial Content",
        304 => "Not Modified",
        400 => "Bad Request",
        403 => "Forbidden",
        405 => "Method Not Allowed",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        412 => "Precondition Failed",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        508 => "Loop Detected",
        _ => "Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_storage_is_reported_apart_from_overload() {
        let answer = Answer::unreadable(ContentReadError::TooSlow);
        assert_eq!(answer.verdict().detail(), Some("unreadable"));
        let busy = AnswerReason::new(ProxyError::ConnectionLimitReached, "");
        assert_eq!(busy.refused.as_str(), "overloaded");
    }
}
