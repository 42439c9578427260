//! Answers that end too early.

use weir_icap::{ClientError, Limits, Transaction};

use crate::events::{Events, Stop, feed_client};
use crate::script::{
    CONTINUE, REQMOD, REQUEST, RESPMOD, RESPONSE, Shape, UNMODIFIED, modified, send, service,
};

/// Every beginning of `answer` is incomplete, and all of it is whole.
fn check(start: impl Fn() -> Transaction, answer: &str) {
    for cut in 0..=answer.len() {
        let mut client = start();
        let mut events = Events::default();
        let (_, stop) = feed_client(&mut client, &answer.as_bytes()[..cut], &mut events);
        let is_whole = cut == answer.len();
        let is_ended = stop == Stop::End;
        assert_eq!(is_ended, is_whole, "cut at {cut}: {events:?}");
        let expected = if is_whole {
            Ok(())
        } else {
            Err(ClientError::Incomplete)
        };
        assert_eq!(client.at_eof(), expected, "cut at {cut}");
        assert!(!client.is_reusable());
        let after = client.receive(b"0\r\n\r\n");
        assert_eq!(after.is_ok(), is_whole, "nothing is read after a failure");
    }
}

#[test]
fn answer_cut_at_each_byte_is_an_error() {
    let preview = Shape {
        preview: Some(2),
        ..RESPMOD
    };
    let sent = || preview.sent(b"hello");
    check(sent, UNMODIFIED);
    check(
        sent,
        &format!(
            "{CONTINUE}{}",
            modified("res-hdr=0, null-body=25", RESPONSE)
        ),
    );
    let content = format!("{RESPONSE}5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");
    check(sent, &modified("res-hdr=0, res-body=25", &content));
    let trailers = format!("{RESPONSE}1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n");
    check(sent, &modified("res-hdr=0, res-body=25", &trailers));
    check(sent, "ICAP/1.0 500 Server error\r\nISTag: \"t1\"\r\n\r\n");
    let request = format!("{REQUEST}0\r\n\r\n");
    check(
        || REQMOD.sent(b""),
        &modified("req-hdr=0, req-body=27", &request),
    );
    let options = || {
        let mut client = Transaction::options(&service(), &[], Limits::default()).unwrap();
        send(&mut client);
        client
    };
    check(options, &modified("opt-body=0", "5\r\nhello\r\n0\r\n\r\n"));
}
