//! The PROXY protocol toward the next hops of a route.

use crate::config::Route;
use crate::config::setting::Setting;
use crate::config::setting::invalid::Invalid;
use crate::config::values::text::choice;
use weir_net::next_hops::ProxyHeaderVersion;

choice! {
    /// A version of the protocol of HAProxy.
    pub enum SendProxyProtocol {
        /// A line of text.
        V1 = "v1",
        /// In binary.
        V2 = "v2",
    }
}

impl SendProxyProtocol {
    /// The version as connections are opened with it.
    pub(crate) const fn version(self) -> ProxyHeaderVersion {
        match self {
            Self::V1 => ProxyHeaderVersion::V1,
            Self::V2 => ProxyHeaderVersion::V2,
        }
    }
}

/// The setting of a route about it.
pub(super) fn setting() -> Setting {
    Setting::new::<SendProxyProtocol>(
        "route[].send_proxy_protocol",
        &[
            "Connections to the next hops begin with a header of the PROXY protocol, version 1 or 2, in front of TLS: the address and",
            "port of the client for whose request it was opened, and where that client's connection was accepted. Each connection is",
            "for one request, and is closed behind it. What no client waits for, probes and what other nodes of a cluster request",
            "have `UNKNOWN` (v1) or `LOCAL` (v2). Without it there is no header.",
        ],
    )
}

/// Routes that ask for HTTP/2, which is not spoken on a connection for one request.
pub(in crate::config) fn warnings(routes: &[Route]) -> Vec<Invalid> {
    let routes = routes.iter().enumerate();
    let in_vain = routes
        .filter(|(_, route)| route.http2 == Some(true) && route.send_proxy_protocol.is_some());
    let warnings = in_vain.map(|(index, _)| {
        Invalid::new(
            format!("route[{index}].http2"),
            "HTTP/1.1 is spoken all the same: with `send_proxy_protocol` each connection is for one \
             request",
            "leave one of the two out",
        )
    });
    warnings.collect()
}
