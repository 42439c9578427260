//! Why numbers are not as published, as far as experiments have shown: docs/proxim.md has the
//! experiments.

use super::experiment::Kind;

/// The reason for a line's number of a trace not to be as published; none where it is not known.
pub(super) fn why(key: &str, kind: Kind) -> Option<&'static str> {
    let (exhibit, rest) = key.split_once('.')?;
    match (exhibit, kind) {
        ("latency" | "over-proxy", Kind::Modem) => Some(behind_modems(rest)),
        ("latency" | "over-proxy", Kind::Research) => Some(EMPTY_LINK),
        ("bandwidth", _) if rest.starts_with("stop-0.5") => Some(FULL_LINK),
        ("bandwidth", _) => Some(THIN_TAIL),
        ("connections", _) if matches!(rest, "none.server-new" | "client.server-new") => {
            Some(OTHER_HITS)
        }
        ("connections", Kind::Modem) if !BY_THE_TRACE.contains(&rest) => Some(BUSY),
        ("connections", Kind::Research) if rest.ends_with("-max") => Some(BUSIEST),
        _ => None,
    }
}

/// What connections gain is partly waited for elsewhere; what data gain is another proxy's.
fn behind_modems(rest: &str) -> &'static str {
    if rest.starts_with("connections") || rest.starts_with("both") {
        QUEUE
    } else {
        FREE_PROXY
    }
}

/// Lines that no simulated queue has to do with.
const BY_THE_TRACE: [&str; 2] = ["client-servers", "server-clients"];

const QUEUE: &str = "the paper does not say how many transfers share a modem, nor what window a receiver offers: both decide how much of what is \
                     spared is waited for in the modem's queue";
const FREE_PROXY: &str = "the paper's proxy costs 5 % of the latency itself, by its gains over a proxy and over none, and ours nothing; \
                          its gains of data seem to belong to a hit ratio of 22 %, ours to 35 %";
const EMPTY_LINK: &str = "the paper's proxy without caching is half as slow again as no proxy; ours hardly is, on a link that is hardly used";
const FULL_LINK: &str = "the link is full: clients of a trace leave at the same byte, however long it takes until they have it";
const THIN_TAIL: &str = "aborted transfers have the published means, and no long tail: a proxy that reads fast, or 64 KiB ahead, has nearly all of most";
const OTHER_HITS: &str = "such numbers belong to hit ratios of 22 (modem) and 16 % (research); the paper's own are 35.2 and 27.0 %, as ours";
const BUSY: &str = "simulated transfers take longer than those of the trace, so that more of a client's connections are busy when it asks again; \
                    and a short trace has no busiest minute of 12 days";
const BUSIEST: &str = "the largest number belongs to the busiest minute of 11 days";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibrated_number_has_no_reason_to_differ() {
        for key in [
            "causes.cookie",
            "hits.obeying-cookies",
            "aborts.aborted",
            "validation.total-trace",
        ] {
            for kind in Kind::ALL {
                assert_eq!(why(key, kind), None, "{key}");
            }
        }
        assert_eq!(
            why("connections.none.server-new", Kind::Modem),
            Some(OTHER_HITS)
        );
        assert_eq!(why("connections.server-clients", Kind::Modem), None);
        assert_eq!(why("bandwidth.stop-0.5-gb", Kind::Modem), Some(FULL_LINK));
        assert_eq!(why("bandwidth.stop-45", Kind::Modem), Some(THIN_TAIL));
        assert_eq!(why("latency.both-median", Kind::Modem), Some(QUEUE));
        assert_eq!(why("latency.all-factor", Kind::Modem), Some(FREE_PROXY));
    }
}
