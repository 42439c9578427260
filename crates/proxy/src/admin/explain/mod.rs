//! `GET /explain`: what would become of a request, why, and what is stored for its URL.

mod text;

use super::guard::may_see_values;
use super::{Control, StoredError, asks_for_json, json, purge, stored, text as plain};
use crate::host::stored::explain::ExplainCall;
use crate::host::stored::explain::report::Explanation;
use axum::extract::{RawQuery, State};
use axum::http::uri::Scheme;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use weir_extend::{Fields, ListenerMode, StoredTarget};
use weir_semantics::is_token;

/// The longest method, in bytes.
const METHOD_BYTES_MAX: usize = 64;

const HTTPS: &str = "https://";

/// What is said of an `https` URL.
const TUNNEL: &str = "https goes through tunnels (CONNECT): the proxy sees no URL in them, and nothing of them is cached";

/// The parameters of a request to explain. The URL is the last one: an `&` within it is written
/// `%26`.
#[derive(Debug, PartialEq, Eq)]
struct Parameters {
    mode: Option<ListenerMode>,
    method: String,
    client: IpAddr,
    listener: Option<String>,
    fields: Fields,
    url: String,
}

impl Parameters {
    fn read(query: &str) -> Result<Self, String> {
        let mut parameters = Self {
            mode: None,
            method: "GET".into(),
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
            listener: None,
            fields: Fields::default(),
            url: String::new(),
        };
        let (each, url) = purge::before_url(query);
        for parameter in each {
            parameters.add(parameter)?;
        }
        let Some(url) = url else {
            return Err("which URL? use GET /explain?url=http://host/path".into());
        };
        parameters.url = purge::url(Some(url), None, b"")?;
        if parameters.mode == Some(ListenerMode::Forward) {
            check_scheme(&parameters.url)?;
        }
        Ok(parameters)
    }

    fn add(&mut self, parameter: &str) -> Result<(), String> {
        match parameter.split_once('=') {
            Some(("mode", "forward")) => self.mode = Some(ListenerMode::Forward),
            Some(("mode", "gateway")) => self.mode = Some(ListenerMode::Gateway),
            Some(("mode", other)) => {
                return Err(format!("`{other}` is no mode: use forward or gateway"));
            }
            Some(("format", "json" | "text")) => {}
            Some(("method", "CONNECT")) => {
                return Err("a tunnel is not explained: nothing of it is stored".into());
            }
            Some(("method", method)) => {
                if !is_token(method.as_bytes()) || method.len() > METHOD_BYTES_MAX {
                    return Err(format!("`{}` is no method", method.escape_debug()));
                }
                method.clone_into(&mut self.method);
            }
            Some(("client", client)) => {
                let address = client.parse();
                let why = |_| format!("`{}` is no IP address", client.escape_debug());
                self.client = address.map_err(why)?;
            }
            Some(("listener", listener)) => self.listener = Some(listener.to_owned()),
            Some(("field", field)) => stored::add_field(&mut self.fields, field, |_| true)?,
            _ => {
                return Err(format!(
                    "unexpected `{}`: use mode, method, client, listener, field, format, and url last",
                    parameter.escape_debug()
                ));
            }
        }
        Ok(())
    }
}

/// Refuses the URL of a request to a forward proxy that sees none of it.
///
/// # Errors
///
/// It is one by `https`.
pub(crate) fn check_scheme(url: &str) -> Result<(), String> {
    let scheme = url.get(..HTTPS.len()).unwrap_or_default();
    match scheme.eq_ignore_ascii_case(HTTPS) {
        true => Err(TUNNEL.into()),
        false => Ok(()),
    }
}

/// `GET /explain`.
pub(super) async fn explain(
    State(control): State<Arc<dyn Control>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let query = query.unwrap_or_default();
    let is_json = asks_for_json(purge::before_url(&query).0, &headers);
    let parameters = match Parameters::read(&query) {
        Ok(parameters) => parameters,
        Err(why) => return plain(StatusCode::BAD_REQUEST, format!("{why}\n")),
    };
    let mode = parameters.mode;
    let mut target = StoredTarget::new(mode.unwrap_or(ListenerMode::Forward), parameters.url);
    target.fields = parameters.fields;
    let call = ExplainCall {
        method: parameters.method,
        target,
        client: parameters.client,
        listener: parameters.listener,
        shows_values: may_see_values(&headers, control.token().as_deref()),
    };
    let reply = match control.explain(mode, call) {
        Ok(reply) => reply.await,
        Err(why) => return plain(StatusCode::BAD_REQUEST, format!("{why}\n")),
    };
    match reply {
        Ok(Ok(mut explanation)) => {
            add_next_hop(&*control, &mut explanation);
            add_certificates(&*control, &mut explanation);
            if is_json {
                json(serde_json::to_string_pretty(&explanation).map(|text| text + "\n"))
            } else {
                plain(StatusCode::OK, text::of(&explanation))
            }
        }
        Ok(Err(error)) => stored::failed(error),
        Err(_) => stored::failed(StoredError::Unavailable),
    }
}

/// Adds where the request would be sent, if it would be.
fn add_next_hop(control: &dyn Control, explanation: &mut Explanation) {
    if explanation.storing.is_none() || explanation.outcome.status.is_some() {
        return;
    }
    let mode = match explanation.request.mode {
        "gateway" => ListenerMode::Gateway,
        _ => ListenerMode::Forward,
    };
    match control.route(Some(mode), &explanation.request.url) {
        Ok(route) => explanation.next_hop = Some(route),
        Err(why) => explanation.next_hop_problem = Some(why),
    }
}

/// Adds which certificates its client gets in the handshake before it.
fn add_certificates(control: &dyn Control, explanation: &mut Explanation) {
    let request = &explanation.request;
    let url = Uri::try_from(&request.url).ok();
    let url = url.filter(|url| url.scheme() == Some(&Scheme::HTTPS));
    if let Some(host) = url.as_ref().and_then(Uri::host) {
        explanation.certificates = control.certificates_for(request.listener.as_deref(), host);
        let all = &explanation.certificates;
        let is_for_it = all.iter().any(|it| names_host(&it.names, host));
        if !all.is_empty() && !is_for_it {
            explanation.certificate_problem = Some(format!(
                "no certificate is for {host}: clients get one for other names, and refuse it unless \
                 they verify none; on a connection for another name, they get 421"
            ));
        }
    }
}

/// Whether a certificate with these names and addresses is for the host of a URL (RFC 6125 §6.4).
fn names_host(names: &[String], host: &str) -> bool {
    let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host);
    let address: Option<IpAddr> = host.parse().ok();
    let behind_first_label = host.split_once('.').map(|(_, rest)| rest);
    names
        .iter()
        .any(|name| match (address, name.strip_prefix("*.")) {
            (Some(_), _) => name.parse().ok() == address,
            (None, Some(parent)) => behind_first_label == Some(parent),
            (None, None) => name == host,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_is_for_its_names_and_addresses_and_one_label_of_a_wildcard() {
        let names = ["a.test", "*.b.test", "192.0.2.7", "2001:db8::1"].map(ToOwned::to_owned);
        for (host, expected) in [
            ("a.test", true),
            ("A.test.", true),
            ("x.b.test", true),
            ("b.test", false),
            ("x.y.b.test", false),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("[2001:db8:0::1]", true),
            ("other.test", false),
        ] {
            assert_eq!(names_host(&names, host), expected, "{host}");
        }
    }

    #[test]
    fn parameters_say_the_request_and_the_url_is_the_last() {
        let read = Parameters::read(
            "method=HEAD&client=192.0.2.1&mode=gateway&field=Cookie:%20a=b&format=json&url=http://a/?b%26c",
        );
        let mut fields = Fields::default();
        fields.add("Cookie", b"a=b").expect("a field");
        let expected = Parameters {
            mode: Some(ListenerMode::Gateway),
            method: "HEAD".into(),
            client: "192.0.2.1".parse().expect("an address"),
            listener: None,
            fields,
            url: "http://a/?b&c".into(),
        };
        assert_eq!(read, Ok(expected));
        for wrong in [
            "",
            "mode=both&url=http://a/",
            "method=A B&url=http://a/",
            "method=CONNECT&url=http://a/",
            "client=localhost&url=http://a/",
            "field=Host:%20b&url=http://a/",
            "x=y&url=http://a/",
            "url=/x",
        ] {
            assert!(Parameters::read(wrong).is_err(), "{wrong}");
        }
    }
}
