//! The conformance vectors against the live proxy: real sockets on loopback, a manual clock, a
//! scripted origin.
//!
//! Every vector has a proxy of its own. What is compared: everything it says, field lines included,
//! and that the origin was asked exactly as often as said. That holds by whatever version of HTTP
//! clients come, and the origin is asked; `doors` names the vectors that are of HTTP/1.1 alone.

mod client;
mod doors;
mod http2;
mod message;
mod origin;
mod origin_http2;
#[expect(dead_code, reason = "a vector does not look at the phases")]
#[path = "../support/phases.rs"]
mod phases;
mod tls;
mod weir;

use doors::{Doors, Http, Tls};
use origin::Origin;
use std::io::Write;
use std::time::{Duration, Instant};
use weir::Weir;
use weir_policy::{Phase, Phases};
use weir_vectors::{
    ClientResponse, Collection, FieldContext, Observation, Request, Runner, Step, Tally, Vector,
    folder, judge,
};

/// A wait that ends here is a proxy that hangs.
const WAIT_MAX: Duration = Duration::from_secs(10);

#[test]
fn gateway_conforms_to_every_vector() {
    check(Doors::http1(Runner::Gateway), Phases::NONE);
}

#[test]
fn forward_proxy_conforms_to_every_vector() {
    check(Doors::http1(Runner::Forward), Phases::NONE);
}

#[test]
fn gateway_conforms_to_every_vector_with_every_phase_hooked() {
    check(Doors::http1(Runner::Gateway), all_phases());
}

#[test]
fn forward_proxy_conforms_to_every_vector_with_every_phase_hooked() {
    check(Doors::http1(Runner::Forward), all_phases());
}

#[test]
fn gateway_conforms_to_every_vector_by_http2() {
    let doors = Doors {
        clients: Http::Two,
        ..Doors::http1(Runner::Gateway)
    };
    check(doors, Phases::NONE);
}

#[test]
fn forward_proxy_conforms_to_every_vector_by_http2() {
    let doors = Doors {
        clients: Http::Two,
        ..Doors::http1(Runner::Forward)
    };
    check(doors, Phases::NONE);
}

#[test]
fn gateway_conforms_to_every_vector_with_a_next_hop_of_http2() {
    let doors = Doors {
        next_hop: Http::Two,
        ..Doors::http1(Runner::Gateway)
    };
    check(doors, Phases::NONE);
}

#[test]
fn gateway_conforms_to_every_vector_by_http2_on_both_sides() {
    let doors = Doors {
        runner: Runner::Gateway,
        clients: Http::Two,
        next_hop: Http::Two,
        tls: Tls::None,
    };
    check(doors, Phases::NONE);
}

#[test]
fn gateway_conforms_to_every_vector_by_tls_on_both_sides() {
    let doors = Doors {
        tls: Tls::BothSides,
        ..Doors::http1(Runner::Gateway)
    };
    check(doors, Phases::NONE);
}

#[test]
fn gateway_conforms_to_every_vector_by_http2_under_tls_on_both_sides() {
    let doors = Doors {
        runner: Runner::Gateway,
        clients: Http::Two,
        next_hop: Http::Two,
        tls: Tls::BothSides,
    };
    check(doors, Phases::NONE);
}

#[test]
fn forward_proxy_conforms_to_every_vector_by_tls() {
    let doors = Doors {
        tls: Tls::Clients,
        ..Doors::http1(Runner::Forward)
    };
    check(doors, Phases::NONE);
}

#[test]
fn forward_proxy_conforms_to_every_vector_by_http2_under_tls() {
    let doors = Doors {
        clients: Http::Two,
        tls: Tls::Clients,
        ..Doors::http1(Runner::Forward)
    };
    check(doors, Phases::NONE);
}

fn all_phases() -> Phases {
    Phase::ALL.into_iter().fold(Phases::NONE, Phases::with)
}

fn check(doors: Doors, hooked: Phases) {
    let collection = Collection::load(folder()).unwrap_or_else(|error| panic!("{error}"));
    let tally = Tally::of(doors.runner, &collection, |vector| {
        run(doors, hooked, vector)
    });
    write!(std::io::stdout(), "{tally}").expect("there is somebody to tell");
    assert_eq!(
        tally.ran() + tally.left_out(),
        collection.vectors().count(),
        "a vector was lost"
    );
    assert!(tally.failed().is_empty(), "{}", tally.failed().join("\n"));
}

fn run(doors: Doors, hooked: Phases, vector: &Vector) -> Vec<String> {
    if doors.excludes(vector) {
        return Vec::new();
    }
    let clock = weir::clock();
    let origin = Origin::start(&clock, doors);
    let weir = Weir::start(doors, hooked, vector, &clock, origin.address());
    let usual_host = match doors.runner {
        Runner::Forward => origin.address().to_string(),
        Runner::Gateway | Runner::Policy | Runner::Simulator => "vectors.test".to_owned(),
    };
    doors.check_names(vector, &usual_host);
    let mut differences = Vec::new();
    for step in &vector.steps {
        let host = step.request.host.as_deref().unwrap_or(&usual_host);
        let context = FieldContext {
            at_s: step.at_s,
            host,
        };
        weir.turn_clock_to(step.at_s);
        let observation = take(step, context, &weir, &origin);
        differences.extend(
            judge(step, context, &observation).iter().map(|difference| {
                format!("step {} (line {}): {difference}", step.number, step.line)
            }),
        );
    }
    drop(weir);
    let late = origin.requests(false);
    if !late.is_empty() {
        differences.push(format!("after the last step the origin was asked {late:?}"));
    }
    differences
}

/// Sends the request of a step while another one holds the only connection to the origin.
fn wait(step: &Step, context: FieldContext<'_>, weir: &Weir, origin: &Origin) -> ClientResponse {
    let other = Request {
        method: "GET".into(),
        target: "/holds-the-connection".into(),
        host: None,
        fields: Vec::new(),
        content: None,
    };
    let held = origin.hold();
    std::thread::scope(|scope| {
        scope.spawn(|| client::exchange(weir, &other, context));
        until(|| origin.is_held());
        let waits = weir.waits();
        let waiting = scope.spawn(|| client::exchange(weir, &step.request, context));
        until(|| weir.waits() > waits);
        weir.turn_clock_to(step.sent_s());
        drop(held);
        waiting.join().expect("the client sees an answer")
    })
}

fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < WAIT_MAX, "the proxy hangs");
        std::thread::yield_now();
    }
}

/// Sends the request of a step; ends when client and origin have seen the end of their part.
fn take(step: &Step, context: FieldContext<'_>, weir: &Weir, origin: &Origin) -> Observation {
    let at_end = FieldContext {
        at_s: step.end_s(),
        ..context
    };
    origin.expect(step, at_end);
    let response = if step.waits_s() > 0 {
        wait(step, context, weir, origin)
    } else {
        client::exchange(weir, &step.request, context)
    };
    let may_come_later = match &step.origin {
        weir_vectors::Origin::Asked(answer) => answer.background,
        weir_vectors::Origin::None => false,
    };
    let requests = origin.requests(may_come_later);
    if !requests.is_empty() {
        weir.settle();
    }
    Observation { requests, response }
}
