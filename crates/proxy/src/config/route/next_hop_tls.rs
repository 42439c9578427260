//! TLS toward the next hops of a route.

use crate::config::Route;
use crate::config::setting::Setting;
use crate::config::setting::invalid::Invalid;
use crate::config::values::next_hop_url::NextHopUrl;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The `tls` of a `[[route]]` table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NextHopTls {
    /// Certificates of authorities, in PEM; absent: those that the system trusts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// Whether certificates are verified.
    pub verify: bool,
}

impl Default for NextHopTls {
    fn default() -> Self {
        Self {
            ca: None,
            verify: VERIFY,
        }
    }
}

/// A certificate that is not verified says nothing.
const VERIFY: bool = true;

/// The settings of a route about it.
pub(super) fn settings() -> Vec<Setting> {
    vec![
        Setting {
            form: "a file in PEM, such as \"/etc/weir/origin-ca.pem\"",
            ..Setting::new::<String>(
                "route[].tls.ca",
                &[
                    "The certificates of authorities: a next hop of scheme https must have a certificate from one of them, for its host.",
                    "Without it, those that the system trusts (on Debian the package ca-certificates; SSL_CERT_FILE and SSL_CERT_DIR name",
                    "others). A reload reads them again; connections that others had proved themselves on are not used any more.",
                ],
            )
        },
        Setting::new::<bool>(
            "route[].tls.verify",
            &[
                "`false` accepts every certificate, of any name, age and authority: what is on the way can read and change what the",
                "route fetches, and what is then stored for all clients. For tests; better name the authority in `ca`.",
            ],
        )
        .by_default(&VERIFY),
    ]
}

impl NextHopTls {
    /// Refuses what contradicts itself or is for no next hop of the route with this index.
    pub(super) fn check(&self, route: usize, next_hops: &[NextHopUrl]) -> Result<(), Invalid> {
        if !next_hops.iter().any(|hop| hop.tls) {
            return Err(Invalid::new(
                format!("route[{route}].tls"),
                "the route has no next hop of scheme https",
                "write https:// in `next_hops`, or remove the `tls` table",
            ));
        }
        if self.ca.is_some() && !self.verify {
            return Err(Invalid::new(
                format!("route[{route}].tls.verify"),
                "certificates that are not verified need no authority",
                "remove `verify`, or `ca`",
            ));
        }
        Ok(())
    }
}

/// Routes whose next hops prove nothing.
pub(in crate::config) fn warnings(routes: &[Route]) -> Vec<Invalid> {
    let is_unverified = |tls: &NextHopTls| !tls.verify;
    let numbered = routes.iter().enumerate();
    let unverified = numbered.filter(|(_, route)| route.tls.as_ref().is_some_and(is_unverified));
    let each = unverified.map(|(index, _)| {
        Invalid::new(
            format!("route[{index}].tls.verify"),
            "certificates of the next hops are NOT VERIFIED: what is on the way to them can read and \
             change all responses, those that are stored for other clients too",
            "name the file with the certificate of their authority in `ca` instead",
        )
    });
    each.collect()
}
