//! Families whose labels have values that a configuration names: modules, parents, members of a
//! cluster. They are no slots of a block of counters; the driver has their values.

use crate::metric::Kind;

/// Such a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedFamily {
    /// Prometheus name, complete.
    pub name: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// Counter or gauge.
    pub kind: Kind,
    /// What is counted, a plural noun.
    pub unit: &'static str,
    /// Explanation, one paragraph, without line breaks.
    pub help: &'static str,
}

impl NamedFamily {
    /// What modules count by themselves.
    pub const MODULE_METRIC: Self = Self {
        name: "weir_module_metric",
        labels: &["module", "metric"],
        kind: Kind::Gauge,
        unit: "events",
        help: "What a module counts by itself, by its name and that of the number.",
    };

    /// Requests to parents and siblings.
    pub const PARENT_REQUESTS: Self = Self {
        name: "weir_parent_requests_total",
        labels: &["parent", "kind", "outcome"],
        kind: Kind::Counter,
        unit: "requests",
        help: "Requests to parents and siblings: answered, missed (a sibling has nothing stored \
               for it), or failed (it was not reached, or did not answer in time).",
    };

    /// Requests that rules are for.
    pub const RULE_MATCHED: Self = Self {
        name: "weir_rule_matched_total",
        labels: &["rule"],
        kind: Kind::Counter,
        unit: "requests",
        help: "Requests that a rule of the operator is for, by what it says of requests: status \
               and media type of the response are not looked at, nor whether an earlier rule \
               decides. It continues over a reload if the rule keeps its name; a rule without one is \
               called by its place, and continues what was counted of the rule that had it.",
    };

    /// Requests that are outstanding at members.
    pub const MEMBER_OUTSTANDING: Self = Self {
        name: "weir_cluster_member_outstanding",
        labels: &["node"],
        kind: Kind::Gauge,
        unit: "requests",
        help: "Requests that this node has outstanding at a member of the cluster; at itself, \
               those that it serves.",
    };

    /// Purges that members have not been told.
    pub const MEMBER_PURGES_OVERDUE: Self = Self {
        name: "weir_cluster_member_purges_overdue",
        labels: &["node"],
        kind: Kind::Gauge,
        unit: "purges",
        help: "Purges and invalidations that a member of the cluster has not been told yet, \
               since it does not answer.",
    };

    /// The states of members.
    pub const MEMBER_STATE: Self = Self {
        name: "weir_cluster_member_state",
        labels: &["node", "state"],
        kind: Kind::Gauge,
        unit: "members",
        help: "1 for the state that a member of the cluster is in as far as this node knows, 0 \
               for the others: joining, in, draining, front-end, to-be-probed, gone. A member \
               that fails is gone, then to-be-probed until it has answered.",
    };

    /// Members that do not agree with this node.
    pub const MEMBER_PLACEMENT_DIFFERS: Self = Self {
        name: "weir_cluster_member_placement_differs",
        labels: &["node"],
        kind: Kind::Gauge,
        unit: "members",
        help: "1 while a member of the cluster has other nodes keep targets than this node does, \
               as it said last: their policies, constants, members, weights or secrets differ, \
               and the origin may be asked for a target by several nodes.",
    };

    /// Bytes from next hops behind links.
    pub const LINK_RECEIVED: Self = Self {
        name: "weir_link_received_bytes_total",
        labels: &["link"],
        kind: Kind::Counter,
        unit: "bytes",
        help: "Bytes read from next hops behind a link, heads, framing and tunnels included, those \
               of IP and TCP not.",
    };

    /// Bytes to next hops behind links.
    pub const LINK_SENT: Self = Self {
        name: "weir_link_sent_bytes_total",
        labels: &["link"],
        kind: Kind::Counter,
        unit: "bytes",
        help: "Bytes written to next hops behind a link, counted as those received are.",
    };

    /// How long transfers waited for links.
    pub const LINK_WAITED: Self = Self {
        name: "weir_link_waited_seconds_total",
        labels: &["link"],
        kind: Kind::Counter,
        unit: "seconds",
        help: "How long transfers waited for a link, the sum over all of them: for its rate, or \
               until bytes of its quota were booked on the device.",
    };

    /// The rates of links.
    pub const LINK_RATE: Self = Self {
        name: "weir_link_rate_bytes_per_second",
        labels: &["link"],
        kind: Kind::Gauge,
        unit: "bytes a second",
        help: "The rate of a link now, bytes a second: that of its time window or of a spent \
               quota, if one of these has its own. Not there without a rate.",
    };

    /// The quotas of links.
    pub const LINK_QUOTA: Self = Self {
        name: "weir_link_quota_bytes",
        labels: &["link"],
        kind: Kind::Gauge,
        unit: "bytes",
        help: "The quota of a link, bytes of each period. Not there without a quota, nor are the \
               numbers about it.",
    };

    /// What of them is spent.
    pub const LINK_SPENT: Self = Self {
        name: "weir_link_spent_bytes",
        labels: &["link"],
        kind: Kind::Gauge,
        unit: "bytes",
        help: "What of the quota of a link is spent in this period, with heads of IP and TCP; what \
               a process that was killed had booked counts as spent.",
    };

    /// When their periods end.
    pub const LINK_PERIOD_END: Self = Self {
        name: "weir_link_period_end_timestamp_seconds",
        labels: &["link"],
        kind: Kind::Gauge,
        unit: "seconds",
        help: "When the next period of the quota of a link begins, seconds since 1970 UTC.",
    };

    /// Requests that were not sent over links.
    pub const LINK_REFUSED: Self = Self {
        name: "weir_link_refused_total",
        labels: &["link"],
        kind: Kind::Counter,
        unit: "requests",
        help: "Requests that were sent to no next hop, since the quota of a link was spent; a \
               stale response may have been the answer.",
    };

    /// When certificates end.
    pub const CERTIFICATE_EXPIRY: Self = Self {
        name: "weir_tls_certificate_expiry_timestamp_seconds",
        labels: &["name"],
        kind: Kind::Gauge,
        unit: "seconds",
        help: "When a certificate of a listener ends, seconds since 1970 UTC, by the first of its \
               names; of several with that name the first that ends.",
    };

    /// Orders that have failed in a row.
    pub const ACME_FAILURES: Self = Self {
        name: "weir_acme_failures",
        labels: &["name"],
        kind: Kind::Gauge,
        unit: "orders",
        help: "Orders of a certificate that have failed since the last one that did not, by the \
               first of its names.",
    };

    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::CERTIFICATE_EXPIRY,
        Self::ACME_FAILURES,
        Self::MODULE_METRIC,
        Self::PARENT_REQUESTS,
        Self::RULE_MATCHED,
        Self::LINK_RECEIVED,
        Self::LINK_SENT,
        Self::LINK_WAITED,
        Self::LINK_RATE,
        Self::LINK_QUOTA,
        Self::LINK_SPENT,
        Self::LINK_PERIOD_END,
        Self::LINK_REFUSED,
        Self::MEMBER_OUTSTANDING,
        Self::MEMBER_PURGES_OVERDUE,
        Self::MEMBER_STATE,
        Self::MEMBER_PLACEMENT_DIFFERS,
    ];
}
