//! What the words in a list of recent misses mean.

use super::recent_misses::ForwardedRequest;
use weir_measure::Label;
use weir_measure::live::Meaning;
use weir_policy::RefuseReason;
use weir_semantics::ProxyError;

/// The meanings of the words that say why the requests were forwarded or refused, then of those
/// that say why their responses were not stored or the requests refused: each word once.
pub(super) fn meanings(misses: &[ForwardedRequest]) -> (Vec<Meaning>, Vec<Meaning>) {
    let (mut whys, mut reasons) = (Vec::new(), Vec::new());
    for miss in misses {
        add_label(&mut whys, miss.why);
        match (miss.refused, miss.not_stored) {
            (Some(word), _) => add(&mut reasons, word, || about_refusal(word)),
            (None, Some(why)) => add_label(&mut reasons, why),
            (None, None) => {}
        }
    }
    (whys, reasons)
}

fn add_label<L: Label>(all: &mut Vec<Meaning>, label: L) {
    add(all, label.word(), || Some(L::ABOUT[label.index()]));
}

fn add(all: &mut Vec<Meaning>, word: &str, about: impl FnOnce() -> Option<&'static str>) {
    if all.iter().any(|known| known.word == word) {
        return;
    }
    if let Some(about) = about() {
        all.push(Meaning {
            word: word.to_owned(),
            about: about.trim().to_owned(),
        });
    }
}

/// What a word of a refusal means: a reason of the proxy's own, or an error of Proxy-Status.
fn about_refusal(word: &str) -> Option<&'static str> {
    let mut reasons = RefuseReason::WORDS.iter();
    let reason = reasons.find(|(known, _)| *known == word);
    let mut errors = ProxyError::ALL.iter();
    let error = errors.find(|error| error.as_str() == word);
    let of_reason = reason.map(|(_, about)| *about);
    of_reason.or(error.map(|error| error.about()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_measure::{NotStored, Verdict};

    #[test]
    fn each_word_of_a_list_has_its_meaning_once() {
        let miss = |why, not_stored, refused| ForwardedRequest {
            at_unix_ms: 0,
            method: "GET".into(),
            url: "http://a/".into(),
            client: std::net::Ipv4Addr::LOCALHOST.into(),
            why,
            status: 200,
            not_stored,
            refused,
        };
        let (whys, reasons) = meanings(&[
            miss(Verdict::UriMiss, Some(NotStored::NoLifetime), None),
            miss(Verdict::Method, Some(NotStored::Method), None),
            miss(Verdict::Refused, None, Some("link-spent")),
            miss(Verdict::Error, None, Some("dns_error")),
            miss(Verdict::UriMiss, Some(NotStored::NoLifetime), None),
            miss(Verdict::UriMiss, None, None),
        ]);
        let words = |all: &[Meaning]| -> Vec<String> {
            assert!(all.iter().all(|it| it.about.ends_with('.')), "{all:?}");
            all.iter().map(|it| it.word.clone()).collect()
        };
        assert_eq!(words(&whys), ["uri-miss", "method", "refused", "error"]);
        let expected = ["no-lifetime", "method", "link-spent", "dns_error"];
        assert_eq!(words(&reasons), expected);
        assert!(reasons[2].about.contains("has spent its quota"));
    }
}
