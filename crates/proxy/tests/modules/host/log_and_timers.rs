//! What a module has of its host: the time, the worker, the log, and its timer.

use crate::support::{Running, ScriptedOrigin, asking, localhost};
use weir_measure::{Metric, ModuleFault};
use weir_proxy::config::Module;

fn proxy(options: &[(&str, &str)]) -> Running {
    Running::forward_with(|config| {
        config.access.allow_destinations = vec![localhost()];
        config.modules = vec![asking("asks", options)];
    })
}

fn ask(proxy: &Running, what: &str) -> String {
    let mut client = proxy.client();
    client.send(format!(
        "GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: 127.0.0.1:1\r\nX-Do: {what}\r\n\r\n"
    ));
    client.read_response().text()
}

#[test]
fn module_knows_its_worker_and_the_time_of_the_proxy() {
    let proxy = proxy(&[]);
    assert_eq!(ask(&proxy, "worker"), "0");
    proxy.clock.advance_ms(1234);
    assert_eq!(ask(&proxy, "wall"), "1767225601234");
}

#[test]
fn line_of_a_module_is_written_with_its_name_and_too_many_are_dropped() {
    let proxy = proxy(&[]);
    for _ in 0..25 {
        ask(&proxy, "log a\tb");
    }
    assert_eq!(proxy.count(Metric::ModuleLinesDropped), 5);
    proxy.clock.advance_ms(1000);
    ask(&proxy, "log again");
    proxy.wait_until_said("module `asks`: (5 lines dropped) warning: again", 1);
    assert_eq!(proxy.said("module `asks`: warning: a\\tb"), 20);
}

const TICK: &str = "module `asks`: tick";

/// Waits for ticks of another module, which began to tick with the configuration in force.
fn wait_for_another(proxy: &Running) {
    proxy.wait_until_said("module `clock`: tick", 3);
}

fn clock() -> Module {
    asking("clock", &[("period_ms", "100"), ("tick", "log")])
}

#[test]
fn timer_ticks_while_its_configuration_is_in_force() {
    let options = [("period_ms", "1"), ("tick", "log")];
    let proxy = proxy(&options);
    proxy.wait_until_said(TICK, 3);
    proxy.reload(|config| config.modules = vec![asking("asks", &[]), clock()]);
    // on its worker the timer has ended when another one has begun
    proxy.wait_until_said("module `clock`: tick", 1);
    let ticks = proxy.said(TICK);
    wait_for_another(&proxy);
    assert_eq!(proxy.said(TICK), ticks);
    proxy.reload(|config| config.modules = vec![asking("asks", &options)]);
    proxy.wait_until_said(TICK, ticks + 2);
    assert!(proxy.control().set_module_enabled("asks", false));
    proxy.reload(|config| config.modules.push(clock()));
    wait_for_another(&proxy);
    let ticks = proxy.said(TICK);
    proxy.wait_until_said("module `clock`: tick", 6);
    assert_eq!(proxy.said(TICK), ticks, "it is disabled");
}

#[test]
fn timer_that_panics_is_a_failure_of_its_module_and_opens_its_breaker() {
    for tick in ["panic", "panic-later"] {
        let proxy = proxy(&[("period_ms", "100"), ("tick", tick)]);
        let crashed = Metric::ModuleFailures(ModuleFault::Crashed);
        proxy.wait_for_at_least(crashed, 5);
        let mut client = proxy.client();
        let request = "GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: x\r\nX-Do: worker\r\n\r\n";
        assert_eq!(client.ask(request).status(), 502, "{tick}");
        assert_eq!(proxy.count(crashed), 5);
    }
}

#[test]
fn task_that_panics_is_a_failure_of_its_module_and_opens_its_breaker() {
    let proxy = proxy(&[]);
    let crashed = Metric::ModuleFailures(ModuleFault::Crashed);
    for failures in 1..=5 {
        assert_eq!(ask(&proxy, "spawn-panic"), "true");
        proxy.wait_for(crashed, failures);
    }
    let request = "GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: x\r\nX-Do: worker\r\n\r\n";
    assert_eq!(proxy.client().ask(request).status(), 502);
}

#[test]
fn timer_waits_for_what_its_last_tick_returned() {
    let mut proxy = proxy(&[("period_ms", "100"), ("tick", "never")]);
    proxy.wait_until_said(TICK, 1);
    proxy.reload(|config| config.modules.push(clock()));
    wait_for_another(&proxy);
    assert!(proxy.said(TICK) <= 2, "once for each configuration");
    // the proxy does not wait for it
    assert!(proxy.stopping().join().expect("no panic"));
}

#[test]
fn timer_sends_requests() {
    let origin = ScriptedOrigin::new();
    let url = format!("fetch http://{}/feed", origin.address());
    let proxy = proxy(&[("period_ms", "100"), ("tick", &url)]);
    let (mut hop, head) = origin.answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(head.start_line(), "GET /feed HTTP/1.1");
    hop.answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    drop(proxy);
}
