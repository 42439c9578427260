//! A run in one process: the same master and the same participants, over loopback.

use super::connections;
use super::interrupt::Interrupt;
use super::master::{ExpectedParticipants, Master};
use super::participant::{ClientRole, JoinSettings, OriginRole};
use super::plan::RunPlan;
use super::run_outcome::RunOutcome;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::usage::ProxyProcess;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::SystemTime;
use weir_measure::record::Mode;
use weir_workload::{Addresses, Chance};

/// The participants of a local run.
#[derive(Clone, Debug)]
pub struct LocalPlan {
    /// The clients.
    pub clients: ClientRole,
    /// The origin. It listens on the address that the proxy is reached from, unless it says where.
    pub origin: OriginRole,
    /// The version of the program.
    pub version: String,
}

/// Conducts a run with all roles on threads of this process.
///
/// # Errors
/// What [`Master::conduct`] fails with.
pub fn run(
    plan: &RunPlan,
    local: &LocalPlan,
    interrupt: &Interrupt,
    progress: &mut Progress<'_>,
) -> Result<RunOutcome, Failure> {
    let what = "cannot start the run";
    // rather than when the threads wait for a master that has given up
    plan.proxy_pid.map(ProxyProcess::find).transpose()?;
    connections::raise_for_both(&plan.scenario);
    let master = Master::bind(
        SocketAddr::from(([127, 0, 0, 1], 0)),
        ExpectedParticipants::default(),
    )?;
    let joining = |name: &str| JoinSettings::new(master.address(), name.to_owned(), &local.version);
    let (run_origin, run_clients) = (joining("origin"), joining("clients"));
    let mut origin = local.origin;
    if origin.listen.is_none() {
        origin.listen = reached_from(plan.proxy)
            .map_err(|error| Failure::outside(what, error))?
            .or_else(|| own_loopback(plan));
    }
    // the master stops them; a signal is its matter
    let never = Interrupt::default();
    let no_thread = |error: io::Error| Failure::outside(what, error);
    std::thread::scope(|scope| {
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let origin = named("weir-serve")
            .spawn_scoped(scope, || run_origin.run_origin(&origin, &never))
            .map_err(no_thread)?;
        let clients = named("weir-ask")
            .spawn_scoped(scope, || run_clients.run_clients(&local.clients, &never))
            .map_err(no_thread)?;
        let gathered = master.conduct(plan, interrupt, progress);
        // they have reported their failures to the master
        let _ = (origin.join(), clients.join());
        gathered.map(|gathered| RunOutcome {
            is_one_process: true,
            ..gathered
        })
    })
}

/// The address of ours that a proxy on another machine can reach; `None` for one on this machine,
/// which uses loopback.
fn reached_from(proxy: Option<SocketAddr>) -> io::Result<Option<SocketAddr>> {
    let Some(proxy) = proxy.filter(|proxy| !proxy.ip().is_loopback()) else {
        return Ok(None);
    };
    let any: IpAddr = match proxy {
        SocketAddr::V4(_) => IpAddr::from([0; 4]),
        SocketAddr::V6(_) => IpAddr::from([0; 16]),
    };
    // nothing is sent: the kernel says which address it would use
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(proxy)?;
    Ok(Some(SocketAddr::new(socket.local_addr()?.ip(), 0)))
}

/// An address of the loopback network that no earlier run has used, most likely. A cache under test
/// may still hold what an origin of an earlier run sent, and ports are given out again: the same
/// URL with other content would pass for a wrong one.
fn own_loopback(plan: &RunPlan) -> Option<SocketAddr> {
    if plan.mode == Mode::Gateway || plan.scenario.origin.addresses != Addresses::One {
        return None;
    }
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let moment = since.unwrap_or_default().as_nanos() ^ u128::from(std::process::id());
    let chance = Chance::new(u64::try_from(moment & u128::from(u64::MAX)).unwrap_or(0), 0).word();
    let [low, middle, high, ..] = chance.to_le_bytes();
    // 127.64.0.1 to 127.127.255.254: clear of what systems use themselves
    let address = [127, 64 | (high & 63), middle, low.clamp(1, 254)];
    Some(SocketAddr::from((address, 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_has_no_external_address_for_a_loopback_proxy_or_none() {
        let proxy = SocketAddr::from(([127, 0, 0, 1], 3128));
        assert_eq!(reached_from(Some(proxy)).expect("nothing is asked"), None);
        assert_eq!(reached_from(None).expect("nothing is asked"), None);
    }
}
