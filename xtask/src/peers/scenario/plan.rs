//! What a scenario wants of its course.

/// How a scenario is run.
#[derive(Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    /// The numbers of clients that are tried, one after the other; `None` leaves it to the scenario.
    pub(crate) clients: &'static [Option<u32>],
    /// Whether each proxy runs without caching too.
    pub(crate) is_uncached_too: bool,
    /// Whether the same clients run without their link too.
    pub(crate) is_unlinked_too: bool,
    /// All proxies at the same time.
    pub(crate) is_together: bool,
    /// Room of each proxy's store, MiB (2^20 bytes).
    pub(crate) cache_mib: u32,
    /// The scale, if none is asked for.
    pub(crate) scale: f64,
    /// How long a run at scale 1 takes, seconds; somewhat more than it should.
    pub(crate) seconds: f64,
}

/// A store for scenarios whose working set is to fit.
const ROOMY_MIB: u32 = 1024;

/// Everything that can be run.
pub(crate) static PLANS: [Plan; 8] = [
    // the paper's first experiment: 8 to 96 clients, with caching and without, 75 MB. Without caching a client waits three seconds for each
    // of its requests, 30 in each of two phases at this scale: three minutes at each of six numbers of clients
    Plan {
        name: "wpb",
        clients: &[Some(16), Some(32), Some(48), Some(64), Some(80), Some(96)],
        is_uncached_too: true,
        is_unlinked_too: false,
        is_together: true,
        cache_mib: 75,
        scale: 0.15,
        seconds: 1250.0,
    },
    Plan {
        name: "wpb-keep-alive",
        clients: &[Some(16), Some(32), Some(48), Some(64), Some(80), Some(96)],
        is_uncached_too: true,
        is_unlinked_too: false,
        is_together: true,
        cache_mib: 75,
        scale: 0.15,
        seconds: 1250.0,
    },
    // the paper's third experiment: 30 clients, behind modems and not
    Plan {
        name: "wpb-modem",
        clients: &[None],
        is_uncached_too: false,
        is_unlinked_too: true,
        is_together: true,
        cache_mib: 75,
        scale: 0.6,
        seconds: 2450.0,
    },
    Plan {
        name: "polymix3-mini",
        clients: &[None],
        is_uncached_too: false,
        is_unlinked_too: false,
        is_together: false,
        cache_mib: 64,
        scale: 1.0,
        seconds: 1200.0,
    },
    Plan {
        name: "polymix3",
        clients: &[None],
        is_uncached_too: false,
        is_unlinked_too: false,
        is_together: false,
        cache_mib: ROOMY_MIB,
        scale: 1.0,
        seconds: 86_400.0,
    },
    Plan {
        name: "polymix4",
        clients: &[None],
        is_uncached_too: false,
        is_unlinked_too: false,
        is_together: false,
        cache_mib: ROOMY_MIB,
        scale: 1.0,
        seconds: 86_400.0,
    },
    Plan {
        name: "web-2026",
        clients: &[None],
        is_uncached_too: false,
        is_unlinked_too: false,
        is_together: false,
        cache_mib: ROOMY_MIB,
        scale: 1.0,
        seconds: 900.0,
    },
    Plan {
        name: "hits",
        clients: &[None],
        is_uncached_too: false,
        is_unlinked_too: false,
        is_together: false,
        cache_mib: ROOMY_MIB,
        scale: 1.0,
        seconds: 60.0,
    },
];

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

    /// The steps of the course, each of which has runs that differ in nothing but caching and link.
    pub(crate) fn steps(&self) -> impl Iterator<Item = Vec<Variant>> {
        self.clients.iter().map(|&clients| {
            let mut variants = vec![Variant {
                clients,
                is_caching: true,
                has_link: true,
            }];
            if self.is_uncached_too {
                variants.push(Variant {
                    is_caching: false,
                    ..variants[0]
                });
            }
            if self.is_unlinked_too {
                variants.push(Variant {
                    has_link: false,
                    ..variants[0]
                });
            }
            variants
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_misses_its_run_without_caching_or_link() {
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
