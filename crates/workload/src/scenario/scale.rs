//! A scenario in less time. [`Scenario::scaled`] says what keeps its shape and what does not.

use super::{Hits, PolyMix, Scenario, Web, Workload, Wpb};
use crate::number::whole;
use crate::scenario::polymix::LifeCycle;

pub(super) fn scaled(scenario: &Scenario, factor: f64) -> Scenario {
    let mut scenario = scenario.clone();
    match &mut scenario.workload {
        Workload::Wpb(wpb) => scale_wpb(wpb, factor),
        Workload::PolyMix(polymix) => scale_polymix(polymix, factor),
        Workload::Web(web) => scale_web(web, factor),
        Workload::Hits(hits) => scale_hits(hits, factor),
    }
    scenario.scale *= factor;
    scenario
}

fn scale_wpb(wpb: &mut Wpb, factor: f64) {
    wpb.requests_per_client = small_count(f64::from(wpb.requests_per_client) * factor);
}

fn scale_polymix(polymix: &mut PolyMix, factor: f64) {
    polymix.working_set_s *= factor;
    polymix.cache_bytes = count(float(polymix.cache_bytes) * factor);
    for content in &mut polymix.contents {
        scale_life(&mut content.life_cycle, factor);
    }
    for phase in &mut polymix.phases {
        phase.seconds = phase.seconds.map(|seconds| time_s(seconds * factor));
    }
}

fn scale_web(web: &mut Web, factor: f64) {
    web.warm_up_s = time_s(web.warm_up_s * factor);
    web.measured_s = time_s(web.measured_s * factor);
    web.targets = count(float(web.targets) * factor);
    scale_life(&mut web.life_cycle, factor);
}

fn scale_hits(hits: &mut Hits, factor: f64) {
    hits.duration_s = time_s(hits.duration_s * factor);
}

fn scale_life(cycle: &mut LifeCycle, factor: f64) {
    cycle.length = cycle.length.times(factor);
}

/// At least a second.
fn time_s(seconds: f64) -> f64 {
    seconds.max(1.0)
}

fn float(count: u64) -> f64 {
    count as f64
}

fn count(number: f64) -> u64 {
    whole(number.round().max(1.0))
}

fn small_count(number: f64) -> u32 {
    u32::try_from(count(number)).unwrap_or(u32::MAX)
}
