//! Rules and modules on the same request: changes of requests come before all modules, changes of
//! responses behind them.

use crate::support::{Setup, scripted};
use crate::{answer, ruled};

const FRESH: &str = "Cache-Control: max-age=60\r\n";

#[test]
fn rules_change_requests_before_modules_and_responses_behind_them() {
    let change = ruled(
        r#"[{"request": ["set X-In: rule"], "response": ["set X-Out: rule"]},
            {"path": ["/denied"], "deny": "no"},
            {"path": ["/bypassed"], "bypass": true}]"#,
    );
    Setup::each_with(
        |config| {
            change(config);
            config.modules = vec![
                scripted("in", &[("request-received", "remove X-In")]),
                scripted("out", &[("response-sent", "set X-Out module")]),
            ];
        },
        |setup| {
            let fields = format!("{FRESH}Connection: close\r\n");
            let check = |path: &str, verdict: &str| {
                let mut client = setup.proxy.client();
                client.send(setup.head("GET", path, "1.1", "X-In: client\r\n"));
                let (_, head) = setup.origin.answer(answer(&fields));
                assert!(!head.has("x-in"), "{head:?}");
                let response = client.read_response();
                assert_eq!(response.head.all("x-out"), ["rule"]);
                assert!(
                    response.verdict().contains(verdict),
                    "{}",
                    response.verdict()
                );
            };
            check("/", ";stored");
            let hit = setup.proxy.client().ask(setup.get("/"));
            assert!(hit.is_hit());
            assert_eq!(hit.head.all("x-out"), ["rule"]);
            check("/bypassed", "fwd=bypass");
            check("/bypassed", "detail=rule");
            let denied = setup.proxy.client().ask(setup.get("/denied"));
            assert_eq!(denied.status(), 403);
            assert!(
                denied.verdict().ends_with("detail=rule"),
                "{}",
                denied.verdict()
            );
        },
    );
}
