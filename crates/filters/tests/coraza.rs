//! The Coraza WAF with the Core Rule Set in a live proxy: it stops its test attacks.
//!
//! By `make test-coraza` only: it fetches and builds the filter, and compiles 25 MB of WebAssembly.

#[path = "live/bed.rs"]
#[allow(dead_code, reason = "a part of it is used")]
mod bed;
#[path = "live/http.rs"]
#[allow(dead_code, reason = "a part of it is used")]
mod http;

use bed::{Bed, build, filter, get, post, text, wait_for};
use http::{Message, Origin, response};
use std::path::PathBuf;
use weir_proxy::config::{Module as ModuleTable, ModuleOption};

const RULES: &str = r#"{
    "directives_map": {
        "default": [
            "Include @demo-conf",
            "SecRuleEngine On",
            "Include @crs-setup-conf",
            "Include @owasp_crs/*.conf"
        ]
    },
    "default_directives": "default"
}"#;

fn waf() -> ModuleTable {
    let printed = build("coraza");
    let file = PathBuf::from(printed.trim());
    let options = [
        ("configuration", text(RULES)),
        ("memory", text("256MiB")),
        ("start_deadline", ModuleOption::Number(120_000)),
    ];
    filter(&file, &options)
}

#[test]
fn waf_stops_its_test_attacks_and_lets_other_requests_pass() {
    let origin = Origin::new(|request: &Message| response("", &request.text()));
    let bed = Bed::before(origin, vec![waf()]);
    let notes = || bed.report().notes.join("\n");
    let agent = "User-Agent: curl/8.0\r\nAccept: */*\r\n";
    wait_for(|| bed.ask(&get("/", agent)).status() == 200, "the WAF");
    for path in [
        "/?id=1%27%20OR%20%271%27=%271%27--%20",
        "/?id=1%20UNION%20SELECT%20password%20FROM%20users",
        "/?file=../../../../etc/passwd",
        "/?q=%3Cscript%3Ealert(1)%3C/script%3E",
    ] {
        let answer = bed.ask(&get(path, agent));
        assert_eq!(answer.status(), 403, "{path}: {}\n{}", answer.head, notes());
    }
    let form = format!("{agent}Content-Type: application/x-www-form-urlencoded\r\n");
    for content in [
        "id=1%27+OR+%271%27%3D%271%27--+",
        "q=%3Cscript%3Ealert(1)%3C%2Fscript%3E",
    ] {
        let answer = bed.ask(&post("/form", &form, content));
        assert_eq!(
            answer.status(),
            403,
            "{content}: {}\n{}",
            answer.head,
            notes()
        );
        // no client keeps its content from the WAF
        let kept = format!("{form}Cache-Control: no-transform\r\n");
        assert_eq!(
            bed.ask(&post("/form", &kept, content)).status(),
            403,
            "{content}"
        );
    }
    let answer = bed.ask(&post("/form", &form, "name=alice&city=paris"));
    assert_eq!(answer.status(), 200, "{}\n{}", answer.head, notes());
    assert_eq!(answer.text(), "name=alice&city=paris");
    let seen = bed.origin.seen();
    assert!(seen.iter().all(|request| !request.head.contains("id=1")));
    let metrics = bed.report().metrics;
    assert!(
        metrics.keys().any(|name| name.contains("waf_filter")),
        "{metrics:?}"
    );
}
