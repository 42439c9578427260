//! `/certificates`: those of listeners with TLS, and how it is with those that are ordered.

use super::super::{Proxy, json, table::aligned, text, wants_json};
use crate::log::words::http_date;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use weir_measure::live::{CertificateOrder, ListenerCertificate, ListenerCertificates, VERSION};
use weir_semantics::Timestamp;

/// Names of a certificate that are listed in text.
const NAMES_SHOWN_MAX: usize = 3;

/// `GET /certificates`.
pub(in crate::admin) async fn certificates(
    State(control): Proxy,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let table = ListenerCertificates {
        version: VERSION,
        certificates: control.listener_certificates(),
    };
    if wants_json(query.as_deref(), &headers) {
        return json(serde_json::to_string(&table));
    }
    text(StatusCode::OK, written(&table.certificates))
}

fn written(rows: &[ListenerCertificate]) -> String {
    if rows.is_empty() {
        return "no listener has TLS\n".into();
    }
    let head = [
        "listener",
        "names",
        "from",
        "ends",
        "ordered",
        "failures",
        "last order",
    ];
    let cells = |row: &ListenerCertificate| {
        let failures = row.failures.map_or_else(String::new, |it| it.to_string());
        [
            row.listener.clone(),
            names(row),
            row.from.clone(),
            row.end_unix_s
                .map_or_else(|| "none yet".to_owned(), date_of_end),
            row.order_unix_s.map_or_else(String::new, date),
            failures,
            row.last_order.as_ref().map_or_else(String::new, order),
        ]
    };
    let rows = std::iter::once(head.map(str::to_owned)).chain(rows.iter().map(cells));
    aligned(&rows.collect::<Vec<_>>())
}

/// What `weir explain` says of the certificate that clients of a host get.
pub(in crate::admin) fn sentence(row: &ListenerCertificate) -> String {
    let ListenerCertificate { listener, from, .. } = row;
    let names = names(row);
    let mut said = match (row.end_unix_s, row.source.as_str()) {
        (Some(end), "file") => {
            let end = date_of_end(end);
            format!("certificate: {names}, of `{from}`, valid until {end} (listener {listener})")
        }
        (Some(end), _) => {
            let end = date_of_end(end);
            format!("certificate: {names}, from {from}, valid until {end} (listener {listener})")
        }
        (None, _) => format!(
            "certificate: none yet for {names}, which {from} is to issue: clients are refused in \
             the handshake (listener {listener})"
        ),
    };
    if let Some(at) = row.order_unix_s {
        let what = match row.end_unix_s {
            Some(_) => "renewed",
            None => "ordered",
        };
        said.push_str(&format!("; {what} {}", date(at)));
    }
    if let Some(last) = &row.last_order {
        said.push_str(&format!("; last order {}", order(last)));
    }
    if let Some(failures @ 2..) = row.failures {
        said.push_str(&format!("; failure {failures} in a row"));
    }
    said
}

fn order(order: &CertificateOrder) -> String {
    let reason = order.reason.as_ref();
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    format!("{} {}{reason}", date(order.at_unix_s), order.end)
}

fn names(row: &ListenerCertificate) -> String {
    let shown = row.names.iter().take(NAMES_SHOWN_MAX);
    let mut shown = shown.cloned().collect::<Vec<_>>().join(", ");
    match row.names.len().saturating_sub(NAMES_SHOWN_MAX) {
        0 => {}
        more => shown.push_str(&format!(" and {more} more")),
    }
    match shown.is_empty() {
        true => "no name".to_owned(),
        false => shown,
    }
}

fn date(at_unix_s: i64) -> String {
    http_date(Timestamp(at_unix_s))
}

fn date_of_end(end_unix_s: u64) -> String {
    date(i64::try_from(end_unix_s).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> ListenerCertificate {
        ListenerCertificate {
            listener: "0.0.0.0:443".into(),
            names: vec!["a.test".into(), "b.test".into()],
            source: "authority".into(),
            from: "https://ca.test/directory".into(),
            end_unix_s: Some(1_788_220_800),
            order_unix_s: Some(1_785_542_400),
            failures: Some(0),
            last_order: None,
        }
    }

    #[test]
    fn sentence_says_where_a_certificate_is_from_when_it_ends_and_is_renewed() {
        let said = sentence(&row());
        assert_eq!(
            said,
            "certificate: a.test, b.test, from https://ca.test/directory, valid until Tue, 01 Sep \
             2026 00:00:00 GMT (listener 0.0.0.0:443); renewed Sat, 01 Aug 2026 00:00:00 GMT"
        );
        let file = ListenerCertificate {
            source: "file".into(),
            from: "/etc/weir/a.pem".into(),
            order_unix_s: None,
            failures: None,
            ..row()
        };
        assert_eq!(
            sentence(&file),
            "certificate: a.test, b.test, of `/etc/weir/a.pem`, valid until Tue, 01 Sep 2026 \
             00:00:00 GMT (listener 0.0.0.0:443)"
        );
    }

    #[test]
    fn sentence_says_that_there_is_none_and_what_the_last_orders_have_met() {
        let failing = ListenerCertificate {
            end_unix_s: None,
            failures: Some(3),
            last_order: Some(CertificateOrder {
                at_unix_s: 1_785_542_340,
                end: "validation".into(),
                reason: Some("no address for a.test".into()),
            }),
            ..row()
        };
        assert_eq!(
            sentence(&failing),
            "certificate: none yet for a.test, b.test, which https://ca.test/directory is to \
             issue: clients are refused in the handshake (listener 0.0.0.0:443); ordered Sat, 01 \
             Aug 2026 00:00:00 GMT; last order Fri, 31 Jul 2026 23:59:00 GMT validation: no \
             address for a.test; failure 3 in a row"
        );
    }
}
