//! Questions whose answers are not kept: all records of a name, with their TTL.

use super::ResolveError;
use super::lookup::lookup;
use hickory_resolver::TokioResolver;
use hickory_resolver::proto::rr::{RData, RecordType};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The most records of an answer that are looked at.
const RECORDS_MAX: usize = 2048;

/// The records of a name, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records<T> {
    /// In no order.
    pub records: Vec<T>,
    /// The shortest of their TTLs.
    pub ttl: Duration,
}

/// Where a service is (RFC 2782).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRecord {
    /// Those with the lowest number are to be used.
    pub priority: u16,
    /// Its share among those of one priority.
    pub weight: u16,
    /// The port.
    pub port: u16,
    /// The host, without its final dot; empty: there is no such service.
    pub target: String,
}

/// What the resolver thread is asked.
pub(super) enum Question {
    /// For the cache.
    Addresses(Arc<str>),
    /// For one caller.
    Records(RecordQuestion),
}

/// A question of one caller.
pub(super) struct RecordQuestion {
    pub(super) name: String,
    pub(super) asked: Asked,
}

type Reply<T> = oneshot::Sender<Result<Records<T>, ResolveError>>;

/// What is asked, and who gets the answer.
pub(super) enum Asked {
    Services(Reply<ServiceRecord>),
    Addresses(Reply<IpAddr>),
}

impl RecordQuestion {
    /// Asks name servers. A caller that gave up gets no answer.
    pub(super) async fn answer(self, resolver: &TokioResolver, limit: Duration) {
        let name = &self.name;
        match self.asked {
            Asked::Services(reply) => {
                let found = lookup(resolver, name, RecordType::SRV, limit, service).await;
                let _gone = reply.send(found);
            }
            Asked::Addresses(reply) => {
                let v4 = lookup(resolver, name, RecordType::A, limit, RData::ip_addr);
                let v6 = lookup(resolver, name, RecordType::AAAA, limit, RData::ip_addr);
                let (v4, v6) = tokio::join!(v4, v6);
                let _gone = reply.send(both(v4, v6));
            }
        }
    }
}

/// The addresses of both families. If one family is not known, neither is: a list that is not whole
/// would take members out.
fn both(
    v4: Result<Records<IpAddr>, ResolveError>,
    v6: Result<Records<IpAddr>, ResolveError>,
) -> Result<Records<IpAddr>, ResolveError> {
    match (v4, v6) {
        (Ok(mut v4), Ok(v6)) => {
            v4.records.extend(v6.records);
            v4.ttl = v4.ttl.min(v6.ttl);
            Ok(v4)
        }
        (Ok(found), Err(ResolveError::NotFound)) | (Err(ResolveError::NotFound), Ok(found)) => {
            Ok(found)
        }
        (Err(ResolveError::NotFound), Err(error)) | (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

fn service(data: &RData) -> Option<ServiceRecord> {
    let RData::SRV(srv) = data else {
        return None;
    };
    let mut target = srv.target.to_ascii().to_ascii_lowercase();
    target.truncate(target.trim_end_matches('.').len());
    Some(ServiceRecord {
        priority: srv.priority,
        weight: srv.weight,
        port: srv.port,
        target,
    })
}

/// Those that are of the kind that is asked for.
pub(super) fn records<'a, T>(
    data: impl Iterator<Item = (u32, &'a RData)>,
    read: impl Fn(&RData) -> Option<T>,
) -> Result<Records<T>, ResolveError> {
    let mut ttl = u32::MAX;
    let mut records = Vec::new();
    for (record_ttl, data) in data.take(RECORDS_MAX) {
        ttl = ttl.min(record_ttl);
        records.extend(read(data));
    }
    if records.is_empty() {
        return Err(ResolveError::NotFound);
    }
    Ok(Records {
        records,
        ttl: Duration::from_secs(ttl.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_family_alone_are_all_only_if_there_are_none_of_the_other() {
        let some = |last: u8, ttl: u64| {
            Ok(Records {
                records: vec![IpAddr::from([192, 0, 2, last])],
                ttl: Duration::from_secs(ttl),
            })
        };
        let none = || Err(ResolveError::NotFound);
        let failed = || Err(ResolveError::Timeout);
        let joined = both(some(1, 9), some(2, 3)).unwrap();
        assert_eq!((joined.records.len(), joined.ttl.as_secs()), (2, 3));
        assert_eq!(both(some(1, 9), none()), some(1, 9));
        assert_eq!(both(none(), some(1, 9)), some(1, 9));
        assert_eq!(both(none(), none()), none());
        for (one, other) in [
            (some(1, 9), failed()),
            (failed(), none()),
            (none(), failed()),
        ] {
            assert_eq!(both(one.clone(), other.clone()), failed());
            assert_eq!(both(other, one), failed());
        }
    }
}
