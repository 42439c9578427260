//! The property that a client relies on: what is answered is what the site describes, field by
//! field and byte by byte.

use std::net::Ipv4Addr;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use weir_bench::origin::OriginListen;
use weir_semantics::Timestamp;
use weir_workload::{Representation, Scenario, Target, Workload, number};

use crate::support::{Reply, TestOrigin, date, now, target, web, wpb};

/// Asks for the target, and again if the second changed meanwhile: then it is not known which one
/// was meant.
fn ask<'s>(served: &'s TestOrigin, target: Target) -> (Reply, Representation<'s>, Timestamp) {
    let line = format!("GET /s{}{} HTTP/1.1", target.server, served.path(target));
    loop {
        let mut wire = served.wire();
        let before = now();
        let reply = wire.ask(&[&line, "Host: a"]);
        if now() == before {
            return (reply, served.site.describe(target, before), before);
        }
    }
}

fn check(served: &TestOrigin, target: Target) {
    let (reply, about, at) = ask(served, target);
    assert_eq!(reply.status, 200);
    let mut tag = Vec::new();
    served
        .site
        .write_entity_tag(target, about.version, &mut tag);
    let tag = String::from_utf8(tag).expect("a tag");
    let max_age = about.max_age_s.map(|seconds| format!("max-age={seconds}"));
    let control = match (about.cache_control, max_age) {
        (Some(directives), Some(max_age)) => Some(format!("{directives}, {max_age}")),
        (directives, max_age) => directives.map(str::to_owned).or(max_age),
    };
    let expected = [
        ("Date", Some(date(at))),
        ("Content-Type", Some(about.content_type.to_owned())),
        ("Content-Length", Some(about.length.to_string())),
        ("Last-Modified", about.modified.map(date)),
        ("ETag", about.etag.then_some(tag)),
        ("Expires", about.expires.map(date)),
        ("Cache-Control", control),
        ("Vary", about.vary.map(str::to_owned)),
        ("Weir-Bench", Some(format!("- {}", about.version))),
        ("Age", None),
    ];
    for (name, value) in expected {
        assert_eq!(reply.field(name), value.as_deref(), "{name} of {target:?}");
    }
    let cookie = reply
        .field("set-cookie")
        .map(|value| value.split(';').next().unwrap_or_default().len() as u64);
    let cookie_bytes = served.site.cookie_bytes(target).max("visit=".len() as u64);
    assert_eq!(
        cookie,
        about.set_cookie.then_some(cookie_bytes),
        "{target:?}"
    );
    let content = served.site.content(target, about.version);
    assert_eq!(reply.content.len() as u64, about.length, "{target:?}");
    assert_eq!(content.differs_at(0, &reply.content), None, "{target:?}");
}

/// As a gateway, so that the hundreds of servers of some take one port.
fn serve(scenario: Scenario) -> TestOrigin {
    let gateway = OriginListen::Gateway((Ipv4Addr::LOCALHOST, 0).into());
    TestOrigin::on(scenario, gateway, 1)
}

fn check_site(scenario: Scenario, numbers: impl Strategy<Value = u64>) {
    let served = serve(scenario);
    let servers = served.site.servers();
    let mut runner = TestRunner::new(Config {
        // what fails, fails at some time of the wall clock: a file of seeds would not find it again
        failure_persistence: None,
        ..Config::with_cases(100)
    });
    runner
        .run(&(0..servers, numbers), |(server, number)| {
            check(&served, Target { server, number });
            Ok(())
        })
        .expect("all alike");
}

#[test]
fn generated_target_is_answered_as_the_site_describes_it() {
    check_site(web(&[]), 0_u64..20_000);
    check_site(wpb(&[]), 0_u64..1_000_000);
}

#[test]
fn target_of_every_built_in_scenario_is_answered_as_described() {
    for name in Scenario::names() {
        let mut scenario = Scenario::built_in(name).expect("built in");
        for quick in [
            "latency=constant(0s)",
            "keep_alive=true",
            "aborted_share=0%",
            "link=none",
        ] {
            scenario.set(&format!("origin.{quick}")).expect("a key");
        }
        if let Workload::PolyMix(mix) = &scenario.workload {
            let kinds = u8::try_from(mix.contents.len()).expect("few");
            let index = 0_u64..1 << 30;
            let numbers = (0..kinds, index).prop_map(|(kind, index)| number(kind, None, index));
            check_site(scenario, numbers);
        } else {
            check_site(scenario, 0_u64..100);
        }
    }
}

#[test]
fn changed_target_is_sent_with_new_content_and_version() {
    let served = serve(web(&[
        "workload.life_cycle.length=constant(1s)",
        "workload.life_cycle.variance=0%",
    ]));
    let long = |number: &u64| served.site.length(target(*number)) > 100;
    let target = (0..).find(long).map(target).expect("one");
    let (first, about, _) = ask(&served, target);
    let version = about.version;
    // a second is over when it is over: asks until then
    let (later, about) = loop {
        let (reply, about, _) = ask(&served, target);
        if about.version != version {
            break (reply, about);
        }
    };
    assert!(
        first.content != later.content,
        "{first:?} {later:?} {about:?}"
    );
    assert_ne!(first.field("weir-bench"), later.field("weir-bench"));
    check(&served, target);
}
