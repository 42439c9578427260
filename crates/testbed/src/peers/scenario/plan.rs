//! How a scenario is run: with which clients, caches and links, one proxy after the other or all at
//! once.

/// How a scenario is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    /// The numbers of clients that are tried, one after the other; `None` leaves it to the
    /// scenario.
    pub(crate) clients: &'static [Option<u32>],
    /// Whether each proxy runs without caching too.
    pub(crate) is_uncached_too: bool,
    /// Whether the same clients run without their link too.
    pub(crate) is_unlinked_too: bool,
    /// All proxies at the same time.
    pub(crate) is_together: bool,
    /// Room of each proxy's store, MiB (2^20 bytes).
    pub(crate) cache_mib: u32,
    /// The scale, if none is given.
    pub(crate) scale: f64,
    /// How long a run at scale 1 takes, seconds; somewhat more than it should.
    pub(crate) seconds: f64,
    /// Numbers of clients rise until a proxy's run is not valid: that proxy is then left out.
    pub(crate) is_until_failure: bool,
    /// The plan that is run after this one, into the same report.
    pub(crate) then: Option<&'static str>,
}

/// A store for scenarios whose working set is to fit.
const ROOMY_MIB: u32 = 1024;

/// One proxy after the other, as the scenario says.
const PLAIN: Plan = Plan {
    name: "",
    clients: &[None],
    is_uncached_too: false,
    is_unlinked_too: false,
    is_together: false,
    cache_mib: ROOMY_MIB,
    scale: 1.0,
    seconds: 0.0,
    is_until_failure: false,
    then: None,
};

/// The paper's first experiment: 8 to 96 clients, with caching and without, 75 MB. Without caching
/// a client waits three seconds for each of its requests, 26 in each of two phases at this scale:
/// 160 s at each of six numbers of clients. Six proxies and what follows, the load until they fail,
/// take 25 minutes.
const WPB: Plan = Plan {
    name: "wpb",
    clients: &[Some(16), Some(32), Some(48), Some(64), Some(80), Some(96)],
    is_uncached_too: true,
    is_together: true,
    cache_mib: 75,
    scale: 0.13,
    seconds: 1250.0,
    then: Some("wpb-load"),
    ..PLAIN
};

/// Everything that can be run.
pub(crate) static PLANS: [Plan; 9] = [
    WPB,
    Plan {
        name: "wpb-keep-alive",
        scale: 0.15,
        then: None,
        ..WPB
    },
    // twice as many clients each time, one proxy after the other
    Plan {
        name: "wpb-load",
        clients: &[
            Some(250),
            Some(500),
            Some(1000),
            Some(2000),
            Some(4000),
            Some(8000),
        ],
        cache_mib: 75,
        seconds: 10.0,
        is_until_failure: true,
        ..PLAIN
    },
    // the paper's third experiment: 30 clients, behind modems and not
    Plan {
        name: "wpb-modem",
        is_unlinked_too: true,
        is_together: true,
        cache_mib: 75,
        scale: 0.6,
        seconds: 2450.0,
        ..PLAIN
    },
    Plan {
        cache_mib: 64,
        ..plain("polymix3-mini", 1200.0)
    },
    plain("polymix3", 86_400.0),
    plain("polymix4", 86_400.0),
    plain("web-2026", 900.0),
    plain("hits", 60.0),
];

const fn plain(name: &'static str, seconds: f64) -> Plan {
    Plan {
        name,
        seconds,
        ..PLAIN
    }
}

/// One run of one proxy, as far as the scenario says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) clients: Option<u32>,
    pub(crate) is_caching: bool,
    pub(crate) has_link: bool,
}

impl Plan {
    /// The plan of that name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        PLANS.iter().find(|plan| plan.name == name)
    }

    /// The steps of the plan, each of which has runs that differ in nothing but caching and link.
    pub(crate) fn steps(&self) -> impl Iterator<Item = Vec<Variant>> {
        self.clients.iter().map(|&clients| {
            let variant = |is_caching, has_link| Variant {
                clients,
                is_caching,
                has_link,
            };
            let uncached = self.is_uncached_too.then(|| variant(false, true));
            let unlinked = self.is_unlinked_too.then(|| variant(true, false));
            [Some(variant(true, true)), uncached, unlinked]
                .into_iter()
                .flatten()
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follow_up_plan_exists_and_has_no_follow_up_of_its_own() {
        for plan in &PLANS {
            let Some(name) = plan.then else { continue };
            let then = Plan::named(name).expect("a plan");
            assert_eq!(then.then, None, "{name}");
        }
        let load = Plan::named("wpb-load").expect("a plan");
        let clients = load.steps().map(|step| step[0].clients);
        assert!(clients.is_sorted() && load.is_until_failure);
    }

    #[test]
    fn wpb_also_runs_without_caching_and_wpb_modem_without_link() {
        let variants = |name| -> Vec<Variant> {
            let plan = Plan::named(name).expect("a plan");
            plan.steps().flatten().collect()
        };
        let wpb = variants("wpb");
        assert_eq!(wpb.len(), 12);
        assert_eq!(wpb.iter().filter(|one| !one.is_caching).count(), 6);
        let modem = variants("wpb-modem");
        assert_eq!(modem.len(), 2);
        assert_eq!(modem.iter().filter(|one| one.has_link).count(), 1);
    }
}
