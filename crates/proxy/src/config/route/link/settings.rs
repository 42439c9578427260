//! What the reference page says of links.

use super::{
    BULK_ABOVE, BULK_ABOVE_RANGE, OVERHEAD_PERCENT, QUOTAS, RESERVE_PERCENT, SLOW_RATE, STALE_FOR,
    STALE_FOR_MAX, ZoneName, window,
};
use crate::config::setting::Setting;
use crate::config::values::byte_size::ByteSize;
use crate::config::values::next_hop_url::NextHopUrl;
use crate::config::values::rate::Rate;
use crate::config::values::time::span::Span;
use weir_policy::budget::{
    CountedBytes, Every, OVERHEAD_PERCENT_MAX, RESERVE_PERCENT_MAX, WhenSpent,
};

/// The settings of links.
pub(in crate::config) fn settings() -> Vec<Setting> {
    let mut settings = rate_settings();
    settings.extend(quota_settings());
    settings.extend(window::settings());
    settings
}

fn rate_settings() -> Vec<Setting> {
    vec![
        Setting::new::<String>(
            "link[].name",
            &[
                "What messages, the access log and metrics call the link; docs/links.md explains links. A link that keeps its name over a",
                "reload or restart goes on with what it has spent.",
            ],
        ),
        Setting::new::<Vec<NextHopUrl>>(
            "link[].next_hops",
            &[
                "Next hops of routes, and parents, that are reached over the link; each is behind one link. Without it, all that no other link",
                "names: also origins that a forward proxy asks itself, and tunnels to them. Other nodes of a cluster are behind no link.",
            ],
        ),
        Setting::new::<Rate>(
            "link[].rate",
            &[
                "Bytes a second over the link, of those that `count` counts; a tenth of a second's worth at once. Fetches wait, and with them",
                "those that read them as they come; what is stored is sent to clients at any speed. Without it, no bound.",
            ],
        )
        .within(&Rate::MIN, &Rate::MAX),
        Setting::new::<u8>(
            "link[].reserve_percent",
            &[
                "What large fetches leave of `rate` for small ones, percent: a page does not wait for a download. Small are heads, and the first",
                "`bulk_above` of content and of tunnels.",
            ],
        )
        .by_default(&RESERVE_PERCENT)
        .within(&0, &RESERVE_PERCENT_MAX),
        Setting::new::<ByteSize>(
            "link[].bulk_above",
            &["What a response or a tunnel brings beyond so many bytes counts as a large fetch."],
        )
        .by_default(&BULK_ABOVE)
        .within(&BULK_ABOVE_RANGE[0], &BULK_ABOVE_RANGE[1]),
        Setting {
            form: CountedBytes::FORM,
            ..Setting::new::<String>(
                "link[].count",
                &[
                    "Which bytes are counted: those that next hops send, or those that are sent to them, too. Heads, framing, repeated requests and",
                    "probes are, name resolution is not.",
                ],
            )
        }
        .by_default(&CountedBytes::Both),
        Setting::new::<u8>(
            "link[].overhead_percent",
            &[
                "What heads of IP and TCP add to the bytes that are counted for the quota, percent: 52 bytes for each 1448, as on Ethernet.",
            ],
        )
        .by_default(&OVERHEAD_PERCENT)
        .within(&0, &OVERHEAD_PERCENT_MAX),
        Setting::new::<ZoneName>(
            "link[].time_zone",
            &["The clocks and the calendar of `period` and `windows`: a name of the IANA database."],
        )
        .by_default(&ZoneName::default()),
    ]
}

fn quota_settings() -> Vec<Setting> {
    vec![
        Setting::new::<ByteSize>(
            "link[].quota",
            &[
                "Bytes of each `period`. What is spent is on disk before it is spent, in steps, so that it holds over `kill -9`; docs/links.md",
                "says by how much it can be exceeded. Without it, no bound.",
            ],
        )
        .within(&QUOTAS[0], &QUOTAS[1]),
        Setting {
            form: Every::FORM,
            ..Setting::new::<String>(
                "link[].period",
                &["How often the quota is given, by the calendar of `time_zone`. A quota needs it."],
            )
        },
        Setting::new::<u8>(
            "link[].period_starts",
            &["The day on which periods begin: of a month 1 to 28, of a week 1 (Monday) to 7."],
        )
        .by_default(&1_u8)
        .within(&1, &Every::Month.starts_max()),
        Setting {
            form: WhenSpent::FORM,
            ..Setting::new::<String>(
                "link[].when_spent",
                &[
                    "What follows when the quota is spent, until the next period: `slow` fetches on at `slow_rate`, beyond the quota; the others",
                    "fetch nothing, and serve what is stored and fresh; beside that, `stored-only` answers 504, `stale` serves what is stored for",
                    "`stale_for` past its freshness and else answers as `refuse`, and `refuse` answers 429, with the reason and `Retry-After`.",
                ],
            )
        }
        .by_default(&WhenSpent::Refuse),
        Setting::new::<Rate>(
            "link[].slow_rate",
            &["Bytes a second after the quota is spent, with `when_spent = \"slow\"`."],
        )
        .by_default(&SLOW_RATE)
        .within(&Rate::MIN, &Rate::MAX),
        Setting::new::<Span>(
            "link[].stale_for",
            &[
                "How long past its freshness a response is served after the quota is spent, with `when_spent = \"stale\"`. Not what says no-cache,",
                "must-revalidate, proxy-revalidate or s-maxage.",
            ],
        )
        .by_default(&STALE_FOR)
        .within(&Span::ZERO, &STALE_FOR_MAX),
        Setting {
            form: "a path",
            ..Setting::new::<String>(
                "link[].state_file",
                &[
                    "Where it is kept what is spent, 1 KiB. Without it, `weir-link-NAME` in the directory that a service manager gives",
                    "(`STATE_DIRECTORY`), else in the first directory of the store on disk; where there is neither, a quota needs it.",
                ],
            )
        },
    ]
}
