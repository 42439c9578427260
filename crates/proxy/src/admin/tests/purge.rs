//! What a purge answers.

use super::*;

#[test]
fn purge_acts_on_the_given_target_uri_and_reports_count_or_error() {
    let (admin, fake) = start(Fake::default());
    let check = |request: &str, expected: u16, part: &str| {
        let (status, text) = ask(&admin, request);
        assert!(
            status == expected && text.contains(part),
            "{request}: {text}"
        );
    };
    check("POST /purge?url=http://a/1%26 HTTP/1.1", 200, "purged 3\n");
    check(
        "POST /purge HTTP/1.1\nContent-Type: application/json\n\n{\"url\":\"http://a/2\"}",
        200,
        "purged 3\n",
    );
    check("POST /purge HTTP/1.1\n\nhttp://a/3", 200, "purged 3\n");
    check("POST /purge HTTP/1.1", 400, "which URL?");
    check("POST /purge?url=/path HTTP/1.1", 400, "absolute");
    check(
        "POST /purge?url=http://bad/ HTTP/1.1",
        400,
        "cannot purge: no such host",
    );
    check(
        "POST /purge?url=http://full/ HTTP/1.1",
        500,
        "purged, but cannot make the purge durable",
    );
    check("POST /purge-all HTTP/1.1", 200, "purged 7\n");
    check("GET /purge-all HTTP/1.1", 405, "not by this method");
    let long = format!(
        "POST /purge HTTP/1.1\n\nhttp://a/{}",
        "x".repeat(BODY_BYTES_MAX)
    );
    check(&long, 413, "");
    assert_eq!(
        *fake.purged.lock().expect("no panic"),
        ["http://a/1&", "http://a/2", "http://a/3", "all"]
    );
}

#[test]
fn purge_names_each_node_and_fails_if_one_is_not_known_to_have_applied_it() {
    let member = |name: &str, outcome| MemberPurge {
        name: name.to_owned(),
        outcome,
    };
    let check = |members: Vec<MemberPurge>, request: &str, expected: (u16, &str)| {
        let (admin, _fake) = start(Fake {
            members,
            ..Fake::default()
        });
        let (status, text) = ask(&admin, request);
        let (_, text) = text.split_once("\r\n\r\n").expect("a response");
        assert_eq!((status, text), expected, "{request}");
    };
    let done = || vec![member("b", Ok((2, true))), member("c", Ok((0, true)))];
    let one = "POST /purge?url=http://a/ HTTP/1.1";
    check(
        done(),
        one,
        (200, "purged 5\na: purged 3\nb: purged 2\nc: purged 0\n"),
    );
    check(
        done(),
        "POST /purge-all HTTP/1.1",
        (200, "purged 9\na: purged 7\nb: purged 2\nc: purged 0\n"),
    );
    check(
        vec![member("b", Err("it cannot be reached".into()))],
        one,
        (
            502,
            "purged 3\na: purged 3\nb: not purged as far as is known: it cannot be reached; it is told again until it has answered\n",
        ),
    );
    check(
        vec![member("b", Ok((1, false)))],
        one,
        (
            502,
            "purged 4\na: purged 3\nb: purged 1, but its disk did not make that durable\n",
        ),
    );
    let here = "POST /purge?this-node&url=http://a/ HTTP/1.1";
    check(done(), here, (200, "purged 3\n"));
    check(
        done(),
        "POST /purge-all?this-node HTTP/1.1",
        (200, "purged 7\n"),
    );
    check(
        done(),
        "POST /purge?this-node HTTP/1.1\n\nhttp://a/",
        (200, "purged 3\n"),
    );
    check(
        done(),
        "POST /purge-all?these-nodes HTTP/1.1",
        (
            400,
            "unexpected `these-nodes`: use `this-node`, or nothing\n",
        ),
    );
}

#[test]
fn purge_says_that_its_count_may_lack_what_only_the_disk_has() {
    let (admin, _fake) = start(Fake {
        disk_is_loading: true,
        ..Fake::default()
    });
    let (status, text) = ask(&admin, "POST /purge-all HTTP/1.1");
    assert_eq!(status, 200, "{text}");
    let expected = format!("purged 7\n{MORE_ON_DISK}\n");
    assert!(text.ends_with(&expected), "{text}");
}

#[test]
fn purge_says_where_it_is_in_the_log_and_fails_if_it_is_not_known_to_be_there() {
    let check = |log, expected: (u16, &str)| {
        let (admin, _fake) = start(Fake {
            members: vec![MemberPurge {
                name: "b".to_owned(),
                outcome: Ok((0, true)),
            }],
            log: Some(log),
            ..Fake::default()
        });
        let (status, text) = ask(&admin, "POST /purge?url=http://a/ HTTP/1.1");
        assert_eq!(status, expected.0, "{text}");
        assert!(text.ends_with(expected.1), "{text}");
    };
    check(Ok(17), (200, "b: purged 0\nlog: revision 17\n"));
    check(
        Err("etcd does not answer".into()),
        (
            502,
            "log: not entered as far as is known: etcd does not answer; a node that is away now may never know of it\n",
        ),
    );
}

#[test]
fn purge_that_a_node_may_miss_without_being_named_says_so_and_fails() {
    let (admin, _fake) = start(Fake {
        log: Some(Err("etcd does not answer".into())),
        purge_problem: Some("there is no list of members yet".into()),
        ..Fake::default()
    });
    for request in [
        "POST /purge?url=http://a/ HTTP/1.1",
        "POST /purge-all HTTP/1.1",
    ] {
        let (status, text) = ask(&admin, request);
        assert_eq!(status, 502, "{text}");
        let (_, text) = text.split_once("\r\n\r\n").expect("a response");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("purged "), "{text}");
        assert!(
            lines[1].starts_with("log: not entered as far as is known: etcd"),
            "{text}"
        );
        assert_eq!(lines[2..], ["there is no list of members yet"]);
    }
}
