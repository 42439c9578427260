//! A participant that runs origins.

use super::message::{OriginResult, OriginTask, ToMaster, ToParticipant};
use super::participant::{MasterSession, OriginRole, out_of_turn};
use crate::failure::Failure;
use crate::origin::{self, OriginListen, OriginPlan};
use crate::usage::OwnThreads;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use weir_measure::record::Mode;
use weir_workload::{Addresses, Scenario};

/// The first address of servers that have one each, as Polygraph numbers them: robots from
/// 127.0.0.1, servers from subnet 128.
const FIRST_SERVER: Ipv4Addr = Ipv4Addr::new(127, 0, 128, 0);

/// Names of the origin's threads begin with it.
const THREADS: &str = "weir-origin-";

/// Between two keep-alive messages.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// Runs the master's task until the run is over.
pub(super) fn run(session: &MasterSession<'_>, own: &OriginRole) -> Result<(), Failure> {
    let task = match session.wait()? {
        ToParticipant::Serve(task) => *task,
        // the run has ended before it began
        ToParticipant::Stop => return Ok(()),
        other => return Err(out_of_turn(&other)),
    };
    let scenario = Scenario::parse("the scenario of the master", &task.scenario)
        .map_err(|error| Failure::usage("cannot serve", error))?;
    let listen = listen(&task, scenario.origin.addresses, own.listen, session.near)?;
    let connections_max = origin::connections_for(&scenario);
    let origin = origin::start(&OriginPlan {
        scenario: Arc::new(scenario),
        seed: task.seed,
        listen,
        threads: own.threads,
        shares: task.shares,
        connections_max,
    })?;
    let servers = origin
        .servers()
        .iter()
        .map(|&server| announced(server, session.near));
    session.send(&ToMaster::Ready {
        servers: servers.collect(),
        takes_us: 0,
    })?;
    let Some(start_at) = session.wait_for_go()? else {
        return Ok(());
    };
    origin.begin(start_at);
    let mut load = OwnThreads::named(THREADS);
    loop {
        match session.hear(SIGN_OF_LIFE)? {
            Some(ToParticipant::Stop) => break,
            Some(other) => return Err(out_of_turn(&other)),
            None => {}
        }
        if session.interrupt.is_set() {
            return Err(Failure::outside("cannot go on", "interrupted"));
        }
        load.look();
        let requests = origin.counts().total().requests;
        session.send(&ToMaster::Served { requests })?;
    }
    let load = load.load();
    let counts = origin.stop();
    session.send(&ToMaster::Counted(Box::new(OriginResult { counts, load })))
}

/// Where to listen: where the operator says, or else where the master has reached us.
fn listen(
    task: &OriginTask,
    addresses: Addresses,
    wanted: Option<SocketAddr>,
    near: IpAddr,
) -> Result<OriginListen, Failure> {
    let what = "cannot serve";
    if task.mode == Mode::Gateway {
        return Ok(OriginListen::Gateway(
            wanted.unwrap_or(SocketAddr::new(near, 0)),
        ));
    }
    match addresses {
        Addresses::One => Ok(OriginListen::Ports {
            address: wanted.map_or(near, |wanted| wanted.ip()),
            first: wanted.map(|wanted| wanted.port()).filter(|&port| port != 0),
        }),
        Addresses::Each => {
            let (first, port) = match wanted {
                Some(wanted) => (wanted.ip(), wanted.port()),
                None if near.is_loopback() => (IpAddr::V4(FIRST_SERVER), 0),
                None => {
                    let cause = "its servers have an address each, and which ones is not known";
                    return Err(Failure::usage(what, cause).with_hint(
                        "give the first with --listen ADDR:PORT (--origin-listen for `weir bench run`); they must be this machine's. Or let \
                         servers share one address, a port each: --set origin.addresses=one",
                    ));
                }
            };
            match first {
                IpAddr::V4(first) => Ok(OriginListen::Addresses { first, port }),
                IpAddr::V6(first) => {
                    let cause =
                        format!("servers with an address each need IPv4, and {first} is none");
                    Err(Failure::usage(what, cause))
                }
            }
        }
    }
}

/// An address that others can reach.
fn announced(server: SocketAddr, near: IpAddr) -> SocketAddr {
    if server.ip().is_unspecified() {
        return SocketAddr::new(near, server.port());
    }
    server
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(mode: Mode) -> OriginTask {
        OriginTask {
            scenario: String::new(),
            seed: 1,
            shares: 1,
            mode,
        }
    }

    #[test]
    fn origin_listens_on_the_wanted_or_the_nearest_reachable_address() {
        let check =
            |mode, addresses, wanted: Option<&str>, near: &str, expected: Option<OriginListen>| {
                let wanted = wanted.map(|wanted| wanted.parse().expect("an address"));
                let near = near.parse().expect("an address");
                let found = listen(&task(mode), addresses, wanted, near);
                assert_eq!(
                    found.ok(),
                    expected,
                    "{mode:?} {addresses:?} {wanted:?} {near}"
                );
            };
        let (forward, gateway) = (Mode::Forward, Mode::Gateway);
        let ports = |address: [u8; 4], first| {
            Some(OriginListen::Ports {
                address: IpAddr::from(address),
                first,
            })
        };
        let each = |first, port| Some(OriginListen::Addresses { first, port });
        check(
            forward,
            Addresses::One,
            None,
            "10.1.1.1",
            ports([10, 1, 1, 1], None),
        );
        check(
            forward,
            Addresses::One,
            Some("0.0.0.0:8000"),
            "10.1.1.1",
            ports([0, 0, 0, 0], Some(8000)),
        );
        check(
            forward,
            Addresses::One,
            Some("10.0.0.9:0"),
            "10.1.1.1",
            ports([10, 0, 0, 9], None),
        );
        check(
            forward,
            Addresses::Each,
            None,
            "127.0.0.1",
            each(FIRST_SERVER, 0),
        );
        check(
            forward,
            Addresses::Each,
            Some("10.0.128.0:80"),
            "10.0.0.1",
            each(Ipv4Addr::new(10, 0, 128, 0), 80),
        );
        check(forward, Addresses::Each, None, "10.0.0.1", None);
        check(forward, Addresses::Each, Some("[::1]:80"), "::1", None);
        let one = OriginListen::Gateway(SocketAddr::from(([127, 0, 0, 1], 0)));
        check(gateway, Addresses::Each, None, "127.0.0.1", Some(one));
    }

    #[test]
    fn wildcard_address_is_announced_as_the_reachable_one() {
        let near = IpAddr::from([10, 1, 1, 1]);
        let server = |address: [u8; 4]| SocketAddr::from((address, 8000));
        assert_eq!(announced(server([0, 0, 0, 0]), near), server([10, 1, 1, 1]));
        assert_eq!(
            announced(server([10, 2, 2, 2]), near),
            server([10, 2, 2, 2])
        );
    }
}
