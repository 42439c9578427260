//! Balancers in front of a listener, which say whose connections they hand on (PROXY protocol).

use super::{Listener, ListenerKind};
use crate::config::setting::Setting;
use crate::config::setting::invalid::Invalid;
use crate::config::values::cidr::Cidr;

pub(super) fn settings() -> Setting {
    Setting::new::<Vec<Cidr>>(
        "listener[].proxy_protocol",
        &[
            "Addresses of balancers in front of the listener. Each of their connections must begin with a header that says",
            "whose it is (PROXY protocol of HAProxy, versions 1 and 2), before TLS if the listener has it: clients are then",
            "admitted, limited, logged and told to next hops by that address. Connections from other addresses are closed.",
            "Without it, no header is read.",
        ],
    )
    .by_default(&Vec::<Cidr>::new())
}

/// Refuses what makes no sense of the list of the listener with this index.
pub(super) fn check(index: usize, listener: &Listener) -> Result<(), Invalid> {
    let path = format!("listener[{index}].proxy_protocol");
    let balancers = &listener.proxy_protocol;
    if listener.mode == ListenerKind::Peer && !balancers.is_empty() {
        return Err(Invalid::new(
            path,
            "members of the cluster send no such header",
            "remove the line",
        ));
    }
    match balancers.iter().position(Cidr::is_everything) {
        None => Ok(()),
        Some(place) => Err(Invalid::new(
            format!("{path}[{place}]"),
            format!("{} would have any client say who it is", balancers[place]),
            "name the addresses of the balancers in front of this listener, such as \"10.0.0.5\"",
        )),
    }
}
