//! What tells the admin interface from other programs.

use super::*;

#[test]
fn each_answer_names_the_version_of_the_interface() {
    let (_folder, token) = token();
    let (admin, _fake) = start(Fake {
        token: Some(token),
        ..Fake::default()
    });
    for (request, expected) in [
        ("GET / HTTP/1.1", 200),
        ("GET /healthz HTTP/1.1", 200),
        ("HEAD /metrics HTTP/1.1", 200),
        ("GET / HTTP/1.1\nAccept: text/html", 200),
        ("GET /top HTTP/1.1", 404),
        ("GET /nothere HTTP/1.1", 404),
        ("GET /purge HTTP/1.1", 405),
        ("POST /purge-all HTTP/1.1", 401),
        ("GET http://evil.example/ HTTP/1.1", 403),
    ] {
        let (status, text) = ask(&admin, request);
        assert_eq!(status, expected, "{request}");
        let head = text.split("\r\n\r\n").next().unwrap_or_default();
        let lines = head.lines();
        let found = lines.filter(|line| line.starts_with(VERSION_FIELD));
        assert_eq!(
            found.collect::<Vec<_>>(),
            ["weir-admin: 1"],
            "{request}: {head}"
        );
    }
}

#[test]
fn list_and_refusals_begin_with_the_lines_that_programs_look_for() {
    let (admin, _fake) = start(Fake::default());
    for (request, line) in [
        ("GET / HTTP/1.1", LIST_TITLE),
        ("GET /nothere HTTP/1.1", NO_ENDPOINT),
        ("GET /purge HTTP/1.1", NO_METHOD),
    ] {
        let (_, text) = ask(&admin, request);
        let (_, body) = text.split_once("\r\n\r\n").expect("a body");
        assert_eq!(body.lines().next(), Some(line), "{request}");
    }
}
