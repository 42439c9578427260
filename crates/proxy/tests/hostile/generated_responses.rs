//! Answers of our own to what a next hop did: the response and the log say the same of them.

use crate::support::{Running, ScriptedOrigin};
use serde_json::Value;
use weir_proxy::config::{LogFormat, LogTarget};

#[test]
fn cache_status_of_a_generated_response_equals_the_logged_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway_with(origin.address(), |config| {
        config.log.access = LogTarget::File(path.clone());
        config.log.format = LogFormat::Json;
    });
    let chunked = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n";
    let broken = format!("{chunked}\r\nZZ\r\n");
    // what came before can be kept as a part
    let broken_later = format!("{chunked}ETag: \"a\"\r\n\r\n2\r\nab\r\nZZ\r\n");
    let mut said = Vec::new();
    for (answer, expected) in [
        (
            broken.as_str(),
            "weir;fwd=miss;fwd-status=200;detail=next-hop",
        ),
        (
            &broken_later,
            "weir;fwd=miss;fwd-status=200;detail=next-hop",
        ),
        ("HTTP/9 what\r\n\r\n", "weir;fwd=miss;detail=next-hop"),
        ("", "weir;fwd=miss;detail=next-hop"),
    ] {
        let mut client = proxy.client();
        client.send(format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", said.len()));
        drop(origin.answer(answer));
        let response = client.read_response();
        assert_eq!(response.status(), 502, "{answer:?}");
        let status = response.head.field("cache-status");
        assert_eq!(status, Some(expected), "{answer:?}");
        said.push(expected);
    }
    for (request, status, expected) in [
        ("TRACE / HTTP/1.1\r\nHost: a\r\n", 405, "weir;detail=denied"),
        (
            "GET /x HTTP/1.1\r\nHost: a\r\nCache-Control: only-if-cached\r\n",
            504,
            "weir;detail=only-if-cached",
        ),
    ] {
        let response = proxy.client().ask(format!("{request}\r\n"));
        assert_eq!(response.status(), status, "{request}");
        assert_eq!(response.head.field("cache-status"), Some(expected));
        said.push(expected);
    }
    // the last lines are written when it has ended
    drop(proxy);
    let text = std::fs::read_to_string(path).expect("a log");
    let lines = text.lines().map(serde_json::from_str);
    let lines: Vec<Value> = lines.collect::<Result<_, _>>().expect("JSON");
    let logged: Vec<_> = lines.iter().map(|line| &line["cache_status"]).collect();
    assert_eq!(logged, said);
    for line in &lines {
        assert_eq!(line["stored"], false, "{line}");
    }
}
