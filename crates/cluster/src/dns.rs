//! Members in the DNS: SRV records (RFC 2782), or the addresses of one name. Kubernetes lists the
//! pods of a headless Service so, and Consul the healthy instances of a service.
//!
//! Names are asked for again when their TTL has passed. An empty answer is not believed: a name
//! server that has just begun, or a service without a healthy instance, answers so.

use crate::member::{Member, WEIGHT_DEFAULT};
use crate::output::Output;
use crate::retry::Retry;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::time::sleep;
use weir_net::next_hops::HopKey;
use weir_net::resolver::{Records, ResolveError, ServiceRecord};
use weir_policy::route::{NodeState, Weight};

/// Names are not asked for more often than this: Consul gives a TTL of 0.
const TTL_MIN: Duration = Duration::from_secs(1);

/// And not less often: a member that has gone is passed over, but one that is new is to be found.
const TTL_MAX: Duration = Duration::from_mins(1);

/// Follows the SRV records of `name` for ever.
pub(crate) async fn follow_services(name: &str, output: &mut Output) {
    let mut retry = Retry::default();
    loop {
        let found = output.resolver.services(name).await;
        let found = found.map(|found| (services(&found.records), found.ttl));
        take(name, found, output, &mut retry).await;
    }
}

/// Follows the addresses of a host for ever.
pub(crate) async fn follow_addresses(hop: &HopKey, output: &mut Output) {
    let mut retry = Retry::default();
    loop {
        let found: Result<Records<IpAddr>, ResolveError> =
            output.resolver.addresses(&hop.host).await;
        let found = found.map(|found| (addresses(&found.records, hop.port), found.ttl));
        take(&hop.host, found, output, &mut retry).await;
    }
}

/// Takes an answer, and waits until the name is to be asked for again.
async fn take(
    name: &str,
    found: Result<(Vec<Member>, Duration), ResolveError>,
    output: &mut Output,
    retry: &mut Retry,
) {
    match found {
        Ok((members, ttl)) => {
            *retry = Retry::default();
            output.publish(members).await;
            sleep(ttl.clamp(TTL_MIN, TTL_MAX)).await;
        }
        Err(error) => {
            output.reporter.fail(&format_args!("`{name}`: {error}"));
            retry.wait().await;
        }
    }
}

/// The members of the lowest priority; a weight of 0 is the smallest there is. Without the records
/// that say that there is no service (RFC 2782: the target `.`).
fn services(records: &[ServiceRecord]) -> Vec<Member> {
    let present = || records.iter().filter(|record| !record.target.is_empty());
    let lowest = present().map(|record| record.priority).min();
    let used = present().filter(|record| Some(record.priority) == lowest);
    let members = used.map(|record| Member {
        name: format!("{}:{}", record.target, record.port),
        hop: HopKey::new(record.target.as_str(), record.port),
        weight: Weight::new(record.weight).unwrap_or(Weight::ONE),
        state: NodeState::In,
    });
    distinct(members.collect())
}

fn addresses(records: &[IpAddr], port: u16) -> Vec<Member> {
    let members = records.iter().map(|ip| Member {
        name: SocketAddr::new(*ip, port).to_string(),
        hop: HopKey::new(&ip.to_string(), port),
        weight: Weight::new(WEIGHT_DEFAULT).unwrap_or(Weight::ONE),
        state: NodeState::In,
    });
    distinct(members.collect())
}

/// A record that comes twice is one member.
fn distinct(mut members: Vec<Member>) -> Vec<Member> {
    members.sort_by(|one, other| one.name.cmp(&other.name));
    members.dedup_by(|one, other| one.name == other.name);
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_the_services_of_the_lowest_priority_with_a_weight_of_at_least_1() {
        let record = |priority, weight, port, target: &str| ServiceRecord {
            priority,
            weight,
            port,
            target: target.to_owned(),
        };
        let check = |records: &[ServiceRecord], expected: &[(&str, u16)]| {
            let members = services(records);
            let found = members.iter().map(|it| (it.name.as_str(), it.weight.get()));
            assert_eq!(found.collect::<Vec<_>>(), expected);
        };
        check(
            &[
                record(1, 5, 3129, "b.example"),
                record(2, 5, 3129, "spare.example"),
                record(1, 0, 3129, "a.example"),
                record(1, 5, 3129, "b.example"),
                record(1, 7, 3130, "a.example"),
            ],
            &[
                ("a.example:3129", 1),
                ("a.example:3130", 7),
                ("b.example:3129", 5),
            ],
        );
        check(&[record(0, 0, 0, "")], &[]);
        check(&[record(0, 0, 0, ""), record(3, 2, 1, "a")], &[("a:1", 2)]);
        check(&[], &[]);
    }

    #[test]
    fn members_are_the_addresses_of_a_name_at_one_port() {
        let records = ["10.0.0.2", "10.0.0.1", "::1", "10.0.0.2"];
        let records = records.map(|ip| ip.parse().unwrap());
        let members = addresses(&records, 3129);
        let names: Vec<&str> = members.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["10.0.0.1:3129", "10.0.0.2:3129", "[::1]:3129"]);
        assert_eq!(members[2].hop.host.as_ref(), "::1");
        assert_eq!(members[0].weight.get(), 100);
        assert!(crate::check(&members).is_ok());
    }
}
