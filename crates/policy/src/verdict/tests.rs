use super::*;
use std::collections::BTreeSet;

/// Every word is there once, and is a token of lower case letters, digits and hyphens.
fn check_words<'a>(words: impl IntoIterator<Item = &'a str>) {
    let mut seen = BTreeSet::new();
    for word in words {
        assert!(seen.insert(word), "{word} means two things");
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        assert!(!word.is_empty() && word.bytes().all(fits), "{word:?}");
    }
}

#[test]
fn every_handling_has_a_unique_word_and_detail() {
    let mut texts = Vec::new();
    let mut add = |handling: Handling| {
        let detail = handling.detail().unwrap_or("plain");
        texts.push(format!("{}-{detail}", handling.as_str()));
    };
    for hit in [
        Hit::Fresh,
        Hit::MaxStale,
        Hit::WhileRevalidate,
        Hit::Delayed,
    ] {
        add(Handling::Hit(hit));
    }
    for fwd in Fwd::ALL {
        add(Handling::Forward(fwd));
    }
    add(Handling::Collapsed(Fwd::UriMiss));
    for excuse in StaleReason::ALL {
        add(Handling::StaleInstead(excuse));
    }
    add(Handling::Refused(RefuseReason::OnlyIfCached));
    add(Handling::Refused(RefuseReason::NextHop));
    add(Handling::Tunnel);
    check_words(texts.iter().map(String::as_str));
}

#[test]
fn refusal_words_are_unique() {
    let all = [
        RefuseReason::OnlyIfCached,
        RefuseReason::AnsweredHere,
        RefuseReason::BadRequest,
        RefuseReason::Denied,
        RefuseReason::NextHop,
        RefuseReason::MustRevalidate,
        RefuseReason::Loop,
        RefuseReason::Overloaded,
        RefuseReason::Unreadable,
        RefuseReason::LinkSpent,
    ];
    check_words(all.map(RefuseReason::as_str));
}

#[test]
fn not_stored_reason_words_are_unique() {
    let causes = [
        Uncachable1998::Method,
        Uncachable1998::Query,
        Uncachable1998::CgiBin,
        Uncachable1998::Authorization,
        Uncachable1998::Cookie,
        Uncachable1998::ClientCacheControl,
        Uncachable1998::ServerCacheControl,
    ];
    let too_large = Refusal::TooLarge {
        size_bytes: 2,
        size_max_bytes: 1,
    };
    let refusals = [too_large, Refusal::NoSlot, Refusal::NotResident];
    let rules = NotStorable::ALL.iter().map(|rule| NotStored::Rule(*rule));
    let all = rules
        .chain(causes.map(NotStored::Profile))
        .chain(refusals.map(NotStored::Catalog))
        .chain([
            NotStored::SetCookie,
            NotStored::StoredIsUsable,
            NotStored::VaryChanged,
            NotStored::Useless,
            NotStored::Conditional,
            NotStored::Bypass,
            NotStored::Incomplete,
        ]);
    check_words(all.map(NotStored::as_str));
}

#[test]
fn collapsed_request_is_reported_as_collapsed_with_its_forward_reason() {
    for fwd in Fwd::ALL {
        let verdict = Verdict {
            handling: Handling::Collapsed(fwd),
            fwd_status: None,
            decided_by: DecidedBy::CacheControl,
            storing: None,
            ttl: Some(60),
            marks: Marks::NONE,
            may_be_purged: false,
        };
        assert_eq!(verdict.handling.as_str(), "collapsed");
        assert_eq!(verdict.reason(), Some(fwd.as_str()));
        let status = verdict.cache_status("weir");
        assert_eq!(
            (status.hit, status.fwd, status.collapsed, status.detail),
            (false, Some(fwd), Some(true), None),
            "RFC 9211 §2.6: it would have been forwarded, and was not"
        );
        let alone = Verdict {
            handling: Handling::Forward(fwd),
            ..verdict
        };
        assert_eq!(alone.handling.as_str(), fwd.as_str());
        assert_eq!(alone.cache_status("weir").collapsed, None);
    }
}

#[test]
fn what_may_have_been_purged_is_the_detail_of_its_validation_alone() {
    let verdict = |handling, may_be_purged| Verdict {
        handling,
        may_be_purged,
        storing: Some(Storing::NotStored(NotStored::Useless)),
        ..Verdict::new()
    };
    let stale = Handling::Forward(Fwd::Stale);
    assert_eq!(verdict(stale, true).detail(), Some("may-be-purged"));
    assert_eq!(verdict(stale, false).detail(), Some("no-lifetime"));
    // the client wants it validated anyway
    let request = Handling::Forward(Fwd::Request);
    assert_eq!(verdict(request, true).detail(), Some("no-lifetime"));
    let refused = Handling::Refused(RefuseReason::MustRevalidate);
    assert_eq!(verdict(refused, true).detail(), Some("must-revalidate"));
}
