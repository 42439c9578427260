//! A verdict in the words of the counters, the access log and `Cache-Status`.

use crate::settings::Settings;
use weir_measure::{Joined, NotStored as Label, RequestPhase, Source, Verdict as Word};
use weir_policy::catalog::Refusal;
use weir_policy::verdict::StaleReason;
use weir_policy::{Handling, Hit, NotStored, Phase, RefuseReason, Verdict};
use weir_semantics::{CacheStatus, Fwd, NotStorable, Timestamp, write_http_date};

/// The verdict's word.
pub(crate) fn word(verdict: &Verdict) -> Word {
    match verdict.handling {
        Handling::Hit(_) | Handling::StaleInstead(StaleReason::LinkSpent) => Word::Hit,
        Handling::Collapsed(_) => Word::Collapsed,
        Handling::Forward(Fwd::Bypass) => Word::Bypass,
        Handling::Forward(Fwd::Method) => Word::Method,
        Handling::Forward(Fwd::UriMiss) => Word::UriMiss,
        Handling::Forward(Fwd::VaryMiss) => Word::VaryMiss,
        Handling::Forward(Fwd::Miss) => Word::Miss,
        Handling::Forward(Fwd::Request) => Word::Request,
        Handling::Forward(Fwd::Stale) | Handling::StaleInstead(_) => Word::Stale,
        Handling::Forward(Fwd::Partial) => Word::Partial,
        Handling::Refused(RefuseReason::BadRequest) => Word::Invalid,
        Handling::Refused(
            RefuseReason::OnlyIfCached | RefuseReason::AnsweredHere | RefuseReason::ModuleAnswered,
        ) => Word::Local,
        Handling::Refused(why) if why.is_of_next_hop() => Word::Error,
        Handling::Refused(_) => Word::Refused,
        Handling::Tunnel => Word::Tunnel,
    }
}

/// The reason's place among the counters.
pub(crate) fn label(why: NotStored) -> Label {
    match why {
        NotStored::Rule(rule) => match rule {
            NotStorable::Method => Label::Method,
            NotStorable::RequestNoStore => Label::RequestNoStore,
            NotStorable::ResponseNoStore => Label::ResponseNoStore,
            NotStorable::Private => Label::Private,
            NotStorable::Authorization => Label::Authorization,
            NotStorable::StatusNotFinal => Label::StatusNotFinal,
            NotStorable::StatusNotUnderstood => Label::StatusNotUnderstood,
            NotStorable::PartialContent => Label::PartialContent,
            NotStorable::LineEnds => Label::LineEnds,
            NotStorable::VaryStar => Label::VaryStar,
            _ => Label::NoLifetime,
        },
        NotStored::SetCookie => Label::SetCookie,
        NotStored::StoredIsUsable => Label::StoredIsUsable,
        NotStored::VaryChanged => Label::VaryChanged,
        NotStored::Useless => Label::NoLifetime,
        NotStored::Conditional => Label::Conditional,
        NotStored::Profile(_) => Label::Profile,
        NotStored::Catalog(Refusal::TooLarge { .. }) => Label::TooLarge,
        NotStored::Catalog(Refusal::TooLargeForSmallQueue { .. }) => Label::TooLargeForSmallQueue,
        NotStored::Catalog(Refusal::AllInUse { .. }) => Label::AllInUse,
        NotStored::Catalog(Refusal::OnPeer) => Label::OnPeer,
        NotStored::Catalog(Refusal::OnParent) => Label::OnParent,
        NotStored::Catalog(Refusal::OnSibling) => Label::OnSibling,
        NotStored::Catalog(Refusal::FrontEnd) => Label::FrontEnd,
        NotStored::Catalog(_) => Label::Refused,
        NotStored::Incomplete => Label::Incomplete,
        NotStored::Module => Label::Module,
        NotStored::Bypass | NotStored::BypassByRule => Label::Other,
    }
}

/// A phase's place among the counters.
pub(crate) const fn phase_label(phase: Phase) -> RequestPhase {
    match phase {
        Phase::RequestHead => RequestPhase::RequestHead,
        Phase::Authorise => RequestPhase::Authorise,
        Phase::Choose => RequestPhase::Choose,
        Phase::Forward => RequestPhase::Forward,
        Phase::RequestContent => RequestPhase::RequestContent,
        Phase::ResponseHead => RequestPhase::ResponseHead,
        Phase::Store => RequestPhase::Store,
        Phase::ResponseContent => RequestPhase::ResponseContent,
        Phase::Done => RequestPhase::Done,
    }
}

/// The source of the response.
pub(crate) fn source(verdict: &Verdict) -> Source {
    match verdict.handling {
        Handling::Hit(_) | Handling::StaleInstead(StaleReason::LinkSpent) => Source::Store,
        Handling::StaleInstead(_)
        | Handling::Forward(_)
        | Handling::Collapsed(_)
        | Handling::Tunnel => Source::NextHop,
        Handling::Refused(_) => Source::Proxy,
    }
}

/// A time as HTTP writes it (RFC 9110 §5.6.7).
pub(crate) fn http_date(at: Timestamp) -> String {
    let mut text = [0; 29];
    write_http_date(at, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// How the request shares the response to another one, if it does.
pub(crate) fn joined(verdict: &Verdict) -> Option<Joined> {
    match verdict.handling {
        Handling::Collapsed(_) => Some(Joined::Collapsed),
        Handling::Hit(Hit::Delayed) => Some(Joined::Delayed),
        _ => None,
    }
}

/// Appends the field `Cache-Status` for a verdict (RFC 9211). A targeted field that decided in
/// place of Cache-Control is named in `detail`: behind the reason, as in
/// `response-no-store/CDN-Cache-Control`, or alone.
pub(crate) fn write_cache_status(settings: &Settings, verdict: &Verdict, out: &mut Vec<u8>) {
    out.extend_from_slice(&settings.cache_status_start);
    let status = verdict.cache_status(settings.name());
    match (settings.targeted_name(verdict.decided_by), status.detail) {
        (None, _) => status.write_parameters(out),
        (Some(field), None) => CacheStatus {
            detail: Some(field),
            ..status
        }
        .write_parameters(out),
        (Some(field), Some(reason)) => CacheStatus {
            detail: Some(&format!("{reason}/{field}")),
            ..status
        }
        .write_parameters(out),
    }
    out.extend_from_slice(b"\r\n");
}

/// What each field of [`write_cache_status`] begins with: its name, and that of the cache.
pub(crate) fn cache_status_start(cache: &str) -> Box<[u8]> {
    let mut out = b"Cache-Status: ".to_vec();
    CacheStatus::write_cache(cache, &mut out);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_measure::Label as _;

    #[test]
    fn phases_are_counted_under_their_own_words_and_meanings() {
        for (phase, (word, about)) in Phase::ALL.into_iter().zip(Phase::WORDS) {
            let label = phase_label(phase);
            assert_eq!(label.word(), *word);
            assert_eq!(RequestPhase::ABOUT[label.index()], *about);
        }
        assert_eq!(Phase::ALL.len(), RequestPhase::COUNT);
    }

    #[test]
    fn response_that_another_cache_keeps_is_counted_under_the_word_of_cache_status() {
        for refusal in [
            Refusal::OnPeer,
            Refusal::OnParent,
            Refusal::OnSibling,
            Refusal::FrontEnd,
        ] {
            let label = label(NotStored::Catalog(refusal));
            assert_eq!(label.word(), refusal.as_str());
        }
    }
}
