//! What the reference page says of rules.

use super::lifetime::LIFETIMES;
use super::{
    ClientRate, FieldChange, Rule, RuleKey, RuleListener, RuleMethod, RulePath, RuleStatus,
    RuleType, Sharing,
};
use crate::config::route::HostPattern;
use crate::config::setting::Setting;
use crate::config::values::cidr::Cidr;
use crate::config::values::read_ahead::ReadAhead;
use crate::config::values::time::span::Span;
use weir_policy::fetch::AbortKind;
use weir_policy::rule::{IgnoredDirective, Preset};

impl Rule {
    pub(in crate::config) fn settings() -> Vec<Setting> {
        let mut settings = Self::matcher_settings();
        settings.extend(Self::action_settings());
        settings.extend(Self::fetch_settings());
        settings.extend(RuleKey::settings());
        settings
    }

    /// What rules are for.
    fn matcher_settings() -> Vec<Setting> {
        vec![
            Setting::new::<String>(
                "rule[].name",
                &[
                    "What messages call the rule; without it, `rule[0]` for the first, and so on. Of the rules that are for a request,",
                    "the first that has an action decides that action; docs/rules.md explains it.",
                ],
            ),
            Setting::new::<Preset>(
                "rule[].preset",
                &[
                    "Rules that come with Weir, in the place of this one: `packages` gives lifetimes to files of mirrors for apt, pip, npm and",
                    "cargo, and has lists of packages validated; docs/rules.md lists them. Beside it there can be `name`, `listener` and `host`;",
                    "`host` must name the mirrors, as other sites have pages for one user at such paths.",
                ],
            ),
            Setting::new::<Vec<RuleListener>>(
                "rule[].listener",
                &[
                    "Listeners whose requests the rule is for: all of a mode, or the one with this name or address. Without it, all.",
                    "Of the values of one matcher one must fit, and all matchers of a rule must.",
                ],
            ),
            Setting::new::<Vec<HostPattern>>(
                "rule[].host",
                &[
                    "Hosts of targets: names, addresses, or `*.` and a name for all names below it. Without it, any.",
                ],
            ),
            Setting::new::<Vec<RulePath>>(
                "rule[].path",
                &[
                    "Paths of targets, without query: prefixes in whole segments, or globs for the whole path, in which `*` stands for any",
                    "bytes within a segment, `**` for any bytes, and `/**/` for a slash or any number of segments. Paths are compared as they",
                    "were received: a server may read `/%61` as `/a`, so this does not keep anything out. The target of a CONNECT has none.",
                ],
            ),
            Setting::new::<Vec<RuleMethod>>(
                "rule[].method",
                &["Methods of requests. Without it, any."],
            ),
            Setting::new::<Vec<Cidr>>(
                "rule[].client",
                &[
                    "Networks of clients. Without it, any; requests without a client, such as validations in the background, are for none.",
                ],
            ),
            Setting::new::<Vec<RuleStatus>>(
                "rule[].status",
                &[
                    "Statuses of responses: for `response` as they are sent to the client, for the others as they are stored. Only",
                    "`response`, `lifetime`, `stale_for` and `ignore` of responses can depend on them.",
                ],
            ),
            Setting::new::<Vec<RuleType>>(
                "rule[].content_type",
                &[
                    "Media types of responses, without parameters. For the same actions as `status`.",
                ],
            ),
        ]
    }

    /// What rules do.
    fn action_settings() -> Vec<Setting> {
        vec![
            Setting::new::<String>(
                "rule[].deny",
                &[
                    "Requests are answered with 403 and this text, and neither looked up nor forwarded; `\"off\"`: they are not, whatever",
                    "a later rule says.",
                ],
            ),
            Setting::new::<bool>(
                "rule[].bypass",
                &[
                    "Whether requests bypass the cache: nothing is looked up or stored for them. What is stored stays.",
                ],
            ),
            Setting::new::<Vec<IgnoredDirective>>(
                "rule[].ignore",
                &[
                    "Directives that are ignored: those of requests when a stored response is chosen, the next hop gets them as they came; those of",
                    "responses, and `request authorization`, when a response is stored. Clients get responses as they came. Each request that is",
                    "answered because of that is counted, and has `detail=rule` in Cache-Status. What was stored because of a rule is used as long",
                    "as there is such a rule. An empty list is an exception.",
                ],
            ),
            Setting::new::<Sharing>(
                "rule[].share",
                &[
                    "Written out where `ignore` has responses shared that may be for one user: by `request authorization`, `response private`,",
                    "`response no-store` or `response set-cookie`. They are stored, and any client gets them. It is for paths of which you know",
                    "that nothing there is for one user. What sets a cookie in answer to a cookie or to credentials is never stored by it.",
                ],
            ),
            Setting::new::<Span>(
                "rule[].lifetime.default",
                &[
                    "How long a response is fresh that has neither max-age, s-maxage nor Expires, in place of the guess by Last-Modified, as",
                    "RFC 9111 section 4.2.2 permits. Without `status`, only statuses below 400; 404 and 410 if `status` names them. Statuses that have",
                    "no lifetime to guess, such as 302 and 503, get it where `status` names them, errors for 1 min at most, counted as a forced one is.",
                    "What forbids to store a response stays in force. A rule with it cannot depend on client, method or one listener: what is stored",
                    "is for all.",
                ],
            )
            .within(&LIFETIMES[0], &LIFETIMES[1]),
            Setting::new::<Span>(
                "rule[].lifetime.forced",
                &[
                    "How long a stored response is fresh, whatever it says itself; in the place of `default`. It has nothing stored that HTTP",
                    "forbids to store, and `no-cache` still has a response validated each time. Errors beside 404 and 410 are fresh for 1 min at",
                    "most. Each request that is answered because of it is counted, and has `detail=rule` in Cache-Status.",
                ],
            )
            .within(&LIFETIMES[0], &LIFETIMES[1]),
            Setting::new::<Span>(
                "rule[].stale_for",
                &[
                    "How long past its freshness a response may be served: while it is validated in the background, if the next hop fails, and",
                    "if it cannot be reached, in the place of the day that is usual then. Not what says no-cache, must-revalidate,",
                    "proxy-revalidate or s-maxage; a response that permits more is used longer. Counted as `rule[].lifetime.forced` is.",
                ],
            )
            .within(&LIFETIMES[0], &LIFETIMES[1]),
            Setting::new::<Vec<FieldChange>>(
                "rule[].request",
                &[
                    "Changes of requests, before anything is decided by their fields: `set NAME: VALUE`, `add NAME: VALUE`, `remove NAME`,",
                    "with `{client}`, `{host}` and `{path}` in values. Fields that HTTP decides by cannot be changed. A rule that depends on",
                    "client, listener or method needs `bypass = true`: the response to the changed request must not be stored for others.",
                    "An empty list is an exception from later rules.",
                ],
            ),
            Setting::new::<Vec<FieldChange>>(
                "rule[].response",
                &[
                    "The same for responses when they are sent to their client, from the cache or not: they are stored unchanged.",
                    "Validators, lengths, Date, Vary and content codings cannot be changed; `add Cache-Control:` can add private, no-store, no-cache",
                    "and no-transform.",
                ],
            ),
        ]
    }

    /// How fast responses are sent, and how they are fetched.
    fn fetch_settings() -> Vec<Setting> {
        vec![
            Setting::new::<ClientRate>(
                "rule[].rate",
                &[
                    "How much content each client is sent in a second, over all its responses under this rule, from the cache or not, as",
                    "in \"500KiB/s\"; a quarter of a second's worth at once. Clients with an address of IPv6 are networks of 64 bits. Other",
                    "clients and rules wait for nothing, and a fetch runs ahead of its fastest reader no further than ever. Tunnels are not",
                    "limited. Of more than 4096 clients at once some get more. \"off\" is an exception from later rules.",
                ],
            ),
            Setting::new::<ReadAhead>(
                "rule[].read_ahead",
                &[
                    "How far a fetch of these targets may run ahead of its fastest reader, in place of fetch.read_ahead and of that of a route.",
                    "A rule with it cannot depend on client, method, one listener or the response: a fetch may have readers of any client.",
                ],
            )
            .within(&ReadAhead::MIN, &ReadAhead::MAX),
            Setting::new::<AbortKind>(
                "rule[].abort",
                &[
                    "What decides whether a fetch of these targets continues when its last reader disconnects, in place of fetch.abort; the",
                    "numbers are those of [fetch]. It cannot depend on what rule[].read_ahead cannot depend on.",
                ],
            ),
        ]
    }
}
