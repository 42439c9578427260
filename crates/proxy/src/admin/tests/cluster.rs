//! The cluster and its routes, as an operator asks for them.

use super::*;
use crate::cluster::report::{LoadReport, MemberReport, MembersReport};

#[test]
fn cluster_is_listed_as_a_table_and_as_json_and_404_without_one() {
    let (admin, _fake) = start(Fake::default());
    let (status, text) = ask(&admin, "GET /cluster HTTP/1.1");
    assert!(status == 404 && text.contains("in no cluster"), "{text}");
    let (status, text) = ask(&admin, "POST /drain HTTP/1.1");
    assert!(status == 404 && text.contains("no member"), "{text}");
    let member = |name: &str, is_own: bool| MemberReport {
        name: name.into(),
        url: format!("http://10.0.0.1/{name}"),
        weight: 100,
        is_own,
        state: if is_own { "in" } else { "gone" },
        gone_for_ms: (!is_own).then_some(7390),
        outstanding: 3,
        response_time_us: (!is_own).then_some(120),
        purges_overdue: if is_own { 0 } else { 7 },
        behind_at: match is_own {
            true => Vec::new(),
            false => vec!["c".into(), "d".into()],
        },
        placement_differs: !is_own,
        report: (!is_own).then_some(LoadReport {
            outstanding: 4,
            miss_pressure: 5,
            age_ms: 60_020,
        }),
    };
    let (admin, _fake) = start(Fake {
        cluster: Some(ClusterReport {
            node: Some("a".into()),
            policy: "hash",
            source: Some(MembersReport {
                source: "file:/m.toml".into(),
                problem: Some("`/m.toml` line 2, column 1: bad".into()),
                errors: 2,
                age_ms: Some(1200),
            }),
            problem: Some("its url leads to another process".into()),
            members: vec![member("a", true), member("b", false)],
        }),
        ..Fake::default()
    });
    let (_, text) = ask(&admin, "GET /cluster HTTP/1.1");
    let table = "\r\n\r\nnode a, policy hash\n\
        members from file:/m.toml, of 1.2 s ago, errors 2: `/m.toml` line 2, column 1: bad\n\
        problem: its url leads to another process\n\
        problem: not the same policy, constants, members, weights and secret as here: b\n\
        name  url                weight  state           outstanding  response time  serving  miss pressure  report age   purges overdue\n\
        a     http://10.0.0.1/a  100     in, this node   3            -              -        -              -            0\n\
        b     http://10.0.0.1/b  100     gone for 7.3 s  3            120 us         4        5              60.0 s, old  7, behind at c d\n";
    assert!(text.ends_with(table), "{text}");
    let (_, text) = ask(&admin, "GET /cluster?format=json HTTP/1.1");
    assert!(text.contains("\"gone_for_ms\": 7390"), "{text}");
    let (_, text) = ask(&admin, "GET /metrics HTTP/1.1");
    for line in [
        "weir_cluster_member_state{node=\"a\",state=\"in\"} 1\n",
        "weir_cluster_member_state{node=\"b\",state=\"gone\"} 1\n",
        "weir_cluster_member_state{node=\"b\",state=\"in\"} 0\n",
        "weir_cluster_member_purges_overdue{node=\"b\"} 7\n",
        "weir_cluster_member_placement_differs{node=\"a\"} 0\n",
        "weir_cluster_member_placement_differs{node=\"b\"} 1\n",
        "weir_cluster_member_outstanding{node=\"b\"} 3\n",
    ] {
        assert!(text.contains(line), "no `{line}` in {text}");
    }
    let check = |request: &str, expected: u16, part: &str| {
        let (status, text) = ask(&admin, request);
        assert!(
            status == expected && text.contains(part),
            "{request}: {text}"
        );
    };
    check("POST /drain HTTP/1.1", 200, "draining");
    check("GET /healthz HTTP/1.1", 503, "draining");
    check("POST /drain/end HTTP/1.1", 200, "in: ");
    check("GET /healthz HTTP/1.1", 200, "ok");
    check("GET /drain HTTP/1.1", 405, "");
}

#[test]
fn route_of_a_url_lists_candidates_with_costs() {
    let (admin, _fake) = start(Fake::default());
    let check = |query: &str, expected: u16, parts: &[&str]| {
        let (status, text) = ask(&admin, &format!("GET /route{query} HTTP/1.1"));
        assert_eq!(status, expected, "{text}");
        for part in parts {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
    };
    let row = "next-hop  -     http://127.0.0.1:8000  in     1       2     0          infinite  0            in-turn  -\n\
        each node";
    check("?url=http://a/", 200, &[row]);
    let last = "a copy\nnever sent to the host of the URL\n";
    check("?url=http://parent/", 200, &[last]);
    check(
        "?mode=gateway&format=json&url=http://a/?mode=forward",
        200,
        &[
            "\"mode\": \"gateway\"",
            "http://a/?mode=forward",
            "\"locality\": null",
        ],
    );
    check("?url=http://a/?format=json", 200, &["next-hop  -"]);
    check(
        "?url=http://nowhere/",
        400,
        &["no route is for this host\n"],
    );
    check("", 400, &["which URL? use GET /route?url="]);
    check("?mode=peer&url=http://a/", 400, &["unexpected `mode=peer`"]);
    check("?url=a", 400, &["not an absolute http"]);
}
