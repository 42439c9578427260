use super::*;

fn check<L: Label + PartialEq + core::fmt::Debug>() {
    for (place, label) in L::ALL.iter().enumerate() {
        assert_eq!(label.index(), place);
        assert_eq!(
            L::from_word(label.word()),
            Some(*label),
            "two labels share a word"
        );
        let plain = label
            .word()
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        assert!(plain, "`{}` would need escaping", label.word());
    }
    assert_eq!(L::from_word("no such word"), None);
}

#[test]
fn every_label_round_trips_through_its_word_and_index() {
    check::<Verdict>();
    check::<RequestPhase>();
    check::<StatusClass>();
    check::<NotStored>();
    check::<Joined>();
    check::<Lost>();
    check::<DiskLookupEnd>();
    check::<DiskRefusal>();
    check::<Aborted>();
    check::<Source>();
    check::<Reuse>();
    check::<Supply>();
    check::<OpenReason>();
    check::<WaitReason>();
    check::<WaitEnd>();
    check::<HopOutcome>();
    check::<DnsOutcome>();
    check::<PeerRefusal>();
    check::<HandOffRefusal>();
    check::<Unrecorded>();
    check::<ModuleFault>();
    check::<ModuleRequestEnd>();
    check::<LoginOutcome>();
    check::<HttpVersion>();
    check::<Http2End>();
    check::<Http2Reset>();
    check::<TlsHandshakeEnd>();
    check::<AcmeOrderEnd>();
    check::<ProxyHeaderEnd>();
    check::<ReloadOutcome>();
}

#[test]
fn status_class_is_the_hundreds_digit_from_100_to_599() {
    let data = [
        (99, StatusClass::Other),
        (100, StatusClass::Informational),
        (199, StatusClass::Informational),
        (200, StatusClass::Successful),
        (399, StatusClass::Redirection),
        (400, StatusClass::ClientError),
        (599, StatusClass::ServerError),
        (600, StatusClass::Other),
    ];
    for (status, expected) in data {
        assert_eq!(StatusClass::of(status), expected, "{status}");
    }
}
