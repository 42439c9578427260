//! Roles apart from each other, each with a connection to the master.

use super::support::{self, Fault, FaultyProxy};
use super::{counts, plan, run};
use std::net::SocketAddr;
use std::time::Duration;
use weir_bench::conduct::{
    ClientRole, ExpectedParticipants, Interrupt, JoinSettings, Master, OriginRole, RunPlan, Shaping,
};
use weir_bench::failure::Failure;
use weir_bench::progress::Progress;
use weir_bench::record;
use weir_measure::record::Record;
use xtask::closed_port::ClosedPort;

/// So many participants on threads of their own.
fn run_apart(plan: &RunPlan, origins: u32, clients: u32) -> Result<Record, Failure> {
    let expected = ExpectedParticipants {
        origins,
        clients,
        within: support::PATIENCE,
    };
    let master = Master::bind(SocketAddr::from(([127, 0, 0, 1], 0)), expected)?;
    let address = master.address();
    let never = &Interrupt::default();
    std::thread::scope(|scope| {
        let (mut serving, mut asking) = (Vec::new(), Vec::new());
        for index in 0..origins {
            let joining = JoinSettings::new(address, format!("origin-{index}"), "0");
            let origin = OriginRole {
                threads: 1,
                listen: None,
            };
            serving.push(scope.spawn(move || joining.run_origin(&origin, never)));
        }
        for index in 0..clients {
            let joining = JoinSettings::new(address, format!("clients-{index}"), "0");
            let clients = ClientRole {
                threads: 1 + index,
                samples: None,
                shaping: Shaping::User,
            };
            asking.push(scope.spawn(move || joining.run_clients(&clients, never)));
        }
        let mut said = Vec::new();
        let gathered = master.conduct(plan, never, &mut Progress::new(&mut said, false))?;
        for participant in serving.into_iter().chain(asking) {
            participant.join().expect("it does not panic")?;
        }
        Ok(record::write_up(plan, &gathered, "0"))
    })
}

#[test]
fn separate_participants_count_the_same_as_a_single_process() {
    let faulty_proxy = FaultyProxy::forward(Fault::None);
    let plan = plan(
        support::wpb(&["workload.clients=7"]),
        Some(faulty_proxy.address()),
    );
    let together = run(&plan, 1);
    let apart = run_apart(&plan, 2, 2).expect("it runs");
    assert!(apart.is_valid, "{:#?}", apart.reasons);
    assert_eq!(counts(&apart), counts(&together));
    assert_eq!(apart.total.client.requests, 140);
    let machines = apart
        .rules
        .iter()
        .find(|rule| rule.rule.contains("machines"));
    assert_eq!(machines.map(|rule| rule.found.as_str()), Some("2 : 2"));
}

#[test]
fn open_loop_request_count_is_the_same_for_separate_participants() {
    let plan = plan(
        support::web(&["workload.agents=10", "workload.rate_per_s=200"]),
        None,
    );
    let together = run(&plan, 2);
    let apart = run_apart(&plan, 1, 2).expect("it runs");
    // a machine with other things to do starts requests late, and that alone may be held against it
    let mut reasons = together.reasons.iter().chain(&apart.reasons);
    assert!(
        reasons.all(|reason| reason.contains("overloaded")),
        "{:#?} {:#?}",
        together.reasons,
        apart.reasons
    );
    let requests = |record: &Record| {
        let phases = record.phases.iter().map(|phase| phase.client.requests);
        phases.collect::<Vec<_>>()
    };
    assert_eq!(requests(&apart), requests(&together));
    assert!(apart.total.client.requests > 100, "{:#?}", apart.total);
}

#[test]
fn missing_participants_are_named_when_the_master_times_out() {
    let expected = ExpectedParticipants {
        origins: 1,
        clients: 2,
        within: Duration::from_millis(300),
    };
    let master =
        Master::bind(SocketAddr::from(([127, 0, 0, 1], 0)), expected).expect("a free port");
    let joining = JoinSettings::new(master.address(), "early".into(), "0");
    let never = &Interrupt::default();
    std::thread::scope(|scope| {
        let clients = ClientRole {
            threads: 1,
            samples: None,
            shaping: Shaping::User,
        };
        let early = scope.spawn(move || joining.run_clients(&clients, never));
        let mut said = Vec::new();
        let plan = plan(support::wpb(&[]), None);
        let failure = master
            .conduct(&plan, never, &mut Progress::new(&mut said, false))
            .expect_err("somebody is missing");
        let text = failure.to_string();
        assert!(
            text.contains("1 of 1 origins and 1 of 2 clients are missing"),
            "{text}"
        );
        assert!(text.contains("clients `early` (127.0.0.1)"), "{text}");
        assert!(
            failure
                .hint
                .expect("a hint")
                .contains("weir bench origin --master")
        );
        let gone = early
            .join()
            .expect("it does not panic")
            .expect_err("the master has gone");
        assert!(gone.to_string().contains("the master has gone"), "{gone}");
    });
}

#[test]
fn participant_that_cannot_listen_fails_the_run_and_is_named() {
    // an address that is not ours
    let elsewhere = SocketAddr::from(([192, 0, 2, 1], 0));
    let plan = plan(support::wpb(&[]), None);
    let mut local = super::local(1);
    local.origin.listen = Some(elsewhere);
    let failure =
        super::conduct(&plan, &local, &Interrupt::default()).expect_err("nobody can listen there");
    let text = failure.to_string();
    assert!(
        text.contains("origin `origin`") && text.contains("192.0.2.1"),
        "{text}"
    );
}

#[test]
fn missing_master_fails_the_participant_with_address_and_hint() {
    let closed = ClosedPort::hold().expect("a port");
    let address = closed.address();
    let joining = JoinSettings {
        within: Duration::from_millis(1),
        ..JoinSettings::new(address, "alone".into(), "0")
    };
    let origin = OriginRole {
        threads: 1,
        listen: None,
    };
    let failure = joining
        .run_origin(&origin, &Interrupt::default())
        .expect_err("nobody is there");
    assert!(
        failure.to_string().contains(&address.to_string()),
        "{failure}"
    );
    assert!(failure.hint.expect("a hint").contains("weir bench master"));
}
