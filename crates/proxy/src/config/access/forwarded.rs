//! What next hops are told of whom a request is forwarded for, and whose word of that is believed.

use crate::config::listener::Mode;
use crate::config::setting::invalid::Invalid;
use crate::config::setting::table;
use crate::config::values::cidr::Cidr;
use crate::config::values::text::Form;
use weir_policy::forwarded::{ClientName, ForwardedField, ForwardedRules};

table! {
    /// The `[forwarded]` table: `X-Forwarded-For`, `-Proto`, `-Host` and `Forwarded` (RFC 7239).
    pub struct Forwarded in "forwarded" {
        /// Proxies in front of this one, whose word is believed: what they say in such fields is
        /// sent on, with the proxy itself added. Of all other clients these fields are removed, and
        /// so is any `X-Forwarded-*` and `X-Real-IP`. Clients are admitted, denied, limited and
        /// logged by the address of their connection in any case.
        trusted_proxies: Vec<Cidr> = Vec::new();
        /// Clients that one of these proxies has on one connection of HTTP/2, at most: it may send
        /// and bring about so many times the resets and frames without content of one client before
        /// its connection ends.
        clients_per_connection: u32 = 100, from 1, to 10_000;
        /// What gateways send. An origin cannot know otherwise who asked, and by which host and
        /// protocol. An empty list sends none; those of clients are removed all the same.
        gateway_fields: Vec<ForwardedField> = ForwardedField::ALL.to_vec();
        /// What forward proxies send. None, so that no site learns of the network behind the proxy;
        /// those of clients are removed all the same, and those of trusted proxies are sent on as
        /// they came.
        forward_fields: Vec<ForwardedField> = Vec::new();
        /// How the client is named: by its address, in `Forwarded` also with its port; by an
        /// identifier that only this proxy can tell (`_` and 16 hexadecimal digits), which is
        /// `unknown` in `X-Forwarded-For`; or as `unknown`.
        client: ClientName = ClientName::Address;
    }
}

impl Forwarded {
    /// The rules for listeners of `mode`.
    pub(crate) fn rules(&self, mode: Mode) -> ForwardedRules {
        let sent = match mode {
            Mode::Gateway => &self.gateway_fields,
            Mode::Forward => &self.forward_fields,
        };
        ForwardedRules {
            trusted: self.trusted_proxies.iter().map(Cidr::net).collect(),
            sent: sent.clone(),
            client: self.client,
        }
    }
}

impl Form for Vec<ForwardedField> {
    const FORM: &'static str =
        "a list of \"X-Forwarded-For\", \"X-Forwarded-Proto\", \"X-Forwarded-Host\", \"Forwarded\"";
}

impl Form for ClientName {
    const FORM: &'static str = Self::FORM;
}

/// Refuses fields that are named twice, and to believe everybody.
pub(in crate::config) fn check(forwarded: &Forwarded) -> Result<(), Invalid> {
    for (key, fields) in [
        ("gateway_fields", &forwarded.gateway_fields),
        ("forward_fields", &forwarded.forward_fields),
    ] {
        let is_repeated = |index: &usize| fields[..*index].contains(&fields[*index]);
        if let Some(index) = (0..fields.len()).find(is_repeated) {
            return Err(Invalid::new(
                format!("forwarded.{key}[{index}]"),
                format!("{} is in the list twice", fields[index]),
                "remove one of the two",
            ));
        }
    }
    let trusted = &forwarded.trusted_proxies;
    match trusted.iter().position(Cidr::is_everything) {
        None => Ok(()),
        Some(index) => Err(Invalid::new(
            format!("forwarded.trusted_proxies[{index}]"),
            format!(
                "{} would have any client say who it is, and which host and protocol an origin is to \
                 make links of",
                trusted[index]
            ),
            "name the addresses of the proxies in front of this one, such as \"10.0.0.5\"",
        )),
    }
}
