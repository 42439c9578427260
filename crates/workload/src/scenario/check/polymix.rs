//! PolyMix: contents and schedule.

use super::{
    AGENTS_MAX, Checked, ENTRIES_MAX, SERVERS_MAX, above_zero, entries, extension, law, part,
    range, rate, require, visible, whole,
};
use crate::law::Dimension;
use crate::scenario::{ContentType, LifeCycle, Load, PolyMix, PolyPhase};
use std::collections::BTreeSet;

pub(super) fn check(polymix: &PolyMix) -> Checked {
    check_rates(polymix)?;
    let shares = [
        polymix.ims200_share,
        polymix.ims304_share,
        polymix.reload_share,
    ];
    part("workload.reload_share", shares.into_iter())?;
    part(
        "workload.post_share",
        [polymix.post_share, polymix.head_share].into_iter(),
    )?;
    law("workload.post_size", &polymix.post_size, Dimension::Bytes)?;
    range("workload.fill_factor", polymix.fill_factor, 0.0, 1000.0)?;
    above_zero("workload.working_set_time", polymix.working_set_s)?;
    above_zero("workload.hot_set_share", polymix.hot_set_share)?;
    check_contents(&polymix.contents)?;
    check_phases(polymix)
}

fn check_rates(polymix: &PolyMix) -> Checked {
    rate("workload.peak_rate_per_s", polymix.peak_rate_per_s)?;
    rate("workload.fill_rate_per_s", polymix.fill_rate_per_s)?;
    rate("workload.robot_rate_per_s", polymix.robot_rate_per_s)?;
    require(
        polymix.fill_rate_per_s <= polymix.peak_rate_per_s,
        "workload.fill_rate_per_s",
        "is more than the peak",
        "it is at most `peak_rate_per_s`",
    )?;
    let robots = polymix.peak_rate_per_s / polymix.robot_rate_per_s;
    require(
        robots <= f64::from(AGENTS_MAX),
        "workload.peak_rate_per_s",
        format!("needs {robots:.0} robots"),
        format!("at most {AGENTS_MAX} make up the peak"),
    )?;
    range(
        "workload.servers_per_robot",
        polymix.servers_per_robot,
        0.0,
        1000.0,
    )?;
    require(
        polymix.servers() <= SERVERS_MAX,
        "workload.servers_base",
        format!("makes {} servers", polymix.servers()),
        format!("there are at most {SERVERS_MAX}"),
    )?;
    require(
        polymix.small_bias_reach <= REACH_MAX,
        "workload.small_bias_reach",
        format!("is {}", polymix.small_bias_reach),
        format!("it is at most {REACH_MAX}"),
    )
}

fn check_contents(contents: &[ContentType]) -> Checked {
    entries("workload.contents", contents.len(), KINDS_MAX)?;
    whole(
        "workload.contents",
        contents.iter().map(|content| content.share),
    )?;
    let embedded = contents.iter().filter(|content| !content.direct).count();
    require(
        embedded <= 1 && embedded < contents.len(),
        "workload.contents",
        format!("has {embedded} kinds that are not direct"),
        "at most one kind is only embedded, and one is asked for itself",
    )?;
    for (index, content) in contents.iter().enumerate() {
        let key = |name: &str| format!("workload.contents[{index}].{name}");
        visible(&key("name"), &content.name)?;
        visible(&key("media_type"), &content.media_type)?;
        extension(&key("extension"), &content.extension)?;
        law(&key("size"), &content.size, Dimension::Bytes)?;
        life_cycle(&key("life_cycle"), &content.life_cycle)?;
        if let Some(embeds) = &content.embeds {
            law(&key("embeds"), embeds, Dimension::Plain)?;
            let is_few = embeds.maximum().is_some_and(|most| most <= EMBEDDED_MAX);
            let hint =
                format!("a direct kind embeds at most {EMBEDDED_MAX} of the kind that is not");
            let holds = is_few && content.direct && embedded > 0;
            require(holds, key("embeds"), format!("is `{embeds}`"), hint)?;
        }
    }
    Ok(())
}

pub(super) fn life_cycle(key: &str, cycle: &LifeCycle) -> Checked {
    law(&format!("{key}.length"), &cycle.length, Dimension::Seconds)?;
    range(
        &format!("{key}.variance"),
        cycle.variance,
        0.0,
        VARIANCE_MAX,
    )
}

fn check_phases(polymix: &PolyMix) -> Checked {
    let phases = &polymix.phases;
    entries("workload.phases", phases.len(), ENTRIES_MAX)?;
    let mut names = BTreeSet::new();
    for (index, phase) in phases.iter().enumerate() {
        let key = |name: &str| format!("workload.phases[{index}].{name}");
        visible(&key("name"), &phase.name)?;
        require(
            names.insert(phase.name.as_str()),
            key("name"),
            format!("is `{}` a second time", phase.name),
            "reports tell phases apart by their names",
        )?;
        check_phase(&key, polymix, phase)?;
    }
    let endless = phases.iter().filter(|phase| phase.seconds.is_none());
    require(
        endless.count() <= 1,
        "workload.phases",
        "has two without a duration",
        "the cache is filled once: give all but one a `duration`",
    )?;
    require(
        phases.iter().any(|phase| phase.measured),
        "workload.phases",
        "has none that is measured",
        "say `measured = true` where results are read from",
    )
}

fn check_phase(key: &dyn Fn(&str) -> String, polymix: &PolyMix, phase: &PolyPhase) -> Checked {
    range(&key("recurrence"), phase.recurrence, 0.0, 1.0)?;
    range(&key("special"), phase.special, 0.0, 1.0)?;
    match phase.seconds {
        Some(seconds) => above_zero(&key("duration"), seconds)?,
        // else no request would be made, and the goal never met
        None => require(
            polymix.load_share(phase.load) > 0.0,
            key("load"),
            "is nothing",
            "the phase that fills the cache needs a load",
        )?,
    }
    for load in phase.load_from.iter().chain([&phase.load]) {
        require(
            !matches!(load, Load::Robots(robots) if *robots > polymix.robots()),
            key("load"),
            format!("is `{load}`"),
            format!("there are {} robots", polymix.robots()),
        )?;
    }
    Ok(())
}

/// Kinds of content: three bits of a target.
const KINDS_MAX: usize = 8;

/// What a page embeds: four bits of a target.
const EMBEDDED_MAX: f64 = 16.0;

/// With all of a cycle, two modifications could be in the wrong order.
const VARIANCE_MAX: f64 = 0.99;

/// Neighbours that a repeat looks at, each way.
const REACH_MAX: u32 = 1000;
