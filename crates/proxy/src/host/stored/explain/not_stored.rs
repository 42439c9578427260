//! Why the last responses to requests for a URL were not stored.

use super::report::NotStoredReport;
use crate::config::TopQueries;
use crate::exchange::state::RequestState;
use crate::log::top::TargetName;
use weir_measure::{Label as _, NotStored};

/// The reasons, of the requests that are remembered (`/misses`), the one of the latest first.
pub(super) fn recently(exchange: &RequestState) -> Vec<NotStoredReport> {
    let admin = &exchange.settings.config.admin;
    if !admin.top {
        return Vec::new();
    }
    let request = &exchange.request;
    let path = Some(request.path_and_query());
    let mut url = String::new();
    TargetName::new(request.scheme, request.host.as_bytes(), request.port, path)
        .write_url(admin.top_queries == TopQueries::Cut, &mut url);
    let mut reports: Vec<NotStoredReport> = Vec::new();
    for miss in exchange.worker.shared.tops.misses(admin).misses {
        let why = miss.not_stored.as_deref().and_then(NotStored::from_word);
        let Some(why) = why.filter(|_| miss.url == url) else {
            continue;
        };
        let reason = why.word();
        match reports.iter_mut().find(|it| it.reason == reason) {
            Some(report) => report.requests += 1,
            None => reports.push(NotStoredReport {
                reason,
                about: NotStored::ABOUT[why.index()].trim(),
                requests: 1,
                status: miss.status,
            }),
        }
    }
    reports
}
