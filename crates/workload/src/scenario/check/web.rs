//! The web of today: lists of shares.

use super::closed::EXPONENT_MAX;
use super::polymix::life_cycle;
use super::{
    AGENTS_MAX, Checked, ENTRIES_MAX, SERVERS_MAX, above_zero, count, entries, extension, law,
    part, range, rate, require, visible, whole,
};
use crate::law::Dimension;
use crate::scenario::{CacheControl, Validators, Vary, Web, WebContent};

pub(super) fn check(web: &Web) -> Checked {
    count("workload.agents", web.agents, AGENTS_MAX)?;
    rate("workload.rate_per_s", web.rate_per_s)?;
    count("workload.servers", web.servers, SERVERS_MAX)?;
    range("workload.targets", web.targets, 1, TARGETS_MAX)?;
    range(
        "workload.zipf_exponent",
        web.zipf_exponent,
        0.0,
        EXPONENT_MAX,
    )?;
    above_zero("workload.measured", web.measured_s)?;
    let shares = [web.if_modified_share, web.reload_share, web.head_share];
    part("workload.if_modified_share", shares.into_iter())?;
    law("workload.cookie_size", &web.cookie_size, Dimension::Bytes)?;
    law("workload.lifetime", &web.lifetime, Dimension::Seconds)?;
    life_cycle("workload.life_cycle", &web.life_cycle)?;
    check_contents(&web.contents)?;
    check_directives(&web.cache_control)?;
    check_vary(&web.vary)?;
    check_validators(&web.validators)
}

fn check_contents(contents: &[WebContent]) -> Checked {
    entries("workload.contents", contents.len(), ENTRIES_MAX)?;
    whole(
        "workload.contents",
        contents.iter().map(|content| content.share),
    )?;
    for (index, content) in contents.iter().enumerate() {
        let key = |name: &str| format!("workload.contents[{index}].{name}");
        visible(&key("name"), &content.name)?;
        visible(&key("media_type"), &content.media_type)?;
        extension(&key("extension"), &content.extension)?;
        law(&key("size"), &content.size, Dimension::Bytes)?;
    }
    Ok(())
}

fn check_directives(controls: &[CacheControl]) -> Checked {
    entries("workload.cache_control", controls.len(), ENTRIES_MAX)?;
    whole(
        "workload.cache_control",
        controls.iter().map(|control| control.share),
    )?;
    for (index, control) in controls.iter().enumerate() {
        let key = format!("workload.cache_control[{index}].directives");
        if !control.directives.is_empty() {
            visible(&key, &control.directives)?;
        }
        require(
            !control.max_age || !control.directives.contains("max-age"),
            key,
            "has a `max-age` of its own",
            "leave it out, or take `max_age = true` away",
        )?;
    }
    Ok(())
}

fn check_vary(vary: &[Vary]) -> Checked {
    require(
        vary.len() <= ENTRIES_MAX,
        "workload.vary",
        format!("has {} entries", vary.len()),
        format!("it has at most {ENTRIES_MAX}"),
    )?;
    part("workload.vary", vary.iter().map(|vary| vary.share))?;
    for (index, vary) in vary.iter().enumerate() {
        visible(&format!("workload.vary[{index}].value"), &vary.value)?;
    }
    Ok(())
}

fn check_validators(shares: &Validators) -> Checked {
    let with_any = shares.last_modified + shares.etag - shares.both;
    require(
        shares.both <= shares.last_modified.min(shares.etag) && with_any <= 1.0,
        "workload.validators.both",
        "does not go together with the others",
        "`both` is at most either, and what has one at most 100 %",
    )
}

/// Targets that are requested by popularity: more than a run can distinguish.
const TARGETS_MAX: u64 = 1 << 32;
